"""After any end of the process the log gives the same state, and all in it goes on (G2, G8, G15)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from organism.events.vocabulary import (
    ApprovalRequested,
    MessageDead,
    MessageHandled,
    MessageRetried,
    MessageSent,
    MessageStarted,
    OrganismPaused,
    StepRecorded,
    StepStarted,
)
from organism.model.commands import PauseAgent, PauseThread, ResumeOrganism
from organism.pump.recover import SNAPSHOT
from organism.testing import Running
from tests.flows.stage import (
    TurnedTime,
    answers,
    at_gate,
    crash_at,
    folded_again,
    folded_live,
    inject_and_crash_at,
    open_gate,
    pass_gate,
    play,
)
from tests.flows.world import MakeWorld, World

BUSY = """
@dataclass
class Rare:
    text: str = ""

async def asker(payload: Ask, metadata: HandlerMetadata):
    await metadata.now()
    first = await metadata.ask("echo", Ask("1"))
    second = await metadata.ask("held", Ask("2"))
    return HandlerResponse.respond(Told(f"{first.text} {second.text} {type(second).__name__}"))

async def echo(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told(payload.text))

async def held(payload: Ask, metadata: HandlerMetadata):
    await gate("held")
    return HandlerResponse.respond(Rare(payload.text))

async def approver(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told((await metadata.approve({"n": 1})).decision))

async def failing(payload: Ask, metadata: HandlerMetadata):
    raise ValueError(payload.text)

async def planner(payload: Ask | Rare, metadata: HandlerMetadata):
    await metadata.ask("system.todo", TodoUntil(wait_for="Rare"))
    return HandlerResponse(Ask("x"), to="held")

async def fan(payload: Ask, metadata: HandlerMetadata):
    return [HandlerResponse(Ask(str(n)), to="paused") for n in range(3)]
"""
LISTENERS: dict[str, dict[str, Any]] = {
    "asker": {"peers": ["echo", "held"]},
    "echo": {},
    "held": {"timeout_s": 600},
    "approver": {},
    "failing": {},
    "planner": {"peers": ["held"]},
    "fan": {"peers": ["paused"]},
    "paused": {"handler": "echo"},
}


def busy(world: MakeWorld) -> World:
    """An organism with something of everything."""
    return world(
        BUSY, LISTENERS, retry={"attempts": 9, "base_delay_s": 60, "max_delay_s": 60}, limits={"ask_timeout_s": 600}
    )


async def fill(o: Running) -> dict[str, str]:
    """Asks, approvals, retries, reminders, fans and pauses, all of them open; gives the threads."""
    await o.do(PauseAgent(agent="paused"))
    threads = {
        name: (await o.inject(name, {"text": "x"})).thread_id for name in LISTENERS if name not in {"echo", "held"}
    }
    await o.inject("asker", {"text": "behind"}, thread_id=threads["asker"])
    await o.do(PauseThread(thread_id=threads["planner"]))
    await at_gate(o, "held")
    await o.until(ApprovalRequested)
    await o.until(MessageRetried)
    await o.until(MessageHandled, agent="fan")
    await o.inject("echo", {"text": "x"}, wait=True)
    return threads


@pytest.mark.parametrize("is_clean", [True, False])
async def test_the_log_gives_the_state_that_the_pump_decides_on(world: MakeWorld, *, is_clean: bool) -> None:
    made = busy(world)
    async with made.running() as o:
        await fill(o)
        assert await folded_live(o) == await folded_again(o.log)
        await (o.organism.stop(grace_s=0) if is_clean else o.crash())
    async with made.running() as o:
        kept = await o.log.load_snapshot(SNAPSHOT)
        assert (kept is not None) is is_clean
        assert await folded_live(o) == await folded_again(o.log)
        await o.organism.stop(grace_s=0)
    async with made.running() as o:
        assert await folded_live(o) == await folded_again(o.log)


@pytest.mark.parametrize("is_clean", [True, False])
async def test_all_that_is_open_goes_on_after_a_restart_once(world: MakeWorld, *, is_clean: bool) -> None:
    made = busy(world)
    async with made.running() as o:
        threads = await fill(o)
        await (o.organism.stop(grace_s=0) if is_clean else o.crash())
    async with made.running() as o:
        await pass_gate(o, "held")
        assert await o.tenant.ended(threads["asker"], 10)
        replies = await o.replies(threads["asker"])
        sent = [record.event.message for record in await o.records(MessageSent)]
        asked = [record.event.to for record in await o.records(MessageSent, thread=threads["asker"])]
        restarted = {record.event.after for record in await o.records(MessageStarted)}
    assert replies == ({"text": "1 2 Rare"}, {"text": "1 2 Rare"})
    assert len(sent) == len(set(sent))
    assert asked.count("echo") == 2
    assert ("stop" if is_clean else "death") in restarted


async def test_a_reply_of_a_class_that_no_listener_names_outlives_a_restart(world: MakeWorld) -> None:
    made = world(BUSY + "\nasync def tail(payload: Ask, metadata):\n    said = await metadata.ask('held', payload)\n"
                 "    await gate('tail')\n    return HandlerResponse.respond(Told(type(said).__name__ + said.text))\n",
                 {"tail": {"peers": ["held"]}, "held": {}})  # fmt: skip
    async with made.running() as o:
        injected = await o.inject("tail", {"text": "x"})
        await pass_gate(o, "held")
        await at_gate(o, "tail")
        await o.crash()
    async with made.running() as o:
        await pass_gate(o, "tail")
        assert await answers(o, injected.thread_id) == ["Rarex"]


WORKERS = """
async def worker(payload: Ask, metadata: HandlerMetadata):
    TRACE.append(payload.text)
    await gate(payload.text)
    return HandlerResponse.respond(Told(payload.text))

async def asker(payload: Ask, metadata: HandlerMetadata):
    await metadata.ask("worker", Ask("asked"))
    TRACE.append("asker went on")
    await gate(payload.text)
"""


@pytest.mark.parametrize("texts", [("innocent", "killer"), ("killer", "innocent")])
async def test_suspects_run_one_at_a_time_so_that_no_innocent_is_parked_with_the_one_that_kills(
    world: MakeWorld, texts: tuple[str, str]
) -> None:
    """After two deaths both are suspects. Here the process dies whenever the killer runs."""
    made = world(WORKERS, {"worker": {"max_concurrent": 5}})
    async with made.running() as o:
        threads = {text: (await o.inject("worker", {"text": text})).thread_id for text in texts}
        await at_gate(o, texts[1])
        await o.crash()
    await crash_at(made, texts[1])
    for _ in range(2):
        async with made.running() as o:
            open_gate(o, "innocent")
            if "killer" in play(o)["TRACE"] or texts[0] == "killer":
                await _let_run(o)
            else:
                assert await o.tenant.ended(threads["innocent"], 10)
                await _let_run(o)
            await o.crash()
    async with made.running() as o:
        open_gate(o, "innocent")
        assert await o.tenant.ended(threads["innocent"], 10)
        assert await o.replies(threads["innocent"]) == ({"text": "innocent"},)
        assert [record.event.code for record in await o.records(MessageDead)] == ["killed_process"]
        assert (await o.thread(threads["killer"]))["status"] == "error"


async def _let_run(o: Running) -> None:
    """Until the killer runs, or was parked."""
    if (await o.records(MessageDead)) == []:
        await at_gate(o, "killer")


async def test_a_suspect_that_goes_on_from_a_step_waits_for_the_one_that_runs(world: MakeWorld) -> None:
    source = WORKERS.replace('await metadata.ask("worker"', 'await gate("before")\n    await metadata.ask("worker"')
    made = world(source, {"asker": {"peers": ["worker"]}, "worker": {}, "other": {"handler": "worker"}})
    async with made.running() as o:
        asker = await o.inject("asker", {"text": "asker"})
        other = await o.inject("other", {"text": "other"})
        await at_gate(o, "other")
        await o.crash()
    await crash_at(made, "other")
    async with made.running() as o:
        await at_gate(o, "before")
        assert play(o)["TRACE"] == []
        open_gate(o, "before")
        await at_gate(o, "other")
        open_gate(o, "asked")
        await o.until(StepRecorded, thread=asker.thread_id)
        await o.inject("worker", {"text": "asked"}, wait=True)
        assert "asker went on" not in play(o)["TRACE"]
        open_gate(o, "other")
        assert await o.tenant.ended(other.thread_id, 10)
        await at_gate(o, "asker")


async def test_a_suspect_that_waits_for_another_suspect_keeps_it_from_nothing(world: MakeWorld) -> None:
    """Asker and asked are both suspects: one was asked only after two deaths, the other ran at two."""
    source = WORKERS.replace('await metadata.ask("worker"', 'await gate("before")\n    await metadata.ask("worker"')
    made = world(source, {"asker": {"peers": ["worker"]}, "worker": {}}, retry={"attempts": 9})
    asked = await inject_and_crash_at(made, "before", "asker", "asker")
    for name in ("before", "asked", "asked"):
        async with made.running() as o:
            if name == "asked":
                open_gate(o, "before")
            await at_gate(o, name)
            await o.crash()
    async with made.running() as o:
        open_gate(o, *("before", "asked", "asker"))
        assert await o.tenant.ended(asked.thread_id, 10)
        assert (await o.thread(asked.thread_id))["status"] == "completed"


async def test_what_waits_in_an_ask_at_a_death_is_not_suspected(world: MakeWorld) -> None:
    made = world(WORKERS, {"asker": {"peers": ["worker"]}, "worker": {}})
    async with made.running() as o:
        await o.do(PauseAgent(agent="worker"))
        asked = await o.inject("asker", {"text": "x"})
        await o.until(StepStarted)
        await o.crash()
    for _ in range(4):
        async with made.running() as o:
            await o.until(MessageStarted, after=o.log.head - 1)
            await o.crash()
    async with made.running() as o:
        assert (await o.thread(asked.thread_id))["status"] == "active"
        assert await o.records(MessageDead) == []


CRASHING = {"worker": {"timeout_s": 600}, "other": {"handler": "worker"}, "idle": {"handler": "worker"}}


async def _life(o: Running, time: TurnedTime, seconds: float) -> None:
    """A life that starts a message, ends none, and dies after so long."""
    await at_gate(o, "killer")
    time.turn(seconds)
    await o.do(PauseAgent(agent="idle"))
    await o.crash()


@pytest.mark.parametrize(("seconds", "is_paused"), [(1, True), (13, False)])
async def test_a_server_that_dies_young_five_times_starts_paused(
    world: MakeWorld, seconds: float, *, is_paused: bool
) -> None:
    time = TurnedTime()
    made = world(WORKERS, CRASHING, retry={"attempts": 100})
    async with made.running(parts=time.parts()) as o:
        killer = await o.inject("worker", {"text": "killer"})
        await _life(o, time, seconds)
    for seed in range(2, 6):
        async with made.running(parts=time.parts(seed)) as o:
            assert o.organism.status == "running"
            await _life(o, time, seconds)
    async with made.running(parts=time.parts(6)) as o:
        paused = [record.event.by for record in await o.records(OrganismPaused)]
        assert (paused, o.organism.status) == ((["crash_loop"], "paused") if is_paused else ([], "running"))
        if is_paused:
            assert len(await o.records(MessageStarted)) == 5
            await o.do(ResumeOrganism())
        await pass_gate(o, "killer")
        assert await o.tenant.ended(killer.thread_id, 10)


async def test_a_life_that_handled_something_or_stopped_is_no_crash_loop(world: MakeWorld) -> None:
    time = TurnedTime()
    made = world(WORKERS, CRASHING, retry={"attempts": 100})
    async with made.running(parts=time.parts()) as o:
        await o.inject("worker", {"text": "killer"})
        await _life(o, time, 1)
    for seed in range(2, 9):
        async with made.running(parts=time.parts(seed)) as o:
            await at_gate(o, "killer")
            if seed == 4:
                open_gate(o, "fine")
                await o.inject("other", {"text": "fine"}, wait=True)
            await (o.organism.stop(grace_s=0) if seed == 7 else o.crash())
    async with made.running(parts=time.parts(9)) as o:
        assert o.organism.status == "running"


async def test_what_reaches_the_disk_during_a_stop_starts_no_handler(world: MakeWorld) -> None:
    source = """
async def echo(payload: Ask, metadata: HandlerMetadata):
    TRACE.append(payload.text)
"""
    async with world(source, {"echo": {}}).running() as o:
        sending = asyncio.ensure_future(o.inject("echo", {"text": "x"}))
        appended = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(appended.set_result, None)
        await appended  # one turn of the loop: it is not on disk yet
        await o.organism.stop(grace_s=0)
        await sending
        assert play(o)["TRACE"] == []
