"""What a page costs: fifty messages of a thread by REST, as fast as it goes, and while the pump has work.

The server is a process of its own, `bench.rest_server` or the bare one; the clients are here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import uvloop

from bench.askers import Askers, asking
from bench.feeding import Fed, Order, fed_server
from bench.load import HOPS_A_CHAIN, WARM_UP_SECONDS, Measurement, arguments, percentiles_us
from bench.rest_server import TOKEN, paths
from bench.usage import spent, usage

OURS, BARE = "bench.rest_server", "bench.limits.bare_rest"
CONNECTIONS = 16
WARM_UP_CHAINS = 500
PACE = 200.0
"""Requests a second where it is the pump that shall have the work."""
LOOKS = 4
"""So many times as long is looked there, since a p99 needs many requests."""

Measure = Callable[[Fed, Askers, float], Awaitable[Measurement]]


async def page(server: Fed, clients: Askers, seconds: float) -> Measurement:
    """Pages a second, of all connections together."""
    await clients.ask(WARM_UP_SECONDS)
    before = usage(server.process.pid)
    taken = await clients.ask(seconds)
    used = spent(before, usage(server.process.pid), len(taken))
    return Measurement("rest", "req/s", len(taken) / seconds, {**percentiles_us(taken), **used})


async def busy(server: Fed, clients: Askers, seconds: float) -> Measurement:
    """The p99 at a pace, while the pump does nothing and while it does half of what it can."""
    most = await _most_chains(server, seconds)
    idle = percentiles_us(await clients.ask(seconds * LOOKS, PACE))
    half = most / 2
    load = asyncio.ensure_future(server.carry_out(Order(0, int(half * seconds * (LOOKS + 1)), half)))
    beside = percentiles_us(await clients.ask(seconds * LOOKS, PACE))
    if load.done():
        raise RuntimeError("The load ended before the requests did: nothing was measured.")
    done = await load
    chains = len(done) / (max(done) - min(done)) * 1e9
    also = {"idle_us": idle["p99_us"], "p50_us": beside["p50_us"], "idle_p50_us": idle["p50_us"]}
    also |= {"hops_a_second": chains * HOPS_A_CHAIN, "share": chains / most}
    return Measurement("rest", "µs", beside["p99_us"], also)


async def _most_chains(server: Fed, seconds: float) -> float:
    """Chains a second, as fast as they go. A first order says how many fill the time."""
    first = await _seconds(server, Order(0, WARM_UP_CHAINS))
    count = max(WARM_UP_CHAINS, int(WARM_UP_CHAINS / first * seconds))
    return count / await _seconds(server, Order(0, count))


async def _seconds(server: Fed, order: Order) -> float:
    begun = time.perf_counter()
    await server.carry_out(order)
    return time.perf_counter() - begun


MEASURES: dict[str, Measure] = {"page": page, "busy": busy}


async def measure(what: str, module: str, seconds: float) -> Measurement:
    server = await fed_server(module)
    try:
        async with asking(server.url, paths(), TOKEN, CONNECTIONS) as clients:
            return await MEASURES[what](server, clients, seconds)
    finally:
        server.process.kill()
        await server.process.wait()


if __name__ == "__main__":
    kinds = {**{name: (name, OURS) for name in MEASURES}, "bare-page": ("page", BARE)}
    asked = arguments(__doc__, what=tuple(kinds))
    print(uvloop.run(measure(*kinds[asked.what], asked.seconds)).line())
