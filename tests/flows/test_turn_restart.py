"""A turn outlives its process: what was answered is not asked again, and the run goes on where it stood."""

from __future__ import annotations

from typing import Any

import pytest

from organism.events.vocabulary import OrganismStarted, StepRecorded, StepStarted
from organism.testing import Running
from tests.flows.stage import at_gate, open_gate, play
from tests.flows.thinking import Thinking, agent, call, calls, run_of, says, thinking
from tests.flows.world import MakeWorld

SOURCE = """
async def counter(payload: Ask, metadata: HandlerMetadata):
    TRACE.append(payload.text)
    return HandlerResponse.respond(Told(f"{payload.text} ran"))

async def slow(payload: Ask, metadata: HandlerMetadata):
    TRACE.append("slow")
    await gate("slow")
    return HandlerResponse.respond(Told("at last"))
"""
LISTENERS = {"counter": {}, "slow": {}, "thinker": agent(tools=["counter", "slow"], peers=["system.todo"])}
SCRIPT = (
    {"when": {"round": 0}, **calls(call("counter", text="one"), call("counter", text="two"), text="First.")},
    {"when": {"round": 1}, **calls(call("slow"), call("counter", text="three"), text="Second.")},
    {"when": {"round": 2}, **calls(call("todo_until", wait_for="Told"), text="Third.")},
    {"when": {"round": 3}, **says("Done.")},
)
SEVENTH = 7
"""The step that asks for "three": a reminder, two models' calls and three requests lie before it."""


async def of_one_life(thinker: Thinking) -> list[tuple[str, dict[str, Any]]]:
    """The run as it is where nothing dies."""
    async with thinker.running(on_disk=False) as o:
        open_gate(o, "slow")
        outcome = await o.inject("thinker", {"message": "Go."}, wait=True)
        return without_ids(await run_of(o, outcome.message_id))


def without_ids(run: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    """The reminder's id is another in each run."""
    return [(kind, {} if '{"id":' in str(data.get("output")) else data) for kind, data in run]


async def dies_in_slow(o: Running) -> list[str]:
    """Kill it while the slow tool runs and all others have answered; gives what ran in this life."""
    await at_gate(o, "slow")
    await o.until(StepRecorded, step=SEVENTH)
    ran: list[str] = list(play(o)["TRACE"])
    await o.crash()
    return ran


@pytest.mark.parametrize("deaths", [1, 2])
async def test_a_turn_that_dies_in_a_tool_goes_on_with_all_that_was_answered(world: MakeWorld, deaths: int) -> None:
    thinker = thinking(world, LISTENERS, *SCRIPT, source=SOURCE)
    wanted = await of_one_life(thinker)
    ran, asked = [], 0
    async with thinker.running() as o:
        injected = await o.inject("thinker", {"message": "Go."})
        ran += await dies_in_slow(o)
        asked += len(thinker.models.calls)
    for _ in range(deaths - 1):
        async with thinker.running() as o:
            ran += await dies_in_slow(o)
            asked += len(thinker.models.calls)
    async with thinker.running() as o:
        open_gate(o, "slow")
        assert await o.tenant.ended(injected.thread_id, 10)
        ran += play(o)["TRACE"]
        asked += len(thinker.models.calls)
        assert without_ids(await run_of(o, injected.message_id)) == wanted
        assert (await o.replies(injected.thread_id))[0]["text"] == "Done."
        recorded = [(record.event.message, record.event.step) for record in await o.records(StepRecorded)]
    assert asked == len(SCRIPT)
    assert ran == ["one", "two", "slow", "three", *["slow"] * deaths]
    assert len(recorded) == len(set(recorded))


async def test_a_turn_that_dies_in_a_model_call_makes_that_call_again_and_no_other(world: MakeWorld) -> None:
    thinker = thinking(world, LISTENERS, *SCRIPT, source=SOURCE)
    wanted = await of_one_life(thinker)
    hanging = {"when": {"round": 1}, "text": "Sec", "fault": {"kind": "hang"}}
    thinker.script(SCRIPT[0], hanging)
    async with thinker.running() as o:
        injected = await o.inject("thinker", {"message": "Go."})
        await o.until(StepStarted, kind="complete", step=5)
        await o.crash()
    thinker.script(*SCRIPT)
    async with thinker.running() as o:
        open_gate(o, "slow")
        assert await o.tenant.ended(injected.thread_id, 10)
        assert without_ids(await run_of(o, injected.message_id)) == wanted
        assert play(o)["TRACE"] == ["slow", "three"]
    assert [len(messages) for messages in thinker.models.calls] == [5, 8, 10]


@pytest.mark.thorough
@pytest.mark.parametrize("events", range(2, 32, 3))
async def test_a_turn_that_dies_after_any_event_comes_to_the_same_and_asks_for_no_recorded_answer(
    world: MakeWorld, events: int
) -> None:
    thinker = thinking(world, LISTENERS, *SCRIPT, source=SOURCE)
    wanted = await of_one_life(thinker)
    async with thinker.running() as o:
        open_gate(o, "slow")
        injected = await o.inject("thinker", {"message": "Go."})
        async for _ in o.log.follow(injected.position + events - 1):
            break
        await o.crash()
    async with thinker.running() as o:
        open_gate(o, "slow")
        assert await o.tenant.ended(injected.thread_id, 10)
        assert without_ids(await run_of(o, injected.message_id)) == wanted
        assert [reply["text"] for reply in await o.replies(injected.thread_id)] == ["Done."]
        born = (await o.records(OrganismStarted))[-1].position
        recorded = [record for record in await o.records(StepRecorded) if record.event.kind == "complete"]
        assert len(thinker.models.calls) == sum(record.position > born for record in recorded)
    assert len({record.event.step for record in recorded}) == len(recorded) == len(SCRIPT)
