"""Pause an agent, a thread, the organism: nothing starts from the answer on, and all goes on from there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from organism.events.vocabulary import MessageHandled, MessageStarted, StepStarted
from organism.model.commands import (
    Command,
    Done,
    PauseAgent,
    PauseOrganism,
    PauseThread,
    ResumeAgent,
    ResumeOrganism,
    ResumeThread,
)
from organism.testing import Running
from organism.views.organism import AGENTS
from tests.flows.stage import answers, open_gate, play
from tests.flows.world import MakeWorld

WORKER = """
async def worker(payload: Ask, metadata: HandlerMetadata):
    TRACE.append(payload.text)
    if payload.text == "first":
        await gate("first")
    return HandlerResponse.respond(Told(payload.text))

async def other(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told("other"))
"""

Make = Callable[[str], Command]
KINDS = pytest.mark.parametrize(
    ("pause", "resume"),
    [
        pytest.param(lambda _: PauseAgent(agent="worker"), lambda _: ResumeAgent(agent="worker"), id="agent"),
        pytest.param(lambda t: PauseThread(thread_id=t), lambda t: ResumeThread(thread_id=t), id="thread"),
        pytest.param(lambda _: PauseOrganism(), lambda _: ResumeOrganism(), id="organism"),
    ],
)


async def starts_between(o: Running, paused: int, resumed: int) -> list[str]:
    """The agents that started between the two positions."""
    started = await o.records(MessageStarted)
    return [record.event.agent for record in started if paused < record.position < resumed]


@KINDS
async def test_what_waits_starts_after_the_resume_and_in_order(world: MakeWorld, pause: Make, resume: Make) -> None:
    async with world(WORKER, {"worker": {}}).running() as o:
        first = await o.inject("worker", {"text": "first"})
        thread = first.thread_id
        await o.inject("worker", {"text": "second"}, thread_id=thread)
        paused = await o.do(pause(thread))
        await o.inject("worker", {"text": "third"}, thread_id=thread)
        open_gate(o, "first")
        await o.until(MessageHandled, message=first.message_id)
        resumed = await o.do(resume(thread))
        assert await o.tenant.ended(thread, 10)
        assert await starts_between(o, paused.position, resumed.position) == []
        assert play(o)["TRACE"] == ["first", "second", "third"]


@KINDS
async def test_a_pause_outlives_a_restart(world: MakeWorld, pause: Make, resume: Make) -> None:
    made = world(WORKER, {"worker": {}})
    async with made.running() as o:
        first = await o.inject("worker", {"text": "first"})
        await o.until(MessageStarted)
        paused = await o.do(pause(first.thread_id))
        await o.crash()
    async with made.running() as o:
        open_gate(o, "first")
        await o.inject("worker", {"text": "second"}, thread_id=first.thread_id)
        resumed = await o.do(resume(first.thread_id))
        assert await o.tenant.ended(first.thread_id, 10)
        assert await starts_between(o, paused.position, resumed.position) == []
        assert [reply["text"] for reply in await o.replies(first.thread_id)] == ["first", "second"]


@KINDS
async def test_pausing_twice_or_resuming_what_runs_changes_nothing(world: MakeWorld, pause: Make, resume: Make) -> None:
    async with world(WORKER, {"worker": {}}).running() as o:
        thread = (await o.inject("worker", {"text": "first"})).thread_id
        await o.until(MessageStarted)
        before = o.log.head
        assert isinstance(await o.do(resume(thread)), Done)
        assert o.log.head == before
        paused = await o.do(pause(thread))
        assert isinstance(await o.do(pause(thread)), Done)
        assert o.log.head == paused.position


STEPPER = """
async def worker(payload: Ask, metadata: HandlerMetadata):
    await gate("first")
    TRACE.append("at the step")
    {step}
    return HandlerResponse.respond(Told("went on"))

async def echo(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told(payload.text))

async def touch(key: str):
    return key
"""
STEPS = {"ask": 'await metadata.ask("echo", Ask("x"))', "approve": "await metadata.approve({})"}


@KINDS
@pytest.mark.parametrize("step", STEPS)
async def test_a_running_handler_waits_at_its_next_step(world: MakeWorld, pause: Make, resume: Make, step: str) -> None:
    async with world(STEPPER.format(step=STEPS[step]), {"worker": {"peers": ["echo"]}, "echo": {}}).running() as o:
        thread = (await o.inject("worker", {"text": "x"})).thread_id
        await o.until(MessageStarted)
        await o.do(pause(thread))
        open_gate(o, "first")
        await o.inject("echo", {"text": "meanwhile"})
        assert play(o)["TRACE"] == ["at the step"]
        assert await o.records(StepStarted) == []
        resumed = await o.do(resume(thread))
        begun = await o.until(StepStarted, thread=thread)
    assert begun.position > resumed.position


async def test_what_runs_goes_on_to_its_end_through_steps_that_wait_for_nobody(world: MakeWorld) -> None:
    step = 'await metadata.effect("x", touch); await metadata.now()'
    async with world(STEPPER.format(step=step), {"worker": {}, "echo": {}}).running() as o:
        thread = (await o.inject("worker", {"text": "x"})).thread_id
        await o.until(MessageStarted)
        await o.do(PauseAgent(agent="worker"))
        open_gate(o, "first")
        assert await answers(o, thread) == ["went on"]


async def test_a_paused_agent_takes_injections_and_its_queue_grows(world: MakeWorld) -> None:
    async with world(WORKER, {"worker": {}, "other": {}}).running() as o:
        await o.do(PauseAgent(agent="worker"))
        for _ in range(3):
            await o.inject("worker", {"text": "x"})
        other = await o.inject("other", {"text": "x"}, wait=True)
        row = await o.views.private_row(AGENTS, "worker")
    assert row is not None
    assert (row.public.state, row.public.paused, row.public.queue_depth) == ("paused", True, 3)
    assert other.replies == ({"text": "other"},)


async def test_a_paused_thread_stops_no_other_thread_of_its_agents(world: MakeWorld) -> None:
    async with world(WORKER, {"worker": {}}).running() as o:
        first = await o.inject("worker", {"text": "first"})
        await o.do(PauseThread(thread_id=first.thread_id))
        await o.inject("worker", {"text": "second"}, thread_id=first.thread_id)
        other = await o.inject("worker", {"text": "elsewhere"}, wait=True)
        assert (await o.thread(first.thread_id))["paused"] is True
    assert other.replies == ({"text": "elsewhere"},)
