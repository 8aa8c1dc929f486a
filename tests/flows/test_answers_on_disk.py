"""A model's answer is on the disk before its handler goes on; how the start of its text is shown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from organism.events.vocabulary import MessageRetried, MessageSent, OrganismStarted, RunMessageStart, StepRecorded
from organism.model.commands import KillThread, PauseAgent, ResumeAgent
from organism.pump.run.run_stream import Block, RunStream
from organism.testing import Running
from tests.flows.disk import Disk, Fault
from tests.flows.speaker import Speaker
from tests.flows.stage import decided, folded_again, folded_live, play
from tests.flows.test_lost_commits import FAULTS, mend
from tests.flows.thinking import agent, thinking
from tests.flows.world import MakeWorld, World

SOURCE = """
async def counter(payload: Ask, metadata: HandlerMetadata):
    TRACE.append(payload.text)
    return HandlerResponse.respond(Told("counted"))

async def talker(payload: Ask, metadata: HandlerMetadata):
    said = await metadata.complete([{"role": "user", "content": payload.text}], block="m1")
    TRACE.append(said.text)
    return HandlerResponse.respond(Told(said.text))
"""
TWICE = """
from organism import CompleteError

async def talker(payload: Ask, metadata: HandlerMetadata):
    try:
        said = await metadata.complete([{"role": "user", "content": payload.text}], block="m1")
    except CompleteError:
        said = await metadata.complete([{"role": "user", "content": "whole"}], block="m1")
    return HandlerResponse.respond(Told(said.text))
"""
AT_ONCE = ("run_message_start", "run_message_delta", "run_message_end", "step_recorded")


@pytest.fixture
def society(world: MakeWorld) -> World:
    """``counter`` comes first: each world is played by its module."""
    listeners = {"counter": {}, "talker": {}, "thinker": agent(tools=["counter"])}
    return thinking(world, listeners, source=SOURCE).world


@asynccontextmanager
async def followed(o: Running) -> AsyncIterator[list[list[str]]]:
    """The types of the events of each commit, to the one in which a thread ends."""
    commits: list[list[str]] = []

    async def follow() -> None:
        async for records in o.log.follow(o.log.head):
            commits.append([record.type for record in records])
            if "thread_completed" in commits[-1]:
                return

    following = asyncio.ensure_future(follow())
    yield commits
    await following


async def answer_held(o: Running, disk: Disk, speaker: Speaker) -> None:
    """The model answers while no commit ends, and what follows from that is decided."""
    await speaker.at("now")
    await o.pump.settled()
    disk.hold()
    speaker.open("now")
    await decided(o)


def holding(commits: list[list[str]], *types: str) -> bool:
    """Whether one commit has all of these."""
    return any(set(types) <= set(commit) for commit in commits)


async def test_an_answer_that_is_there_at_once_is_shown_and_recorded_in_one_commit(society: World) -> None:
    async with society.running(parts=Speaker().parts()) as o, followed(o) as commits:
        outcome = await o.inject("thinker", {"message": "Hello there"}, wait=True)
    assert [reply["text"] for reply in outcome.replies] == ["Hellothere"]
    assert holding(commits, *AT_ONCE)


async def test_nothing_leaves_a_turn_before_its_answer_is_on_disk(society: World) -> None:
    disk, speaker = Disk(), Speaker()
    async with society.running(parts=replace(speaker.parts(), driver=disk)) as o:
        outcome = await o.inject("thinker", {"message": "@now ?counter"})
        await answer_held(o, disk, speaker)
        assert play(o)["TRACE"] == []
        assert len(speaker.calls) == 1
        disk.release()
        assert await o.tenant.ended(outcome.thread_id, 10)
        assert play(o)["TRACE"] == ["counter"]


@FAULTS
@pytest.mark.parametrize("words", ["@now ?counter", "@now Hello"])
async def test_a_turn_whose_answer_may_be_lost_does_nothing_twice(society: World, fault: Fault, words: str) -> None:
    disk, speaker = Disk(), Speaker()
    async with society.running(parts=replace(speaker.parts(), driver=disk)) as o:
        outcome = await o.inject("thinker", {"message": words})
        await speaker.at("now")
        await o.pump.settled()
        disk.fail(fault)
        speaker.open("now")
        while not o.tenant.recovering:
            await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=0.005)
        await mend(o, disk)
        assert await o.tenant.ended(outcome.thread_id, 10)
        assert len(await o.replies(outcome.thread_id)) == 1
        assert play(o)["TRACE"] == (["counter"] if "counter" in words else [])
        asked_again = 1 if fault is Fault.BEFORE else 0
        assert len(speaker.calls) == words.count("?") + 1 + asked_again
        assert await folded_live(o) == await folded_again(o.log)


async def test_a_turn_of_a_paused_agent_does_not_go_on(society: World) -> None:
    speaker = Speaker()
    async with society.running(parts=speaker.parts()) as o:
        outcome = await o.inject("thinker", {"message": "@now ?counter"})
        await speaker.at("now")
        await o.do(PauseAgent(agent="thinker"))
        speaker.open("now")
        await o.until(StepRecorded)
        assert [record.event.to for record in await o.records(MessageSent)] == ["thinker"]
        await o.do(ResumeAgent(agent="thinker"))
        assert await o.tenant.ended(outcome.thread_id, 10)
        assert play(o)["TRACE"] == ["counter"]


async def test_a_text_that_began_again_and_then_failed_is_over_and_may_begin_again(world: MakeWorld) -> None:
    made, speaker = world(TWICE, {"talker": {}}), Speaker()
    async with made.running(parts=speaker.parts()) as o:
        outcome = await o.inject("talker", {"text": "half @seen << !upstream_error"})
        await o.until(RunMessageStart)
        speaker.open("seen")
        assert await o.tenant.ended(outcome.thread_id, 10)
        assert await o.replies(outcome.thread_id) == ({"text": "whole"},)
        assert await o.records(MessageRetried) == []


async def test_a_fault_in_the_moment_when_a_text_is_shown_makes_the_state_fold_again(
    society: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, faults = RunStream.begin, [ZeroDivisionError()]

    def begin_badly(*arguments: Any) -> Block:
        if faults:
            raise faults.pop()
        return begin(*arguments)

    monkeypatch.setattr(RunStream, "begin", begin_badly)
    speaker = Speaker()
    async with society.running(parts=speaker.parts()) as o:
        outcome = await o.inject("thinker", {"message": "Hello @now there"})
        await o.until(OrganismStarted, life=2)
        speaker.open("now")
        assert await o.tenant.ended(outcome.thread_id, 10)
        assert [reply["text"] for reply in await o.replies(outcome.thread_id)] == ["Hellothere"]


async def test_a_kill_in_the_moment_before_a_text_is_shown_leaves_none(society: World) -> None:
    speaker = Speaker()
    async with society.running(parts=speaker.parts()) as o:
        outcome = await o.inject("thinker", {"message": "half @now"})
        await speaker.at("now")
        await o.do(KillThread(thread_id=outcome.thread_id))
        kinds = [record.type for record in await o.records(thread=outcome.thread_id)]
        assert await folded_live(o) == await folded_again(o.log)
    assert kinds[-1] == "thread_killed"
    assert kinds.count("run_message_start") == kinds.count("run_message_end")
