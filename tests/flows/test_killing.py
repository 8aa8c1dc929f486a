"""Kill a thread: one unit ends its whole tree, and what its handlers still do comes to nothing."""

from __future__ import annotations

import asyncio

import pytest

from organism import errors
from organism.bootstrap import Parts
from organism.errors import AlreadyResolved, NotFound
from organism.events.vocabulary import (
    ApprovalCancelled,
    ApprovalRequested,
    MessageHandled,
    MessageRetried,
    MessageStarted,
    OrganismStarted,
    StepRecorded,
    StepStarted,
    ThreadKilled,
)
from organism.model.commands import KillThread, ResolveApproval, ResolveIndeterminate
from organism.pump.decide.decision import Decision
from organism.testing import Running
from tests.flows.disk import Disk
from tests.flows.lawful import ENDS
from tests.flows.stage import at_gate, child_of, code_of, decided, open_gate, pairs, play
from tests.flows.world import MakeWorld, World

SLOW = """
async def slow(payload: Ask, metadata: HandlerMetadata):
    await gate(payload.text)
    TRACE.append(payload.text)
    return HandlerResponse.respond(Told("too late"))
"""


async def kill(o: Running, thread: str) -> int:
    """Kill it; gives the position."""
    return (await o.do(KillThread(thread_id=thread))).position


async def test_what_runs_is_handled_as_killed_what_waits_is_dropped_and_the_end_is_last(world: MakeWorld) -> None:
    async with world(SLOW, {"slow": {}}).running() as o:
        first = await o.inject("slow", {"text": "1"})
        for text in ("2", "3"):
            await o.inject("slow", {"text": text}, thread_id=first.thread_id)
        position = await kill(o, first.thread_id)
        records = await o.records(thread=first.thread_id)
        row = await o.thread(first.thread_id)
    ends = pairs([record for record in records if isinstance(record.event, ENDS)], "outcome")
    assert ends == [("message_handled", "killed"), ("message_dropped", None), ("message_dropped", None)]
    assert (records[-1].type, records[-1].position) == ("thread_killed", position)
    assert row["status"] == "killed"
    unit = [record for record in records if isinstance(record.event, (*ENDS, ThreadKilled))]
    assert [record.position for record in unit] == list(range(unit[0].position, position + 1))
    assert len({record.at for record in unit}) == 1


async def test_a_kill_between_a_handler_s_end_and_its_decision_leaves_no_answer(world: MakeWorld) -> None:
    source = """
    async def quick(payload: Ask, metadata: HandlerMetadata):
        CAME.setdefault("end", asyncio.Event()).set()
        return HandlerResponse.respond(Told("too late"))
    """
    async with world(source, {"quick": {}}).running() as o:
        root = (await o.inject("quick", {"text": "1"})).thread_id
        await at_gate(o, "end")
        decision = Decision.on(o.pump.state, None)
        o.pump.kill(decision, o.pump.state.folded.threads[root])
        await o.pump.commit(decision)
        await o.pump.settled()
        assert [record.event.outcome for record in await o.records(MessageHandled)] == ["killed"]
        assert (await o.thread(root))["status"] == "killed"
        assert (await o.inject("quick", {"text": "2"}, wait=True)).replies == ({"text": "too late"},)
        assert len(await o.records(OrganismStarted)) == 1  # the state was not folded again


async def test_child_threads_die_with_their_parent_and_before_it(world: MakeWorld) -> None:
    async with world(SLOW, {"slow": {}}).running() as o:
        root = (await o.inject("slow", {"text": "root"})).thread_id
        child = await child_of(o, root, "slow", "child")
        grandchild = await child_of(o, child, "slow", "grandchild")
        stranger = (await o.inject("slow", {"text": "stranger"})).thread_id
        await kill(o, root)
        killed = [record.thread for record in await o.records(ThreadKilled)]
        ends = pairs(await o.records(*ENDS), "outcome")
        assert (await o.thread(stranger))["status"] == "active"
    assert killed == [grandchild, child, root]
    assert ends == [("message_handled", "killed")] * 3


async def test_killing_a_child_leaves_its_parent_alone(world: MakeWorld) -> None:
    async with world(SLOW, {"slow": {}}).running() as o:
        root = (await o.inject("slow", {"text": "root"})).thread_id
        child = await child_of(o, root, "slow", "child")
        await kill(o, child)
        assert (await o.thread(root))["status"] == "active"
        with pytest.raises(errors.ThreadKilled):
            await o.inject("slow", {"text": "x"}, thread_id=child)


WAITERS = """
async def waiter(payload: Ask, metadata: HandlerMetadata):
    try:
        if payload.text == "ask":
            await metadata.ask("slow", Ask("never"))
        if payload.text == "approve":
            await metadata.approve({})
        if payload.text == "unsafe":
            await metadata.effect("pay", pay, kind="unsafe")
        if payload.text in {"stubborn", "deaf"}:
            while True:
                try:
                    await gate("stubborn")
                    break
                except BaseException:
                    TRACE.append("swallowed")
            if payload.text == "stubborn":
                await metadata.effect("pay", pay)
    finally:
        TRACE.append("left")
    return HandlerResponse.respond(Told("too late"))

async def pay(key: str):
    TRACE.append("paid")
    await gate("pay")
    return "paid"
"""


def waiters(world: MakeWorld) -> World:
    """A handler that waits for whatever it is told to."""
    return world(SLOW + WAITERS, {"waiter": {"peers": ["slow"]}, "slow": {}})


async def test_an_ask_under_way_is_closed(world: MakeWorld) -> None:
    async with waiters(world).running() as o:
        thread = (await o.inject("waiter", {"text": "ask"})).thread_id
        await o.until(MessageStarted, agent="slow")
        await kill(o, thread)
        recorded = (await o.records(StepRecorded))[0].event
        assert play(o)["TRACE"] == ["left"]
        assert o.pump.mailboxes.running == 0
    assert (recorded.kind, code_of(recorded)) == ("ask", "killed")


async def test_an_approval_is_cancelled_and_cannot_be_decided_any_more(world: MakeWorld) -> None:
    async with waiters(world).running() as o:
        thread = (await o.inject("waiter", {"text": "approve"})).thread_id
        approval = (await o.until(ApprovalRequested)).event.approval
        await kill(o, thread)
        assert [record.event.approval for record in await o.records(ApprovalCancelled)] == [approval]
        with pytest.raises(AlreadyResolved):
            await o.do(ResolveApproval(approval=approval, decision="approve"))


async def test_an_unsafe_effect_under_way_is_noted_as_unknown(world: MakeWorld) -> None:
    async with waiters(world).running() as o:
        injected = await o.inject("waiter", {"text": "unsafe"})
        await o.until(StepStarted, kind="effect")
        await kill(o, injected.thread_id)
        recorded = (await o.records(StepRecorded))[0].event
        with pytest.raises(AlreadyResolved):
            await o.do(ResolveIndeterminate(id=f"{injected.message_id}:1", outcome="redo"))
    assert (recorded.kind, code_of(recorded)) == ("effect", "unknown")


@pytest.mark.parametrize("text", ["stubborn", "deaf"])
async def test_nothing_comes_after_it_though_the_handler_swallows_its_cancellation(world: MakeWorld, text: str) -> None:
    """The one goes on to another step, the other returns its answer."""
    async with waiters(world).running() as o:
        thread = (await o.inject("waiter", {"text": text})).thread_id
        await at_gate(o, "stubborn")
        position = await kill(o, thread)
        open_gate(o, "stubborn", "pay")
        await o.inject("slow", {"text": "after"})
        open_gate(o, "after")
        await o.until(MessageHandled, after=position)
        trace = play(o)["TRACE"]
        records = await o.records(thread=thread)
        assert len(await o.records(OrganismStarted)) == 1
    assert trace[0] == "swallowed"
    assert "paid" not in trace
    assert records[-1].position == position


@pytest.mark.parametrize("text", ["fine", "fails"])
async def test_a_thread_that_has_ended_becomes_killed_too(world: MakeWorld, text: str) -> None:
    made = world(
        """
        async def worker(payload: Ask, metadata: HandlerMetadata):
            if payload.text == "fails":
                raise ValueError("broken")
        """,
        {"worker": {}},
    )
    async with made.running() as o:
        outcome = await o.inject("worker", {"text": text}, wait=True)
        position = await kill(o, outcome.thread_id)
        assert (await o.thread(outcome.thread_id))["status"] == "killed"
        assert await kill(o, outcome.thread_id) == position
        with pytest.raises(errors.ThreadKilled):
            await o.inject("worker", {"text": "x"}, thread_id=outcome.thread_id)


async def test_an_injection_beside_a_kill_does_not_bring_the_thread_back(world: MakeWorld) -> None:
    async with world(SLOW, {"slow": {}}).running() as o:
        thread = (await o.inject("slow", {"text": "x"})).thread_id
        await o.until(MessageStarted)
        results = await asyncio.gather(
            kill(o, thread), o.inject("slow", {"text": "y"}, thread_id=thread), return_exceptions=True
        )
        records = await o.records(thread=thread)
    assert isinstance(results[1], errors.ThreadKilled)
    assert records[-1].type == "thread_killed"


async def test_a_kill_while_a_start_is_on_its_way_takes_no_slot_with_it(world: MakeWorld) -> None:
    made, disk = world(SLOW, {"slow": {"max_concurrent": 1}}), Disk()
    async with made.running(parts=Parts(driver=disk)) as o:
        disk.hold()
        injecting = asyncio.create_task(o.inject("slow", {"text": "x"}))
        await decided(o)
        killing = asyncio.create_task(kill(o, next(iter(o.pump.state.folded.threads))))
        asyncio.get_running_loop().call_soon(disk.release)
        await asyncio.gather(injecting, killing)
        after = await o.inject("slow", {"text": "after"})
        open_gate(o, "after")
        assert await o.tenant.ended(after.thread_id, 10)
        assert "x" not in play(o)["TRACE"]


async def test_a_kill_while_an_answer_is_on_its_way_takes_no_slot_with_it(world: MakeWorld) -> None:
    made, disk = world(SLOW + WAITERS, {"waiter": {"peers": ["slow"], "max_concurrent": 1}, "slow": {}}), Disk()
    async with made.running(parts=Parts(driver=disk)) as o:
        thread = (await o.inject("waiter", {"text": "ask"})).thread_id
        await at_gate(o, "never")
        await o.pump.settled()
        disk.hold()
        open_gate(o, "never")
        await decided(o)
        killing = asyncio.create_task(kill(o, thread))
        asyncio.get_running_loop().call_soon(disk.release)
        position = await killing
        other = await o.inject("waiter", {"text": "other"}, wait=True)
        records = await o.records(thread=thread)
    assert other.replies == ({"text": "too late"},)
    assert records[-1].position == position


async def test_a_waiting_retry_dies_with_its_thread(world: MakeWorld) -> None:
    made = world(
        "async def broken(payload: Ask, metadata: HandlerMetadata):\n    raise ValueError(payload.text)\n",
        {"broken": {}},
        retry={"base_delay_s": 60, "max_delay_s": 60},
    )
    async with made.running() as o:
        thread = (await o.inject("broken", {"text": "x"})).thread_id
        await o.until(MessageRetried)
        await kill(o, thread)
        assert pairs(await o.records(*ENDS)) == [("message_dropped",)]


async def test_a_kill_outlives_a_restart(world: MakeWorld) -> None:
    made = world(SLOW, {"slow": {}})
    async with made.running() as o:
        thread = (await o.inject("slow", {"text": "x"})).thread_id
        position = await kill(o, thread)
        await o.crash()
    async with made.running() as o:
        assert await kill(o, thread) == position
        assert o.pump.state.folded.messages == {}
        with pytest.raises(NotFound):
            await kill(o, "thr-nowhere")
