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
from dataclasses import dataclass

import uvloop
from third_party.xmlable import xmlify
from xml_pipeline.memory import get_context_buffer
from xml_pipeline.message_bus import ListenerConfig, OrganismConfig, StreamPump
from xml_pipeline.message_bus.message_state import HandlerMetadata, HandlerResponse

from bench.load import Measurement, arguments, measure_hops

NO_LIMIT = 1_000_000
ENVELOPE = (
    '<message xmlns="https://xml-pipeline.org/ns/envelope/v1">'
    "<meta><from>{sender}</from><to>greeter</to><thread>{thread}</thread></meta>"
    '<Greeting xmlns=""><Name>{name}</Name></Greeting></message>'
)


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


class Organism:
    """Its pump with three listeners, and what waits for the end of each chain."""

    def __init__(self, in_flight: int) -> None:
        self._ends: dict[str, asyncio.Future[None]] = {}
        limit = 2 * in_flight
        self._pump = StreamPump(OrganismConfig("hello", max_concurrent_pipelines=limit, max_concurrent_handlers=limit))
        for name, payload_class, handler in (
            ("greeter", Greeting, greet),
            ("shouter", GreetingResponse, shout),
            ("response-handler", ShoutedResponse, self._end),
        ):
            self._pump.register_listener(
                ListenerConfig(name, "", "", name, payload_class=payload_class, handler=handler)
            )

    async def _end(self, payload: ShoutedResponse, metadata: HandlerMetadata) -> None:
        key = payload.message.removeprefix("HELLO, ").removesuffix("!")
        self._ends.pop(key).set_result(None)

    async def chain(self, key: str) -> None:
        self._ends[key] = end = asyncio.get_running_loop().create_future()
        thread, sender = str(uuid.uuid4()), f"console-{key}"
        envelope = ENVELOPE.format(sender=sender, thread=thread, name=key).encode()
        await self._pump.inject(envelope, thread_id=thread, from_id=sender)
        await end

    async def measure(self, in_flight: int, seconds: float) -> Measurement:
        running = asyncio.create_task(self._pump.run())
        measured = await measure_hops("xml-pipeline", self.chain, in_flight, seconds)
        running.cancel()
        return measured


if __name__ == "__main__":
    options = arguments(__doc__, in_flight=64)
    get_context_buffer().max_threads = NO_LIMIT
    print(uvloop.run(Organism(options.in_flight).measure(options.in_flight, options.seconds)).line())
