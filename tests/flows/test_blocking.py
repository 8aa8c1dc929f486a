"""Handlers that block: in a thread of their own if they say so, reported within a second if they do not (1.4, G7)."""

from __future__ import annotations

import asyncio

from organism.events.vocabulary import LoopBlocked, MessageDead, MessageStarted
from organism.watchdog import BLOCKED_SECONDS
from tests.flows.stage import TurnedTime, answers, play
from tests.flows.world import MakeWorld

BLOCKING = """
import threading, time
BEGUN, GO = threading.Event(), threading.Event()

def blocker(payload: Ask, metadata: HandlerMetadata):
    TRACE.append(threading.current_thread() is threading.main_thread())
    BEGUN.set()
    {body}
    return HandlerResponse.respond(Told("unblocked"))

async def quick(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told("quick"))
"""
LISTENERS = {"blocker": {"blocking": True}, "quick": {}}


async def test_a_blocking_handler_answers_like_any_other_from_a_thread_of_its_own(world: MakeWorld) -> None:
    async with world(BLOCKING.format(body="pass"), LISTENERS).running() as o:
        outcome = await o.inject("blocker", {"text": "x"}, wait=True)
        assert play(o)["TRACE"] == [False]
    assert outcome.replies == ({"text": "unblocked"},)


async def test_one_that_blocks_in_its_own_thread_holds_up_nobody_else(world: MakeWorld) -> None:
    made = world(BLOCKING.format(body="GO.wait(20)"), LISTENERS)
    async with made.running(blocked_seconds=BLOCKED_SECONDS) as o:
        blocked = [await o.inject("blocker", {"text": "x"}) for _ in range(4)]
        assert await asyncio.to_thread(play(o)["BEGUN"].wait, 10)
        quick = await o.inject("quick", {"text": "x"}, wait=True)
        play(o)["GO"].set()
        for each in blocked:
            assert await answers(o, each.thread_id) == ["unblocked"]
        assert [each for each in await o.records(LoopBlocked) if "actors/play.py" in each.event.stack] == []
    assert quick.replies == ({"text": "quick"},)


async def test_a_blocking_handler_that_hangs_is_timed_out_and_its_answer_is_lost(world: MakeWorld) -> None:
    time = TurnedTime()
    made = world(BLOCKING.format(body="GO.wait(20)"), LISTENERS, retry={"attempts": 1})
    async with made.running(parts=time.parts()) as o:
        hung = await o.inject("blocker", {"text": "x"})
        assert await asyncio.to_thread(play(o)["BEGUN"].wait, 10)
        time.turn(31)
        dead = await o.until(MessageDead)
        play(o)["GO"].set()
        await o.inject("quick", {"text": "x"}, wait=True)
        assert await o.replies(hung.thread_id) == ()
    assert dead.event.code == "timeout"


async def test_all_blocking_listeners_together_run_in_no_more_threads_than_the_limit_and_time_counts_from_there(
    world: MakeWorld,
) -> None:
    source = """
    import threading
    GO = threading.Event()

    def blocker(payload: Ask, metadata: HandlerMetadata):
        TRACE.append(payload.text)
        GO.wait(20)
    """
    time = TurnedTime()
    listeners = {name: {"handler": "blocker", "blocking": True} for name in ("one", "two")}
    made = world(source, listeners, limits={"max_blocking_threads": 1}, retry={"attempts": 1})
    async with made.running(parts=time.parts()) as o:
        first = await o.inject("one", {"text": "first"})
        second = await o.inject("two", {"text": "second"})
        await o.until(MessageStarted, message=second.message_id)
        time.turn(31)
        dead = await o.until(MessageDead)
        play(o)["GO"].set()
        assert await o.tenant.ended(second.thread_id, 10)
        assert (dead.event.message, dead.event.code) == (first.message_id, "timeout")
        assert play(o)["TRACE"] == ["first", "second"]
        assert len(await o.records(MessageDead)) == 1


async def test_a_handler_that_blocks_the_loop_is_reported_with_its_line_first_and_all_go_on(world: MakeWorld) -> None:
    made = world(
        """
        import time

        async def rude(payload: Ask, metadata: HandlerMetadata):
            time.sleep(1.1)
            return HandlerResponse.respond(Told("sorry"))

        async def quick(payload: Ask, metadata: HandlerMetadata):
            return HandlerResponse.respond(Told("quick"))
        """,
        {"rude": {}, "quick": {}},
    )
    async with made.running(blocked_seconds=BLOCKED_SECONDS) as o:
        rude, quick = await asyncio.gather(
            o.inject("rude", {"text": "x"}, wait=True), o.inject("quick", {"text": "x"}, wait=True)
        )
        blocked = (await o.until(LoopBlocked)).event
    first, code = blocked.stack.splitlines()[:2]
    assert first.startswith("actors/play.py:")
    assert (first.endswith(" in rude"), code) == (True, "    time.sleep(1.1)")
    assert blocked.duration > BLOCKED_SECONDS * 1e6
    assert (rude.replies, quick.replies) == (({"text": "sorry"},), ({"text": "quick"},))
