"""Clocks: what is held up does not age, a handler's time is its own, the log's never goes back (G14)."""

from __future__ import annotations

import pytest

from organism.events.vocabulary import (
    ApprovalRequested,
    MessageDead,
    MessageHandled,
    MessageSent,
    MessageStarted,
    StepRecorded,
)
from organism.testing import Running
from tests.flows.stage import TurnedTime, answers, code_of, open_gate, pause_of
from tests.flows.world import MakeWorld, World

CHAIN = """
async def first(payload: Ask, metadata: HandlerMetadata):
    try:
        reply = await metadata.ask("middle", Ask("x"), timeout=5)
    except AskError as error:
        reply = Told(error.code)
    return HandlerResponse.respond(reply)

async def middle(payload: Ask, metadata: HandlerMetadata):
    reply = await metadata.ask("last", Ask("x"), timeout=4)
    return HandlerResponse.respond(reply)

async def last(payload: Ask, metadata: HandlerMetadata):
    await gate("last")
    return HandlerResponse.respond(Told("at last"))
"""
LISTENERS = {"first": {"peers": ["middle"]}, "middle": {"peers": ["last"]}, "last": {"timeout_s": 1000}}


def chain(world: MakeWorld, **top: object) -> World:
    """Three in a row, the last of which answers when its gate is opened."""
    return world(CHAIN, LISTENERS, **top)


async def hold(o: Running, time: TurnedTime, what: str, thread: str) -> None:
    """Pause it, let much time pass, resume it."""
    pause, resume = pause_of(what, thread)
    await o.do(pause)
    await time.ticked(o)
    await time.passes(o, 1000)
    assert await o.records(StepRecorded) == []
    await o.do(resume)


@pytest.mark.parametrize("what", ["last", "middle", "thread", "organism"])
async def test_an_ask_that_a_pause_holds_up_does_not_age_wherever_it_is(world: MakeWorld, what: str) -> None:
    time = TurnedTime()
    async with chain(world).running(parts=time.parts()) as o:
        thread = (await o.inject("first", {"text": "x"})).thread_id
        await o.until(MessageStarted, agent="last")
        await hold(o, time, what, thread)
        open_gate(o, "last")
        assert await answers(o, thread) == ["at last"]


async def test_the_time_before_and_after_a_pause_counts(world: MakeWorld) -> None:
    time = TurnedTime()
    async with chain(world).running(parts=time.parts()) as o:
        thread = (await o.inject("first", {"text": "x"})).thread_id
        await o.until(MessageStarted, agent="last")
        await time.passes(o, 3)
        await hold(o, time, "last", thread)
        time.turn(3)
        recorded = await o.until(StepRecorded, thread=thread, agent="middle")
    assert code_of(recorded.event) == "timeout"


@pytest.mark.parametrize("what", ["middle", "thread"])
async def test_an_ask_that_was_held_up_over_a_restart_does_not_age_either(world: MakeWorld, what: str) -> None:
    time = TurnedTime()
    made = chain(world)
    async with made.running(parts=time.parts()) as o:
        thread = (await o.inject("first", {"text": "x"})).thread_id
        await o.until(MessageStarted, agent="last")
        await o.do(pause_of(what, thread)[0])
        await time.ticked(o)
        await time.passes(o, 1000)
        await o.crash()
    async with made.running(parts=time.parts(2)) as o:
        await time.ticked(o)
        assert await o.records(StepRecorded) == []
        await o.do(pause_of(what, thread)[1])
        open_gate(o, "last")
        assert await answers(o, thread) == ["at last"]


@pytest.mark.parametrize("what", ["waiter", "organism"])
async def test_an_approval_does_not_age_while_its_handler_is_held_up(world: MakeWorld, what: str) -> None:
    time = TurnedTime()
    made = world(
        """
        async def waiter(payload: Ask, metadata: HandlerMetadata):
            return HandlerResponse.respond(Told((await metadata.approve({})).decision))
        """,
        {"waiter": {}},
        limits={"approval_expires_s": 50},
    )
    async with made.running(parts=time.parts()) as o:
        thread = (await o.inject("waiter", {"text": "x"})).thread_id
        await o.until(ApprovalRequested)
        await hold(o, time, what, thread)
        time.turn(60)
        assert await answers(o, thread) == ["expired"]


SLOW = """
async def slow(payload: Ask, metadata: HandlerMetadata):
    await gate("slow")
    return HandlerResponse.respond(Told("made it"))
"""


@pytest.mark.parametrize("what", ["slow", "thread"])
async def test_time_paused_does_not_count_for_a_running_handler(world: MakeWorld, what: str) -> None:
    time = TurnedTime()
    async with world(SLOW, {"slow": {"timeout_s": 10}}, retry={"attempts": 1}).running(parts=time.parts()) as o:
        thread = (await o.inject("slow", {"text": "x"})).thread_id
        await o.until(MessageStarted)
        await time.passes(o, 6)
        pause, resume = pause_of(what, thread)
        await o.do(pause)
        await time.ticked(o)
        await time.passes(o, 7)
        await o.do(resume)
        await time.ticked(o)
        assert await o.records(MessageDead) == []
        time.turn(5)
        dead = await o.until(MessageDead)
    assert dead.event.code == "timeout"


async def test_a_handler_has_its_time_for_itself_and_none_of_it_goes_into_waiting(world: MakeWorld) -> None:
    time = TurnedTime()
    made = world(
        """
        async def asker(payload: Ask, metadata: HandlerMetadata):
            await gate("before")
            await metadata.ask("slow", Ask("x"), timeout=1000)
            await gate("after")
            return HandlerResponse.respond(Told("made it"))
        """
        + SLOW.replace("\n", "\n        "),
        {"asker": {"peers": ["slow"], "timeout_s": 10}, "slow": {"timeout_s": 1000}},
        retry={"attempts": 1},
    )
    async with made.running(parts=time.parts()) as o:
        thread = (await o.inject("asker", {"text": "x"})).thread_id
        await o.until(MessageStarted, agent="asker")
        time.turn(6)
        open_gate(o, "before")
        await o.until(MessageStarted, agent="slow")
        time.turn(500)
        open_gate(o, "slow")
        await o.until(StepRecorded, thread=thread)
        await time.ticked(o)
        assert await o.records(MessageDead) == []
        time.turn(5)
        dead = await o.until(MessageDead)
    assert (dead.event.agent, dead.event.code) == ("asker", "timeout")


async def test_order_and_timeouts_do_not_follow_a_wall_clock_that_goes_back(world: MakeWorld) -> None:
    time = TurnedTime()
    made = world(SLOW, {"slow": {"timeout_s": 10}}, retry={"attempts": 1})
    async with made.running(parts=time.parts()) as o:
        await o.inject("slow", {"text": "x"})
        await o.until(MessageStarted)
        time.wall_ns -= 3_600_000_000_000
        time.monotonic_ns += 11_000_000_000
        dead = await o.until(MessageDead)
        begun_at = dead.at
    time.monotonic_ns = 5_000_000_000
    async with made.running(parts=time.parts(2)) as o:
        records = await o.records()
    assert dead.event.code == "timeout"
    assert [record.at for record in records] == sorted(record.at for record in records)
    assert records[-1].at >= begun_at


async def test_the_log_s_time_jumps_forward_to_the_wall_clock(world: MakeWorld) -> None:
    time = TurnedTime()
    async with world(SLOW, {"slow": {}}).running(parts=time.parts()) as o:
        time.wall_ns += 86_400_000_000_000
        injected = await o.inject("slow", {"text": "x"})
        sent = await o.until(MessageSent, message=injected.message_id)
    assert sent.at == time.wall_ns // 1000


async def test_the_end_of_a_handling_says_how_long_it_took(world: MakeWorld) -> None:
    time = TurnedTime()
    async with world(SLOW, {"slow": {}}).running(on_disk=False, parts=time.parts()) as o:
        await o.inject("slow", {"text": "x"})
        await o.until(MessageStarted)
        time.turn(6)
        open_gate(o, "slow")
        handled = await o.until(MessageHandled, agent="slow")
    assert handled.event.duration == 6_000_000
