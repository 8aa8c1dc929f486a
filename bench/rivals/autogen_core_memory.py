"""autogen-core 0.7, in memory: hops a second of the chain greeter → shouter → response-handler by publishing.

Each agent type listens to one topic type; a handler publishes its answer to the next. The topic's source is the chain's
slot, so an agent instance serves a slot, as the library's documentation shows for one instance a conversation. Messages
are dataclasses handed over by reference: nothing is validated, encoded or written.

The runtime's tracing is off, as its documentation advises where nobody collects the traces.
"""

import asyncio
from dataclasses import dataclass

import uvloop
from autogen_core import (
    MessageContext,
    RoutedAgent,
    SingleThreadedAgentRuntime,
    TopicId,
    TypeSubscription,
    message_handler,
)
from opentelemetry.trace import NoOpTracerProvider

from bench.load import Measurement, arguments, measure_hops


@dataclass
class Greeting:
    name: str


@dataclass
class GreetingResponse:
    message: str
    original_sender: str


@dataclass
class ShoutedResponse:
    message: str


class Greeter(RoutedAgent):
    @message_handler
    async def greet(self, message: Greeting, ctx: MessageContext) -> None:
        answer = GreetingResponse(message=f"Hello, {message.name}!", original_sender=str(ctx.sender))
        await self.publish_message(answer, TopicId("shouter", self.id.key))


class Shouter(RoutedAgent):
    @message_handler
    async def shout(self, message: GreetingResponse, ctx: MessageContext) -> None:
        answer = ShoutedResponse(message=message.message.upper())
        await self.publish_message(answer, TopicId("response-handler", self.id.key))


class ResponseHandler(RoutedAgent):
    def __init__(self, ends: dict[str, asyncio.Future[None]]) -> None:
        super().__init__("response-handler")
        self._ends = ends

    @message_handler
    async def end(self, message: ShoutedResponse, ctx: MessageContext) -> None:
        self._ends.pop(message.message.removeprefix("HELLO, ").removesuffix("!")).set_result(None)


async def measure(in_flight: int, seconds: float) -> Measurement:
    ends: dict[str, asyncio.Future[None]] = {}
    runtime = SingleThreadedAgentRuntime(tracer_provider=NoOpTracerProvider())
    await Greeter.register(runtime, "greeter", lambda: Greeter("greeter"))
    await Shouter.register(runtime, "shouter", lambda: Shouter("shouter"))
    await ResponseHandler.register(runtime, "response-handler", lambda: ResponseHandler(ends))
    for name in ("greeter", "shouter", "response-handler"):
        await runtime.add_subscription(TypeSubscription(topic_type=name, agent_type=name))
    runtime.start()

    async def chain(key: str) -> None:
        ends[key] = end = asyncio.get_running_loop().create_future()
        await runtime.publish_message(Greeting(name=key), TopicId("greeter", key.partition("-")[0]))
        await end

    measured = await measure_hops("autogen-core", chain, in_flight, seconds)
    await runtime.stop()
    return measured


if __name__ == "__main__":
    options = arguments(__doc__, in_flight=64)
    print(uvloop.run(measure(options.in_flight, options.seconds)).line())
