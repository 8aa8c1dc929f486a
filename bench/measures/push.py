"""What pushing costs: many subscribers, many events, the time to one of them, and some that stopped reading.

The server is a process of its own, `bench.push_server` or the bare one (`--bare`); the clients are here and count.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import uvloop

from bench.feeding import FRAMES_A_MESSAGE, Fed, Order, fed_server
from bench.listeners import Listener, listen, stall
from bench.load import Measurement, arguments, percentiles_us
from bench.memory import KIB_A_MIB, private_kib
from bench.push_server import TOKEN
from bench.replay_server import LONG_THREAD, LONG_THREAD_EACH, MESSAGES
from bench.usage import spent, usage

OURS, BARE = "bench.push_server", "bench.limits.bare_push"
REPLAY, WITH_PUMP = "bench.replay_server", "bench.rest_server"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
MESSAGE = b'{"event":"message"'
FILTERS = ("events=message", "events=message&agents=greeter", "events=message&agents=console,shouter")
SUBSCRIBERS, WATCHERS, STALLED = 200, 50, 20
VIEWERS, MESSAGES_A_CHAIN = 20, 4
WARM_UP_MESSAGES = 100
EVENTS_A_SECOND = 500
STALLED_EVENTS, QUICK_STALLED_EVENTS = 100_000, 20_000
STALLED_RATE = 800.0
"""Messages a second while some do not read: three events each."""
FREE_SECONDS, LOOK_SECONDS = 30.0, 0.05

Measure = Callable[[Fed, float, int], Awaitable[Measurement]]


async def subscribers(server: Fed, seconds: float, _events: int) -> Measurement:
    """Messages a second, of all subscribers together; each has a filter and comes with a position."""
    queries = [f"?since=0&{FILTERS[number % len(FILTERS)]}" for number in range(SUBSCRIBERS)]
    clients = [await listen(server.url + query, HEADERS, MESSAGE) for query in queries]
    return await _rate(server, clients, seconds, 1)


async def watchers(server: Fed, seconds: float, _events: int) -> Measurement:
    """Events a second, of all watchers together; each wants everything."""
    clients = [await listen(server.url, HEADERS, b'"event":"thread_') for _ in range(WATCHERS)]
    threads = await _rate(server, clients, seconds, FRAMES_A_MESSAGE - 1)
    return replace(threads, unit="events/s", value=threads.value * FRAMES_A_MESSAGE / (FRAMES_A_MESSAGE - 1))


async def _rate(server: Fed, clients: list[Listener], seconds: float, frames: int) -> Measurement:
    """So many frames are counted of a message. A first order says how many messages fill the time."""
    first = await _seconds(server, clients, Order(0, WARM_UP_MESSAGES), frames)
    count = max(WARM_UP_MESSAGES, int(WARM_UP_MESSAGES / first * seconds))
    before, pushed = usage(server.process.pid), count * frames * len(clients)
    taken = await _seconds(server, clients, Order(WARM_UP_MESSAGES, count), frames)
    return Measurement("push", "messages/s", pushed / taken, spent(before, usage(server.process.pid), pushed))


async def _seconds(server: Fed, clients: list[Listener], order: Order, frames: int) -> float:
    begun = time.perf_counter()
    targets = [client.counted + order.count * frames for client in clients]
    await server.carry_out(order)
    await asyncio.gather(*(client.until(target) for client, target in zip(clients, targets, strict=True)))
    return time.perf_counter() - begun


async def latency(server: Fed, seconds: float, _events: int) -> Measurement:
    """From the commit to one client, at so many events a second."""
    client = await listen(server.url, HEADERS, MESSAGE, keeps_times=True)
    rate = EVENTS_A_SECOND / FRAMES_A_MESSAGE
    await _latencies(server, client, Order(0, WARM_UP_MESSAGES, rate))
    also = await _latencies(server, client, Order(WARM_UP_MESSAGES, int(rate * seconds), rate))
    return Measurement("push", "µs", also["p99_us"], also)


async def _latencies(server: Fed, client: Listener, order: Order) -> dict[str, float]:
    client.arrivals.clear()
    target = client.counted + order.count
    done = await server.carry_out(order)
    await client.until(target)
    late = [(client.arrivals[order.first + number] - at) / 1e9 for number, at in enumerate(done)]
    return percentiles_us([max(seconds, 0.0) for seconds in late])


async def stalled(server: Fed, _seconds: float, events: int) -> Measurement:
    """The p99 of one that reads, without and with others that do not; what these cost, and how soon they are gone."""
    count, pid = events // FRAMES_A_MESSAGE, server.process.pid
    client = await listen(server.url, HEADERS, MESSAGE, keeps_times=True)
    without = await _latencies(server, client, Order(0, count, STALLED_RATE))
    sockets, before = _sockets(pid), private_kib(pid)
    silent = [await stall(server.url, HEADERS) for _ in range(STALLED)]
    peak, freed = Peak(pid), asyncio.ensure_future(_until_free(pid, sockets))
    beside = await _latencies(server, client, Order(count, count, STALLED_RATE))
    also = {"without_us": without["p99_us"], "mib": (peak.end() - before) / KIB_A_MIB}
    also["free_s"] = await freed
    for one in silent:
        one.transport.abort()
    return Measurement("push", "µs", beside["p99_us"], also)


async def replay(server: Fed, _seconds: float, _events: int) -> Measurement:
    """Messages a second of the past as one client gets them, all of them and those of one thread."""
    everything = await _replayed(server, "?since=0&events=message", MESSAGES)
    thread = await _replayed(server, f"?since=0&events=message&threads={LONG_THREAD}", MESSAGES // LONG_THREAD_EACH)
    return Measurement("push", "messages/s", thread, {"everything": everything})


async def _replayed(server: Fed, query: str, count: int) -> float:
    begun = time.perf_counter()
    client = await listen(server.url + query, HEADERS, MESSAGE)
    await client.until(count)
    taken = time.perf_counter() - begun
    client.transport.abort()
    return count / taken


async def handlings(server: Fed, seconds: float, _events: int) -> Measurement:
    """Chains a second beside viewers who name messages, handlings and steps."""
    return await _viewed(server, seconds, "message,handling,step")


async def messages(server: Fed, seconds: float, _events: int) -> Measurement:
    """The same beside viewers who name messages alone."""
    return await _viewed(server, seconds, "message")


async def _viewed(server: Fed, seconds: float, events: str) -> Measurement:
    url = server.url.replace("http", "ws", 1) + f"/ws?events={events}"
    clients = [await listen(url, HEADERS, MESSAGE) for _ in range(VIEWERS)]
    first = await _seconds(server, clients, Order(0, WARM_UP_MESSAGES), MESSAGES_A_CHAIN)
    count = max(WARM_UP_MESSAGES, int(WARM_UP_MESSAGES / first * seconds))
    before = usage(server.process.pid)
    taken = await _seconds(server, clients, Order(0, count), MESSAGES_A_CHAIN)
    return Measurement("push", "chains/s", count / taken, spent(before, usage(server.process.pid), count))


class Peak:
    """The most memory that a process held while it was looked at, in KiB."""

    def __init__(self, pid: int) -> None:
        self.kib = private_kib(pid)
        self._pid = pid
        self._looking = asyncio.ensure_future(self._look())

    async def _look(self) -> None:
        while True:
            self.kib = max(self.kib, private_kib(self._pid))
            await asyncio.sleep(LOOK_SECONDS)

    def end(self) -> int:
        """Look no more; gives the peak."""
        self._looking.cancel()
        return self.kib


async def _until_free(pid: int, sockets: int) -> float:
    """Seconds until the server holds no more sockets than before."""
    begun = time.perf_counter()
    while _sockets(pid) > sockets and time.perf_counter() - begun < FREE_SECONDS:  # noqa: ASYNC110 - of another process
        await asyncio.sleep(LOOK_SECONDS)
    return time.perf_counter() - begun


def _sockets(pid: int) -> int:
    """How many sockets a process holds."""
    held = 0
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # it was closed since
            held += str(each.readlink()).startswith("socket:")
    return held


MEASURES: dict[str, Measure] = {
    "subscribers": subscribers,
    "watchers": watchers,
    "latency": latency,
    "stalled": stalled,
}
ELSEWHERE: dict[str, tuple[Measure, str]] = {
    "replay": (replay, REPLAY),
    "handlings": (handlings, WITH_PUMP),
    "messages": (messages, WITH_PUMP),
}
"""What needs another server than these."""


async def measure(how: Measure, module: str, seconds: float, events: int) -> Measurement:
    server = await fed_server(module)
    try:
        return await how(server, seconds, events)
    finally:
        server.process.kill()
        await server.process.wait()


if __name__ == "__main__":
    bare = {f"bare-{name}": (how, BARE) for name, how in MEASURES.items()}
    kinds = {**{name: (how, OURS) for name, how in MEASURES.items()}, **bare, **ELSEWHERE}
    asked = arguments(__doc__, what=tuple(kinds))
    size = QUICK_STALLED_EVENTS if asked.quick else STALLED_EVENTS
    print(uvloop.run(measure(*kinds[asked.what], asked.seconds, size)).line())
