"""Runs of an agent, from its message to the end of its thread, on the disk.

``crowd`` is 500 runs under way at once; ``fold`` makes messages of the entries of runs. The model is the
server of the tests (``tests/agents/peer``), a process of its own.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvloop

from bench import ours
from bench.load import Measurement, arguments
from bench.memory import KIB_A_MIB, settled_kib
from organism.testing import Running
from organism.views.run import fold
from tests.agents.peer.answers import Answer
from tests.agents.peer.steering import Peer, peer_running, steering_client

CROWD = 500
TURNS, PIECES, TOOLS = 4_000, 16, 4
PATIENCE_S = 60
MODEL = "m"
SYSTEM, WORDS = "Be brief.", "Hello, and welcome to the society. How can I help you?"
LISTENERS = (
    {
        "name": "thinker",
        "description": "Thinks",
        "agent": True,
        "prompt": SYSTEM,
        "model": MODEL,
        "payload_class": "bench.thinkers.Said",
        "max_concurrent": CROWD,
    },
)


def config(folder: Path, url: str) -> Path:
    """An organism whose agent asks the model at ``url``. It is JSON, which every reader of YAML takes."""
    model = {"provider": "openai", "base_url": url, "max_concurrent": CROWD}
    limits = {"max_concurrent_handlers": 2 * CROWD, "max_queue_per_agent": 2 * CROWD}
    organism = {"name": "thinking", "imports": ["bench.thinkers"]}
    place = folder / "organism.yaml"
    place.write_text(
        json.dumps({"organism": organism, "limits": limits, "models": {MODEL: model}, "listeners": LISTENERS}), "utf-8"
    )
    return place


@asynccontextmanager
async def thinking(url: str) -> AsyncIterator[Running]:
    """The organism on a disk."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        async with ours.organism(Path(folder) / "data", config(Path(folder), url)) as started:
            yield started


async def say(started: Running, to: str) -> None:
    """One turn, until its thread has ended and all of it is on the disk."""
    outcome = await started.inject(to, {"message": "Hello!"})
    if not await started.tenant.ended(outcome.thread_id, PATIENCE_S):
        raise TimeoutError(f"{to} is still at it after {PATIENCE_S} s.")


async def crowd(seconds: float) -> Measurement:
    """Runs under way at once: what the process holds while the model has every request and drips its answers."""
    with peer_running() as place:
        async with steering_client() as client, thinking(f"{place}/v1") as started:
            peer = Peer(place, client)
            await peer.script(Answer(text=WORDS, pieces=8, drip_s=seconds, times=0))
            runs = asyncio.gather(*(say(started, "thinker") for _ in range(CROWD)))
            await peer.until(requests=CROWD)
            most = settled_kib()
            await runs
    return Measurement("organism", "MiB", most / KIB_A_MIB)


async def fold_entries(seconds: float) -> Measurement:
    """Turns of 16 pieces of text and four tools each."""
    entries = [{"type": kind, "data": data} for number in range(TURNS) for kind, data in turn_entries(number)]
    rates: list[float] = []
    end = time.perf_counter() + seconds
    while not rates or time.perf_counter() < end:
        begun = time.perf_counter()
        fold(entries, "stop")
        rates.append(len(entries) / (time.perf_counter() - begun))
    return Measurement("organism", "entries/s", sorted(rates)[len(rates) // 2])


def turn_entries(number: int) -> Iterator[tuple[str, dict[str, Any]]]:
    block, pieces = f"say-{number}", ["word "] * PIECES
    yield "message_start", {"id": block}
    for place, piece in enumerate(pieces):
        yield "message_delta", {"id": block, "delta": piece, "offset": place * len(piece)}
    yield "message_end", {"id": block}
    for call in range(TOOLS):
        name = f"call-{number}-{call}"
        yield "tool_call", {"id": name, "name": "add", "input": {"left": 40, "right": 2}}
        yield "tool_result", {"id": name, "output": {"value": 42}, "isError": False}


MEASURES = {"crowd": crowd, "fold": fold_entries}


if __name__ == "__main__":
    asked = arguments(__doc__, what=tuple(MEASURES))
    print(uvloop.run(MEASURES[asked.what](asked.seconds)).line())
