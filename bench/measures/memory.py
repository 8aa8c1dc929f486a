"""What the product needs of memory: for an agent, an open thread, a WebSocket subscriber, and after many messages.

Memory is what the process holds for itself (`RssAnon`), after it gave back what is free; pages of the files that SQLite
maps are not counted. Each figure is a difference over many, so that what is there once does not count.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from argparse import Namespace
from asyncio.subprocess import DEVNULL
from collections.abc import Awaitable, Callable
from pathlib import Path

import uvloop

from bench import ours
from bench.feeding import free_port
from bench.load import HOPS_A_CHAIN, Measurement, arguments
from bench.memory import KIB_A_MIB, settled_kib
from bench.subscribers import QUICK_SUBSCRIBERS, SUBSCRIBERS, Server, kib_a_subscriber
from organism.testing import Running

TOKEN = "bench-token-bench-token-bench-token"  # noqa: S105 - of a server that lives for this measurement
FEW_AGENTS, MANY_AGENTS = 10, 1010
WARM_UP_THREADS, THREADS, QUICK_THREADS = 2_000, 20_000, 5_000
WARM_UP_MESSAGES, MESSAGES, QUICK_MESSAGES = 20_000, 100_000, 10_000
IN_FLIGHT = 64
REST_SECONDS = 1.0
"""So long after the load nothing waits for its rows any more; meanwhile that is 16 MiB at most, of 16,384 events."""

Act = Callable[[str], Awaitable[None]]


async def agent(folder: Path, *, is_quick: bool) -> Measurement:
    """The same process starts with few agents, and then with many."""
    few, many = [await _memory_with_agents(folder, count) for count in (FEW_AGENTS, MANY_AGENTS)]
    return Measurement("organism", "KiB", (many - few) / (MANY_AGENTS - FEW_AGENTS))


async def _memory_with_agents(folder: Path, count: int) -> int:
    config = ours.config_with_agents(folder, count)
    async with ours.organism(folder / f"log-{count}", config):
        return settled_kib()


async def thread(folder: Path, *, is_quick: bool) -> Measurement:
    """Threads whose first message waits for a paused agent; what is bounded, as the newest events, is full before."""
    count = QUICK_THREADS if is_quick else THREADS
    async with ours.organism(folder) as started:

        async def begin(key: str) -> None:
            await ours.open_thread(started, key)

        await _chains(started, WARM_UP_MESSAGES)
        await ours.hold_up(started)
        await _many(begin, WARM_UP_THREADS)
        before = await _rested_kib()
        await _many(begin, count)
        return Measurement("organism", "KiB", (await _rested_kib() - before) / count)


async def growth(folder: Path, *, is_quick: bool) -> Measurement:
    """Chains that come and go."""
    count = QUICK_MESSAGES if is_quick else MESSAGES
    async with ours.organism(folder) as started:
        await _chains(started, WARM_UP_MESSAGES)
        before = await _rested_kib()
        await _chains(started, count)
        return Measurement("organism", "MiB", (await _rested_kib() - before) / KIB_A_MIB)


async def _rested_kib() -> int:
    await asyncio.sleep(REST_SECONDS)
    return settled_kib()


async def _chains(started: Running, messages: int) -> None:
    """Chains, one after another in each slot, until so many messages were handled."""

    async def chain(key: str) -> None:
        await ours.chain(started, key)

    await _many(chain, messages // HOPS_A_CHAIN)


async def _many(act: Act, count: int) -> None:
    """The act ``count`` times, ``IN_FLIGHT`` at once."""
    numbers = iter(range(count))

    async def slot() -> None:
        for number in numbers:
            await act(f"number {number}")

    await asyncio.gather(*(slot() for _ in range(IN_FLIGHT)))


async def subscriber(folder: Path, *, is_quick: bool) -> Measurement:
    """The real server in a process of its own; a subscriber has got its `connected` frame."""
    port = free_port()
    environment = {**os.environ, "ORGANISM_TOKEN": TOKEN}
    process = await asyncio.create_subprocess_exec(*ours.serve(folder, port), env=environment, stdout=DEVNULL)
    try:
        server = Server(process.pid, f"ws://127.0.0.1:{port}/ws", {"Authorization": f"Bearer {TOKEN}"})
        kib = await kib_a_subscriber(server, QUICK_SUBSCRIBERS if is_quick else SUBSCRIBERS)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
    return Measurement("organism", "KiB", kib)


MEASURES = {"agent": agent, "thread": thread, "growth": growth, "subscriber": subscriber}


async def measure(options: Namespace) -> Measurement:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        return await MEASURES[options.what](Path(folder), is_quick=options.quick)


if __name__ == "__main__":
    print(uvloop.run(measure(arguments(__doc__, what=tuple(MEASURES)))).line())
