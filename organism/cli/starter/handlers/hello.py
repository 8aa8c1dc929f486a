"""A greeter asks a shouter, and answers the sender. Payloads are plain dataclasses, handlers functions."""

from dataclasses import dataclass

from organism import HandlerMetadata, HandlerResponse


@dataclass
class Greeting:
    """A request to greet someone."""

    name: str


@dataclass
class Said:
    """Something that is said."""

    text: str


async def greet(payload: Greeting, metadata: HandlerMetadata) -> HandlerResponse:
    """Greet by name, as loud as the shouter does it."""
    loud = await metadata.ask("shouter", Said(f"Hello, {payload.name}!"))
    return HandlerResponse.respond(loud)


async def shout(payload: Said, metadata: HandlerMetadata) -> HandlerResponse:  # noqa: ARG001 - the signature of a handler
    """Put it into capitals."""
    return HandlerResponse.respond(Said(payload.text.upper()))
