"""The product on a log of a million events.

Its start by folding all of them (`fold`), its start from a snapshot (`snapshot`), and a page of threads as of any
position (`past`). `build` makes the log, by the load of the other rows, unless it is there. The time of a start is that
of the start alone, from the first line of the config to ready for work, in a process that has imported everything; the
file is in the page cache.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from random import Random

import uvloop

from bench import ours
from bench.load import Measurement, arguments
from bench.places import events_wanted, log_folder

EVENTS_A_CHAIN = 13
"""About; what counts is what lies in the log afterwards."""
IN_FLIGHT = 128
LOOKS = 101


async def build(folder: Path, events: int) -> Measurement:
    """A log of at least so many events, all of whose threads have ended. One that this very code made is kept."""
    if ours.read_stamp(folder) != ours.source_digest():
        ours.empty(folder)
    while (missing := events - ours.count_events(folder)) > 0:
        await _add_chains(folder, missing // EVENTS_A_CHAIN + IN_FLIGHT)
    ours.write_stamp(folder, ours.source_digest())
    return Measurement("log", "events", ours.count_events(folder))


async def _add_chains(folder: Path, count: int) -> None:
    async with ours.organism(folder) as started:
        numbers = iter(range(count))

        async def slot() -> None:
            for number in numbers:
                await ours.chain(started, f"chain {number}")

        await asyncio.gather(*(slot() for _ in range(IN_FLIGHT)))


async def start_seconds(folder: Path) -> float:
    began = time.perf_counter()
    async with ours.organism(folder):
        return time.perf_counter() - began


async def fold(folder: Path) -> Measurement:
    ours.forget_snapshots(folder)
    count = ours.count_events(folder)
    seconds = await start_seconds(folder)
    return Measurement("organism", "events/s", count / seconds, {"seconds": seconds, "events": count})


async def snapshot(folder: Path) -> Measurement:
    """The start before the measured one, which stopped in peace, has left a snapshot."""
    await start_seconds(folder)
    count = ours.count_events(folder)
    return Measurement("organism", "s", await start_seconds(folder), {"events": count})


async def past(folder: Path) -> Measurement:
    """The first fifty threads, newest activity first, at positions drawn from the whole log."""
    places = Random(1)
    async with ours.organism(folder) as started:
        seconds = [await ours.page_of_the_past(started, places.random()) for _ in range(LOOKS)]
    ordered = sorted(seconds)
    return Measurement("organism", "s", ordered[LOOKS // 2], {"p99_s": ordered[-2]})


async def measure(what: str, *, is_quick: bool) -> Measurement:
    folder = log_folder(is_quick=is_quick)
    if what == "build":
        return await build(folder, events_wanted(is_quick=is_quick))
    return await {"fold": fold, "snapshot": snapshot, "past": past}[what](folder)


if __name__ == "__main__":
    options = arguments(__doc__, what=("build", "fold", "snapshot", "past"))
    print(uvloop.run(measure(options.what, is_quick=options.quick)).line())
