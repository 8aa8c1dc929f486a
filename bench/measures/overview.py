"""What a page that shows everything asks for, on the log of the restart rows: activity, graph and snapshot.

Each is asked for by turns, on one connection, at positions drawn from the whole log; nothing else is done meanwhile.
"""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import uvloop

from bench import ours
from bench.askers import asking
from bench.load import Measurement, arguments
from bench.places import log_folder
from bench.rest_server import TOKEN

LOOKS = 101
ACTIVITIES = ("by=position", "by=time", "by=time&buckets=500", "agent=shouter")
WINDOWS_SECONDS = (60, 3600, 86_400)


def paths(head: int) -> dict[str, list[str]]:
    """What is asked for, by name."""
    places = Random(1)
    stretches = [sorted(places.choices(range(head + 1), k=2)) for _ in range(LOOKS)]
    ats = [places.randint(1, head) for _ in range(LOOKS)]
    return {
        "activity": [
            f"/organism/activity?{ACTIVITIES[number % len(ACTIVITIES)]}&after={after}&until={until}"
            for number, (after, until) in enumerate(stretches)
        ],
        "whole": [f"/organism/activity?{ACTIVITIES[number % len(ACTIVITIES)]}" for number in range(LOOKS)],
        "graph": [
            f"/organism/graph?at={at}&window={WINDOWS_SECONDS[number % len(WINDOWS_SECONDS)]}"
            for number, at in enumerate(ats)
        ],
        "snapshot": [f"/organism/snapshot?at={at}" for at in ats],
    }


async def measure(folder: Path) -> Measurement:
    """The milliseconds that half, and 19 of 20, of each took at most."""
    also: dict[str, float] = {}
    async with ours.organism(folder) as started, ours.served(started.organism, TOKEN) as server:
        for name, asked in paths(started.tenant.log.head).items():
            taken = []
            for path in asked:
                async with asking(server.url, [f"/api/v1{path}"], TOKEN, 1) as clients:
                    begun = time.perf_counter()
                    await clients.once()
                    taken.append((time.perf_counter() - begun) * 1e3)
            ordered = sorted(taken)
            also |= {f"{name}_p50_ms": ordered[LOOKS // 2], f"{name}_p95_ms": ordered[LOOKS * 95 // 100]}
    return Measurement("overview", "ms", also["snapshot_p50_ms"], also)


if __name__ == "__main__":
    options = arguments(__doc__)
    print(uvloop.run(measure(log_folder(is_quick=options.quick))).line())
