"""A commit that fails: its outcome is ambiguous, the state is folded again, nothing is lost or doubled (G1, G2, G6)."""

from __future__ import annotations

import asyncio

import pytest

from organism import errors
from organism.bootstrap import Parts
from organism.errors import CommitUnknown, LogUnavailable
from organism.events.vocabulary import MessageDead, OrganismStarted, ThreadCreated, ThreadKilled
from organism.model.commands import Idempotency, Inject, Injected, KillThread
from organism.testing import Running
from tests.flows.disk import Disk, Fault
from tests.flows.stage import (
    answers,
    at_gate,
    decided,
    folded_again,
    folded_live,
    open_gate,
    pass_gate,
    play,
    until,
)
from tests.flows.world import MakeWorld

SOURCE = """
async def worker(payload: Ask, metadata: HandlerMetadata):
    TRACE.append(payload.text)
    await gate(payload.text)
    return HandlerResponse(Ask(payload.text), to="echo")

async def echo(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse(Told(payload.text), to="console")

async def asker(payload: Ask, metadata: HandlerMetadata):
    reply = await metadata.ask("echo2", Ask(payload.text))
    return HandlerResponse.respond(reply)

async def echo2(payload: Ask, metadata: HandlerMetadata):
    await gate("echo2")
    return HandlerResponse.respond(Told(payload.text))

async def payer(payload: Ask, metadata: HandlerMetadata):
    try:
        paid = await metadata.effect("pay", pay, kind=payload.text)
    except EffectFailed:
        paid = "failed"
    return HandlerResponse.respond(Told(paid))

async def pay(key: str):
    TRACE.append(key)
    await gate("pay")
    return "paid"
"""
LISTENERS = {
    "worker": {"peers": ["echo"]},
    "echo": {"peers": ["console"]},
    "asker": {"peers": ["echo2"]},
    "echo2": {},
    "payer": {},
}
FAULTS = pytest.mark.parametrize("fault", list(Fault), ids=[fault.name for fault in Fault])
ONCE = Idempotency("key-1", "POST", "/inject", "digest")


async def mend(o: Running, disk: Disk) -> None:
    """The disk works again; wait until all goes on."""
    disk.mend()
    await o.until(OrganismStarted, life=2)
    await until(lambda: not o.tenant.recovering)


@FAULTS
async def test_an_unknown_commit_is_reported_and_the_same_key_does_it_once(world: MakeWorld, fault: Fault) -> None:
    disk = Disk()
    inject = Inject(to="worker", json={"text": "x"}, idempotency=ONCE)
    async with world(SOURCE, LISTENERS).running(parts=Parts(driver=disk)) as o:
        disk.fail(fault)
        with pytest.raises(CommitUnknown):
            await o.do(inject)
        with pytest.raises(LogUnavailable):
            await o.do(inject)
        assert await o.views.row("agents", "worker") is not None
        await mend(o, disk)
        done = await o.do(inject)
        assert isinstance(done, Injected)
        open_gate(o, "x")
        assert await answers(o, done.thread_id) == ["x"]
        assert len(await o.records(ThreadCreated)) == 1
        assert await o.do(inject) == done


@FAULTS
async def test_what_ran_starts_again_and_ends_once(world: MakeWorld, fault: Fault) -> None:
    disk = Disk()
    async with world(SOURCE, LISTENERS, retry={"attempts": 1}).running(parts=Parts(driver=disk)) as o:
        outcomes = [await o.inject("worker", {"text": str(n)}) for n in range(3)]
        asked = await o.inject("asker", {"text": "asked"})
        for name in ("0", "1", "2", "echo2"):
            await at_gate(o, name)
        await o.pump.settled()
        disk.fail(fault)
        open_gate(o, "0")
        await until(lambda: o.tenant.recovering)
        await mend(o, disk)
        open_gate(o, *("1", "2", "echo2"))
        for outcome in (*outcomes, asked):
            assert await o.tenant.ended(outcome.thread_id, 10)
        assert [await o.replies(outcome.thread_id) for outcome in (*outcomes, asked)] == [
            ({"text": text},) for text in ("0", "1", "2", "asked")
        ]
        assert await folded_live(o) == await folded_again(o.log)
        assert await o.records(MessageDead) == []


@FAULTS
async def test_a_kill_that_is_unknown_is_done_or_not_done_and_can_be_said_again(world: MakeWorld, fault: Fault) -> None:
    disk = Disk()
    async with world(SOURCE, LISTENERS).running(parts=Parts(driver=disk)) as o:
        injected = await o.inject("worker", {"text": "x"})
        await at_gate(o, "x")
        await o.pump.settled()
        kill = KillThread(thread_id=injected.thread_id)
        disk.fail(fault)
        with pytest.raises(CommitUnknown):
            await o.do(kill)
        await mend(o, disk)
        assert (await o.thread(injected.thread_id))["status"] == ("killed" if fault is Fault.AFTER else "active")
        await o.do(kill)
        assert len(await o.records(ThreadKilled)) == 1
        with pytest.raises(errors.ThreadKilled):
            await o.inject("worker", {"text": "y"}, thread_id=injected.thread_id)


@FAULTS
@pytest.mark.parametrize("kind", ["idempotent", "unsafe"])
async def test_an_effect_whose_record_is_unknown_is_repeated_or_waits_by_its_kind(
    world: MakeWorld, fault: Fault, kind: str
) -> None:
    disk = Disk()
    async with world(SOURCE, LISTENERS).running(parts=Parts(driver=disk)) as o:
        injected = await o.inject("payer", {"text": kind})
        await at_gate(o, "pay")
        await o.pump.settled()
        disk.fail(fault)
        open_gate(o, "pay")
        await until(lambda: o.tenant.recovering)
        await mend(o, disk)
        waits = fault is Fault.BEFORE and kind == "unsafe"
        if waits:
            assert await o.views.row("indeterminate", f"{injected.message_id}:1") is not None
            assert (await o.thread(injected.thread_id))["status"] == "active"
        else:
            assert await answers(o, injected.thread_id) == ["paid"]
        runs = 2 if fault is Fault.BEFORE and kind == "idempotent" else 1
        assert play(o)["TRACE"] == [f"{injected.message_id}/pay"] * runs


@FAULTS
async def test_whatever_was_accepted_around_a_failure_is_handled(world: MakeWorld, fault: Fault) -> None:
    disk = Disk()
    accepted: list[str] = []
    async with world(SOURCE, LISTENERS).running(parts=Parts(driver=disk)) as o:
        under_load = [asyncio.create_task(_press(o, accepted)) for _ in range(4)]
        await until(lambda: len(accepted) >= 10)
        disk.fail(fault)
        await until(lambda: o.tenant.recovering)
        await mend(o, disk)
        enough = len(accepted) + 40
        await until(lambda: len(accepted) >= enough)
        for task in under_load:
            task.cancel()
        await asyncio.gather(*under_load, return_exceptions=True)
        for thread in accepted:
            assert await o.tenant.ended(thread, 10)
        replies = [await o.replies(thread) for thread in accepted]
        assert [len(each) for each in replies] == [1] * len(accepted)
        assert await folded_live(o) == await folded_again(o.log)


async def _press(o: Running, accepted: list[str]) -> None:
    """Inject as fast as it goes, and go on after every refusal."""
    open_gate(o, "load")
    while True:
        try:
            accepted.append((await o.inject("worker", {"text": "load"})).thread_id)
        except (CommitUnknown, LogUnavailable):
            await asyncio.wait([asyncio.get_running_loop().create_future()], timeout=0.001)


async def test_a_follower_never_sees_what_was_not_written(world: MakeWorld) -> None:
    disk = Disk()
    seen: list[tuple[int, str]] = []
    async with world(SOURCE, LISTENERS).running(parts=Parts(driver=disk)) as o:
        following = asyncio.create_task(_follow(o, seen))
        await o.inject("echo", {"text": "before"}, wait=True)
        disk.fail(Fault.BEFORE)
        with pytest.raises(CommitUnknown):
            await o.inject("echo", {"text": "lost"})
        await mend(o, disk)
        await o.inject("echo", {"text": "after"}, wait=True)
        await o.pump.settled()
        records = await o.records()
    await following
    assert seen[: len(records)] == [(record.position, record.type) for record in records]


async def _follow(o: Running, seen: list[tuple[int, str]]) -> None:
    async for records in o.log.follow(0):
        seen.extend((record.position, record.type) for record in records)


@FAULTS
async def test_a_disk_that_fails_again_after_its_mending_is_survived(world: MakeWorld, fault: Fault) -> None:
    disk = Disk()
    async with world(SOURCE, LISTENERS).running(parts=Parts(driver=disk)) as o:
        disk.fail(fault)
        with pytest.raises(CommitUnknown):
            await o.inject("worker", {"text": "x"})
        disk.fail(fault)
        disk.mend()
        await until(lambda: disk.fault is None)
        await mend(o, disk)
        outcome = await o.inject("worker", {"text": "y"})
        await pass_gate(o, "y")
        assert await o.tenant.ended(outcome.thread_id, 10)
        assert await folded_live(o) == await folded_again(o.log)


@FAULTS
async def test_who_waits_for_the_end_of_a_thread_hears_of_it(world: MakeWorld, fault: Fault) -> None:
    disk = Disk()
    async with world(SOURCE, LISTENERS).running(parts=Parts(driver=disk)) as o:
        waiting = asyncio.create_task(o.inject("echo2", {"text": "x"}, wait=True, seconds=20))
        await at_gate(o, "echo2")
        await o.pump.settled()
        disk.hold()
        open_gate(o, "echo2")
        await decided(o)
        disk.fail(fault)
        disk.release()
        await until(lambda: o.tenant.recovering)
        open_gate(o, "echo2")
        await mend(o, disk)
        assert (await waiting).replies == ({"text": "x"},)
