"""What a hop costs, in bytecodes of the loop's thread: the same on a busy machine as on a quiet one."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest
import uvloop

from organism.testing import Running
from tests.flows.world import MakeWorld

HOPS = 3
CHAINS = 64
MOST_BYTECODES = {1: 10_780, 64: 9_010}
"""By how many chains are in flight, for one hop of a chain, its third of the injection included.

A change may raise a bound only in a commit of its own reason, whose body says by how much and for what.
"""
COUNTED_VERSION = (3, 11)

SOURCE = """
    async def first(payload: Ask, metadata: HandlerMetadata):
        return HandlerResponse(Told(payload.text), to="second")

    async def second(payload: Told, metadata: HandlerMetadata):
        return HandlerResponse(Told(payload.text), to="third")

    async def third(payload: Told, metadata: HandlerMetadata):
        return HandlerResponse(Told(payload.text), to="console")
"""
LISTENERS = {
    "first": {"peers": ["second"]},
    "second": {"payload_class": "Told", "peers": ["third"]},
    "third": {"payload_class": "Told", "peers": ["console"]},
}


@contextmanager
def counted_bytecodes() -> Iterator[list[int]]:
    """Count what this thread executes, but for the frames that run already."""
    count = [0]

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        elif event == "opcode":
            count[0] += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield count
    finally:
        sys.settrace(before)


async def run_chains(o: Running, in_flight: int) -> None:
    """Run the chains, so many at a time."""
    waiting = iter(range(CHAINS))

    async def run() -> None:
        for number in waiting:
            done = await o.inject("first", {"text": f"number {number}"})
            assert await o.tenant.ended(done.thread_id, 60)

    await asyncio.gather(*(run() for _ in range(in_flight)))


@pytest.mark.skipif(
    sys.version_info[:2] != COUNTED_VERSION or sys.implementation.name != "cpython",
    reason="The bounds are counted with CPython 3.11; another version compiles to other bytecodes.",
)
@pytest.mark.parametrize("in_flight", MOST_BYTECODES)
def test_a_hop_stays_within_its_bytecodes(world: MakeWorld, in_flight: int) -> None:
    play = world(SOURCE, LISTENERS)
    counts = []

    async def measure() -> None:
        async with play.running(on_disk=False) as o:
            await run_chains(o, in_flight)
            for _ in range(2):  # the timer of what is due ticks more often on a busy machine
                with counted_bytecodes() as count:
                    await run_chains(o, in_flight)
                counts.append(count[0] // (CHAINS * HOPS))

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # the server's: its iterations are no bytecodes
        runner.run(measure())
    assert min(counts) <= MOST_BYTECODES[in_flight], counts
