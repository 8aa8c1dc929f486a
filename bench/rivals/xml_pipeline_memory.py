"""xml-pipeline 0.4.0, in memory: hops a second of the chain greeter → shouter → response-handler.

What runs is its own `StreamPump` with its whole pipeline: repair, C14N, envelope XSD, payload XSD, decoding into the
`@xmlify` dataclass, routing, the handler, the envelope of the answer, back into its queue. Nothing is written to disk.

Made as fast as its own settings allow:
- its limits on handlers and pipelines are above the number in flight;
- every injection has a sender name of its own, since its registry of call chains mixes up conversations that share one;
- its context buffer may hold every thread of a round (by default 1,000, and each further thread scans them all).
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import uvloop
from third_party.xmlable import xmlify
from xml_pipeline.memory import get_context_buffer
from xml_pipeline.message_bus import ListenerConfig, OrganismConfig, StreamPump
from xml_pipeline.message_bus.message_state import HandlerMetadata, HandlerResponse

from bench.load import Measurement, arguments, measure_hops

Handler = Callable[[Any, HandlerMetadata], Awaitable[HandlerResponse | None]]

NO_LIMIT = 1_000_000
ENVELOPE = (
    '<message xmlns="https://xml-pipeline.org/ns/envelope/v1">'
    "<meta><from>{sender}</from><to>greeter</to><thread>{thread}</thread></meta>"
    "{payload}</message>"
)
GREETING = '<Greeting xmlns=""><Name>{name}</Name></Greeting>'


@xmlify
@dataclass
class Greeting:
    name: str


@xmlify
@dataclass
class GreetingResponse:
    message: str
    original_sender: str


@xmlify
@dataclass
class ShoutedResponse:
    message: str


async def greet(payload: Greeting, metadata: HandlerMetadata) -> HandlerResponse:
    answer = GreetingResponse(message=f"Hello, {payload.name}!", original_sender=metadata.from_id)
    return HandlerResponse(payload=answer, to="shouter")


async def shout(payload: GreetingResponse, metadata: HandlerMetadata) -> HandlerResponse:
    return HandlerResponse(payload=ShoutedResponse(message=payload.message.upper()), to="response-handler")


def key_of(payload: ShoutedResponse) -> str:
    """Which chain it is that has ended."""
    return payload.message.removeprefix("HELLO, ").removesuffix("!")


@dataclass
class Society:
    """Two listeners with their payload classes, the class of the last one, and how a chain begins and ends."""

    greeter: tuple[type, Handler]
    shouter: tuple[type, Handler]
    last: type
    payload: str
    key_of: Callable[[Any], str]


HELLO = Society((Greeting, greet), (GreetingResponse, shout), ShoutedResponse, GREETING, key_of)


class Organism:
    """Its pump with three listeners, and what waits for the end of each chain."""

    def __init__(self, society: Society, in_flight: int) -> None:
        self._society = society
        self._ends: dict[str, asyncio.Future[None]] = {}
        limit = 2 * in_flight
        self._pump = StreamPump(OrganismConfig("hello", max_concurrent_pipelines=limit, max_concurrent_handlers=limit))
        for name, (payload_class, handler) in {
            "greeter": society.greeter,
            "shouter": society.shouter,
            "response-handler": (society.last, self._end),
        }.items():
            self._pump.register_listener(
                ListenerConfig(name, "", "", name, payload_class=payload_class, handler=handler)
            )

    async def _end(self, payload: Any, metadata: HandlerMetadata) -> None:
        self._ends.pop(self._society.key_of(payload)).set_result(None)

    async def chain(self, key: str) -> None:
        self._ends[key] = end = asyncio.get_running_loop().create_future()
        thread, sender = str(uuid.uuid4()), f"console-{key}"
        payload = self._society.payload.format(name=key)
        envelope = ENVELOPE.format(sender=sender, thread=thread, payload=payload).encode()
        await self._pump.inject(envelope, thread_id=thread, from_id=sender)
        await end

    async def measure(self, in_flight: int, seconds: float) -> Measurement:
        running = asyncio.create_task(self._pump.run())
        measured = await measure_hops("xml-pipeline", self.chain, in_flight, seconds)
        running.cancel()
        return measured


def main(society: Society, description: str | None) -> None:
    """Measure a society and print the one line of it."""
    options = arguments(description, in_flight=64)
    get_context_buffer().max_threads = NO_LIMIT
    print(uvloop.run(Organism(society, options.in_flight).measure(options.in_flight, options.seconds)).line())


if __name__ == "__main__":
    main(HELLO, __doc__)
