"""What an agent's turn costs, from its message to the end of its thread, beside the bare calls that it makes.

``turn`` is one model call: it takes turns with a listener that only says its message again, and with a bare POST of
the same request. What is left of a turn without those two is the gateway and the turn loop: what is reserved, sent,
heard, settled and recorded, on the disk. ``tool`` is a run of two model calls and a tool between them; ``crowd`` is
500 runs under way at once; ``fold`` makes messages of the entries of runs. The models are ``bench/peer.py``'s.
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

import httpx2
import uvloop

from bench import ours
from bench.agent_runs import measure_runs
from bench.load import Measurement, arguments, percentiles_us
from bench.measures.model_call import by_turns
from bench.memory import KIB_A_MIB, settled_kib
from bench.peer import MODEL, ONE_ANSWER, ONE_TOOL, peer
from organism.projections.run import fold
from organism.testing import Running

CROWD = 500
TURNS, PIECES, TOOLS = 4_000, 16, 4
PATIENCE_S = 60
SYSTEM = "Be brief."
LISTENERS = (
    {
        "name": "thinker",
        "description": "Thinks",
        "agent": True,
        "prompt": SYSTEM,
        "model": MODEL,
        "payload_class": "bench.thinkers.Said",
        "peers": ["add"],
        "max_concurrent": CROWD,
    },
    {
        "name": "add",
        "description": "Adds",
        "payload_class": "bench.thinkers.Sum",
        "handler": "bench.thinkers.add",
        "max_concurrent": CROWD,
    },
    {
        "name": "echo",
        "description": "Says it again",
        "payload_class": "bench.thinkers.Said",
        "handler": "bench.thinkers.echo",
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


async def turn(seconds: float) -> Measurement:
    """The overhead of one model call."""
    with peer(ONE_ANSWER) as url:
        async with thinking(url) as started, httpx2.AsyncClient(trust_env=False) as client:

            async def agent() -> None:
                await say(started, "thinker")

            async def listener() -> None:
                await say(started, "echo")

            async def bare() -> None:
                body = {"model": MODEL, "messages": [{"role": "user", "content": "Hello!"}], "stream": True}
                async with client.stream("POST", f"{url}/chat/completions", json=body) as answer:
                    async for _ in answer.aiter_bytes():
                        pass

            await agent()
            await hold_answered(started)
            taken = await by_turns((agent, listener, bare), seconds)
    agent_us, listener_us, bare_us = [percentiles_us(each)["p50_us"] for each in taken]
    also = {"agent_us": agent_us, "listener_us": listener_us, "bare_us": bare_us}
    return Measurement("organism", "ms", (agent_us - listener_us - bare_us) / 1e3, also)


async def tool(seconds: float) -> Measurement:
    """Runs of two calls and a tool."""
    with peer(ONE_TOOL) as url:
        async with thinking(url) as started:

            async def run() -> None:
                await say(started, "thinker")

            await run()
            await hold_answered(started)
            return await measure_runs("organism", run, seconds)


async def crowd(seconds: float) -> Measurement:
    """Runs under way at once: what the whole process holds while each of them waits for words of its model."""
    answer = {**ONE_ANSWER[0], "drip_s": seconds}
    with peer((answer,)) as url:
        async with thinking(url) as started:
            runs = asyncio.gather(*(say(started, "thinker") for _ in range(CROWD)))
            await _until_reserved(started, CROWD)
            most = settled_kib()
            await runs
    return Measurement("organism", "MiB", most / KIB_A_MIB)


async def _until_reserved(started: Running, calls: int) -> None:
    async for events in started.log.follow(0):
        calls -= sum(event.type == "budget_reserved" for event in events)
        if calls <= 0:
            return


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


async def hold_answered(started: Running) -> None:
    """Raise if the run before this did not do what is measured."""
    dead = await started.events("message_dead")
    if dead:
        raise RuntimeError(f"The run ended as a dead letter: {dead[0].data['reason']}")


MEASURES = {"turn": turn, "tool": tool, "crowd": crowd, "fold": fold_entries}


if __name__ == "__main__":
    asked = arguments(__doc__, what=tuple(MEASURES))
    print(uvloop.run(MEASURES[asked.what](asked.seconds)).line())
