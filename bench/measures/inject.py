"""What a client at the socket gets: 3-hop chains a second by REST and by WebSocket, and how long one of them takes.

The server is a process of its own, `bench.rest_server` or the bare one; the clients are here.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Awaitable, Callable

import uvloop
from websockets.asyncio.client import ClientConnection, connect

from bench.askers import Body, asking
from bench.feeding import Fed, fed_server
from bench.load import WARM_UP_SECONDS, Measurement, arguments, percentiles_us
from bench.measures import hops
from bench.rest_server import TOKEN
from bench.usage import spent, usage

OURS, BARE = "bench.rest_server", "bench.limits.bare_post"
INJECT, ORGANISM = "/api/v1/inject", "/api/v1/organism"
CONNECTIONS = COMMANDS = 16
LONGEST_WAIT_SECONDS = 30
PAYLOAD = {"to": "greeter", "payload": {"name": "Dan"}}
SENT = Body(json.dumps(PAYLOAD))
AWAITED = Body(json.dumps({**PAYLOAD, "wait": LONGEST_WAIT_SECONDS}))

Measure = Callable[[Fed, float], Awaitable[Measurement]]


async def answered(server: Fed, seconds: float, connections: int = CONNECTIONS) -> Measurement:
    """Answers a second, of all connections together."""
    async with asking(server.url, [INJECT], TOKEN, connections, AWAITED) as clients:
        await clients.ask(WARM_UP_SECONDS)
        before = usage(server.process.pid)
        taken = await clients.ask(seconds)
        used = spent(before, usage(server.process.pid), len(taken))
    return Measurement("inject", "chains/s", len(taken) / seconds, {**percentiles_us(taken), **used})


async def sent(server: Fed, seconds: float) -> Measurement:
    """Chains a second, sent without waiting, until all of them have ended."""
    async with asking(server.url, [INJECT], TOKEN, CONNECTIONS, SENT) as clients:
        await clients.ask(WARM_UP_SECONDS)

        async def send() -> int:
            return len(await clients.ask(seconds))

        return await _until_handled(server, send)


async def by_socket(server: Fed, seconds: float) -> Measurement:
    """The same by the commands of one WebSocket."""
    address = server.url.replace("http", "ws", 1) + "/ws?events=reload"
    async with connect(address, additional_headers={"Authorization": f"Bearer {TOKEN}"}) as socket:
        await socket.recv()
        await _commands(socket, WARM_UP_SECONDS)

        async def send() -> int:
            return await _commands(socket, seconds)

        return await _until_handled(server, send)


async def _commands(socket: ClientConnection, seconds: float) -> int:
    """How many injections were answered; so many are under way at any moment. Raises ``RuntimeError`` for a refusal."""
    end, numbers, answered = time.perf_counter() + seconds, itertools.count(), 0

    async def send() -> None:
        await socket.send(json.dumps({"cmd": "inject", "id": str(next(numbers)), **PAYLOAD}))

    for _ in range(COMMANDS):
        await send()
    under_way = COMMANDS
    while under_way:
        frame = json.loads(await socket.recv())
        if frame["event"] == "error":
            raise RuntimeError(f"Expected an answer to an injection, got {frame}.")
        if frame["event"] != "injected":
            continue
        under_way, answered = under_way - 1, answered + 1
        if time.perf_counter() < end:
            await send()
            under_way += 1
    return answered


async def _until_handled(server: Fed, send: Callable[[], Awaitable[int]]) -> Measurement:
    """Chains a second, of as many as ``send`` says that it has sent, until all of them have ended."""
    before, begun = usage(server.process.pid), await _until_idle(server.url)
    count = await send()
    ended = await _until_idle(server.url)
    return Measurement("inject", "chains/s", count / (ended - begun), spent(before, usage(server.process.pid), count))


async def _until_idle(url: str) -> float:
    """When no thread was active any more."""
    async with asking(url, [ORGANISM], TOKEN, 1) as client:
        while json.loads((await client.bodies())[0])["active_threads"]:
            pass
    return time.perf_counter()


async def alone(server: Fed, seconds: float) -> Measurement:
    """What an awaited injection takes on one connection, with nothing beside it."""
    taken = await answered(server, seconds, 1)
    return Measurement("inject", "µs", taken.also["p50_us"], taken.also)


async def parts(server: Fed, seconds: float) -> Measurement:
    """The same put together: a bare POST, and a chain in process."""
    post = await answered(server, seconds, 1)
    chain = await hops.measure(1, seconds)
    return Measurement("parts", "µs", post.also["p50_us"] + chain.also["p50_us"])


async def measure(module: str, what: Measure, seconds: float) -> Measurement:
    server = await fed_server(module)
    try:
        return await what(server, seconds)
    finally:
        server.process.kill()
        await server.process.wait()


KINDS: dict[str, tuple[str, Measure]] = {
    "wait": (OURS, answered),
    "sent": (OURS, sent),
    "socket": (OURS, by_socket),
    "alone": (OURS, alone),
    "bare": (BARE, answered),
    "parts": (BARE, parts),
}


if __name__ == "__main__":
    asked = arguments(__doc__, what=tuple(KINDS))
    print(uvloop.run(measure(*KINDS[asked.what], asked.seconds)).line())
