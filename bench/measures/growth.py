"""How the product grows: one point of a curve, over the messages in its log or over its agents.

`load` brings a folder to so many messages, or starts it with so many agents and puts it under load; `start` starts it
again, in a process of its own. A chain leaves four messages in the log: the injection, two hops, and the answer.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from pathlib import Path

import uvloop

from bench import ours
from bench.load import HOPS_A_CHAIN, Measurement
from bench.memory import KIB_A_MIB, settled_kib
from bench.places import SCRATCH
from organism.testing import Running
from organism.views.views import Query

MESSAGES_A_CHAIN = HOPS_A_CHAIN + 1
IN_FLIGHT = 64
MOST_TIMED_CHAINS = 5_000
"""The rate is that of the last chains, beside all that lies in the log by then."""
REST_SECONDS = 1.0
"""So long after the load nothing waits for its rows any more."""
OVER = ("messages", "agents")


def folder_of(over: str, count: int) -> Path:
    """The messages of all points lie in one folder, the agents of each in its own."""
    return SCRATCH / f"growth-{over}" if over == "messages" else SCRATCH / f"growth-{over}" / str(count)


def config_of(over: str, count: int) -> Path:
    return ours.CONFIG if over == "messages" else ours.config_with_agents(folder_of(over, count).parent, count)


async def load(over: str, count: int, folder: Path) -> Measurement:
    agents = count if over == "agents" else 0
    async with ours.organism(folder, config_of(over, count)) as started:
        if not agents:
            present = (await started.tenant.views.rows("messages", Query(limit=1))).total
            await _chains(started, max(0, (count - present) // MESSAGES_A_CHAIN - MOST_TIMED_CHAINS), agents)
        chains = min(MOST_TIMED_CHAINS, count // MESSAGES_A_CHAIN) if not agents else MOST_TIMED_CHAINS
        began = time.perf_counter()
        await _chains(started, chains, agents)
        rate = chains * HOPS_A_CHAIN / (time.perf_counter() - began)
        await asyncio.sleep(REST_SECONDS)
        memory = settled_kib() / KIB_A_MIB
    return Measurement("organism", "hops/s", rate, {"memory_mib": memory, "disk_mib": _mib_of_files(folder)})


def _mib_of_files(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / (KIB_A_MIB * KIB_A_MIB)


async def _chains(started: Running, count: int, agents: int) -> None:
    """So many chains, ``IN_FLIGHT`` at once; each begins at another agent, if there are many."""
    numbers = iter(range(count))

    async def slot() -> None:
        for number in numbers:
            first = f"greeter-{number % agents}" if agents else "greeter"
            await ours.chain(started, f"chain {number}", first)

    await asyncio.gather(*(slot() for _ in range(IN_FLIGHT)))


async def start(over: str, count: int, folder: Path) -> Measurement:
    """Until it is ready for work, in a process that has imported everything."""
    began = time.perf_counter()
    async with ours.organism(folder, config_of(over, count)):
        return Measurement("organism", "s", time.perf_counter() - began)


MEASURES = {"load": load, "start": start}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=MEASURES)
    parser.add_argument("over", choices=OVER)
    parser.add_argument("count", type=int)
    asked, _ = parser.parse_known_args()
    folder = folder_of(asked.over, asked.count)
    folder.mkdir(parents=True, exist_ok=True)
    print(uvloop.run(MEASURES[asked.what](asked.over, asked.count, folder)).line())


if __name__ == "__main__":
    main()
