"""The hello organism: a greeting is made, shouted, and handed to the outside.

This is a module of handlers as you would write one. A payload is a plain dataclass: its schema is made of its fields,
and its docstrings describe it in forms and to models. A handler is an ``async def`` of a payload and the metadata of
its message; what it may receive stands in its annotation, whom it may write to stands in ``peers`` of organism.yaml.
Handlers keep nothing between messages, so that any number of them can run side by side.
"""

from dataclasses import dataclass

from organism import HandlerMetadata, HandlerResponse


@dataclass
class Greeting:
    """Ask for somebody to be greeted."""

    name: str


@dataclass
class GreetingResponse:
    """A greeting, and who asked for it."""

    message: str
    original_sender: str


@dataclass
class ShoutedResponse:
    """A greeting in capitals."""

    message: str


async def greet(payload: Greeting, metadata: HandlerMetadata) -> HandlerResponse:
    """Greet by name, and send the greeting on to the shouter."""
    greeting = GreetingResponse(message=f"Hello, {payload.name}!", original_sender=metadata.from_id)
    return HandlerResponse(greeting, to="shouter")


async def shout(payload: GreetingResponse, metadata: HandlerMetadata) -> HandlerResponse:
    """Put the greeting into capitals."""
    return HandlerResponse(ShoutedResponse(message=payload.message.upper()), to="response-handler")


async def answer(payload: ShoutedResponse, metadata: HandlerMetadata) -> HandlerResponse:
    """Hand the result to the outside; ``HandlerResponse.respond`` would answer the shouter, who sent it here."""
    return HandlerResponse(payload, to="console")
