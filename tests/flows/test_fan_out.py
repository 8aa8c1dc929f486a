"""A handler that sends thousands of messages: each costs what it costs alone, however many lie in the unit with it."""

from __future__ import annotations

import time

import pytest

from organism.testing import Running
from tests.flows.stage import play
from tests.flows.world import MakeWorld

SOURCE = """
async def fan(payload: Ask, metadata: HandlerMetadata):
    return [HandlerResponse(Ask(str(n)), to="sink") for n in range(int(payload.text))]

async def sink(payload: Ask, metadata: HandlerMetadata):
    TRACE.append(int(payload.text))
"""
FEW, MANY = 400, 1600
"""Both are more than the payloads that a mailbox keeps in memory."""


async def work_of(o: Running, messages: int) -> float:
    """The processor's seconds that a fan-out of so many takes."""
    begun = time.process_time()
    await o.inject("fan", {"text": str(messages)}, wait=True, seconds=120)
    return time.process_time() - begun


@pytest.mark.thorough
@pytest.mark.parametrize("on_disk", [False, True])
async def test_the_work_of_a_fan_out_grows_with_its_messages_and_no_faster(world: MakeWorld, *, on_disk: bool) -> None:
    async with world(SOURCE, {"fan": {"peers": ["sink"], "timeout_s": 120}, "sink": {}}).running(on_disk=on_disk) as o:
        await work_of(o, 1)
        few, many = await work_of(o, FEW), await work_of(o, MANY)
        assert play(o)["TRACE"] == [0, *range(FEW), *range(MANY)]
    assert many / few < 2 * MANY / FEW, f"{FEW} messages: {few:.2f} s, {MANY}: {many:.2f} s"
