"""One at a time and in order within a thread, fairly across threads, slots given back while waiting (G4)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from organism.events.record import Record
from organism.events.vocabulary import MessageHandled, MessageRetried, MessageStarted, StepRecorded, StepStarted
from organism.model.commands import PauseAgent, ResumeAgent
from tests.flows.lawful import ENDS
from tests.flows.stage import at_gate, open_gate, play
from tests.flows.world import MakeWorld

COUNTER = """
RUNNING = []

async def worker(payload: Ask, metadata: HandlerMetadata):
    RUNNING.append(payload.text)
    TRACE.append(len(RUNNING))
    await gate(payload.text)
    RUNNING.remove(payload.text)
"""


def starts_of(records: list[Record[Any]], agent: str) -> list[tuple[str, str]]:
    """(type, message) of the starts and ends of an agent's messages, in order."""
    steps = [record for record in records if isinstance(record.event, (MessageStarted, *ENDS))]
    return [(record.type, record.event.message) for record in steps if record.event.agent == agent]


async def test_in_a_thread_an_agent_handles_one_message_at_a_time_in_order_of_position(world: MakeWorld) -> None:
    made = world(
        """
        async def fan(payload: Ask, metadata: HandlerMetadata):
            return [HandlerResponse(Ask(str(n)), to="worker") for n in range(8)]

        async def worker(payload: Ask, metadata: HandlerMetadata):
            for _ in range(int(payload.text) % 3):
                await asyncio.sleep(0)
            TRACE.append(payload.text)
        """,
        {"fan": {"peers": ["worker"]}, "worker": {"max_concurrent": 5}},
    )
    async with made.running(on_disk=False) as o:
        await o.inject("fan", {"text": "x"}, wait=True)
        steps = starts_of(await o.records(), "worker")
        assert play(o)["TRACE"] == [str(n) for n in range(8)]
    assert [kind for kind, _ in steps] == ["message_started", "message_handled"] * 8
    assert all(steps[n][1] == steps[n + 1][1] for n in range(0, 16, 2))


async def test_a_message_that_waits_for_its_retry_holds_its_line_and_no_other(world: MakeWorld) -> None:
    made = world(
        """
        async def worker(payload: Ask, metadata: HandlerMetadata):
            TRACE.append(payload.text)
            if payload.text == "fails" and metadata.attempt < 3:
                raise ValueError("not yet")
        """,
        {"worker": {"max_concurrent": 1}},
        retry={"base_delay_s": 0.2, "max_delay_s": 0.2},
    )
    async with made.running(on_disk=False) as o:
        first = await o.inject("worker", {"text": "fails"})
        await o.inject("worker", {"text": "behind"}, thread_id=first.thread_id)
        await o.until(MessageRetried)
        await o.inject("worker", {"text": "elsewhere"}, wait=True)
        assert await o.tenant.ended(first.thread_id, 10)
        assert play(o)["TRACE"] == ["fails", "elsewhere", "fails", "fails", "behind"]


@pytest.mark.parametrize(
    ("limits", "keys", "most"),
    [
        ({"max_concurrent_handlers": 3}, {"max_concurrent": 9}, 3),
        ({"max_concurrent_per_agent": 2}, {}, 2),
        ({}, {"max_concurrent": 4}, 4),
        ({}, {}, 64),
    ],
)
async def test_no_more_handlers_run_than_the_limits_allow(
    world: MakeWorld, limits: dict[str, int], keys: dict[str, int], most: int
) -> None:
    async with world(COUNTER, {"worker": keys}, limits=limits).running(on_disk=False) as o:
        outcomes = [await o.inject("worker", {"text": str(n)}) for n in range(most + 5)]
        await at_gate(o, str(most - 1))
        assert len(await o.records(MessageStarted)) == most
        open_gate(o, *map(str, range(most + 5)))
        for outcome in outcomes:
            assert await o.tenant.ended(outcome.thread_id, 10)
        assert max(play(o)["TRACE"]) == most


async def test_a_message_starts_only_when_its_handler_runs(world: MakeWorld) -> None:
    """Also of an agent whose handlers have waited for nothing so far."""
    source = """
    async def worker(payload: Ask, metadata: HandlerMetadata):
        if payload.text != "quick":
            await gate(payload.text)
    """
    async with world(source, {"worker": {"max_concurrent": 1}}).running(on_disk=False) as o:
        await o.inject("worker", {"text": "quick"}, wait=True)
        outcomes = await asyncio.gather(*(o.inject("worker", {"text": str(n)}) for n in range(5)))
        await at_gate(o, "0")
        assert len(await o.records(MessageStarted)) == 2
        open_gate(o, *map(str, range(5)))
        for outcome in outcomes:
            assert await o.tenant.ended(outcome.thread_id, 10)


async def test_a_handler_that_computes_waits_for_no_agents_that_call_services(world: MakeWorld) -> None:
    source = """
    async def caller(payload: Ask, metadata: HandlerMetadata):
        await gate("service")

    async def plain(payload: Ask, metadata: HandlerMetadata):
        return HandlerResponse.respond(Told(payload.text))
    """
    callers = {f"caller{n}": {"handler": "caller", "model": "offline"} for n in range(5)}
    async with world(source, {**callers, "plain": {}}).running(on_disk=False) as o:
        sent = [await o.inject(name, {"text": str(n)}) for name in callers for n in range(6)]
        await o.until(MessageStarted, message=sent[4].message_id)
        assert len(await o.records(MessageStarted)) == 25
        assert (await o.inject("plain", {"text": "x"}, wait=True)).replies == ({"text": "x"},)
        open_gate(o, "service")
        for outcome in sent:
            assert await o.tenant.ended(outcome.thread_id, 10)


WAITING = """
async def asker(payload: Ask, metadata: HandlerMetadata):
    TRACE.append("begins " + payload.text)
    if payload.text == "waits":
        {step}
    else:
        await gate(payload.text)
    TRACE.append("ends " + payload.text)

async def echo(payload: Ask, metadata: HandlerMetadata):
    await gate("echo")
    return HandlerResponse.respond(Told("x"))
"""


async def test_what_waited_in_a_step_goes_on_before_anything_new_starts(world: MakeWorld) -> None:
    """One slot: the asker lends it to ``holds``; its answer comes while that one runs and ``new`` is in the queue."""
    made = world(
        WAITING.format(step='await metadata.ask("echo", Ask("x"))'),
        {"asker": {"peers": ["echo"], "max_concurrent": 1}, "echo": {}},
    )
    async with made.running(on_disk=False) as o:
        waits = await o.inject("asker", {"text": "waits"})
        await at_gate(o, "echo")
        await o.inject("asker", {"text": "holds"})
        await at_gate(o, "holds")
        new = await o.inject("asker", {"text": "new"})
        open_gate(o, "echo")
        await o.until(StepRecorded, thread=waits.thread_id)
        await o.pump.settled()
        open_gate(o, "new", "holds")
        assert await o.tenant.ended(new.thread_id, 10)
        assert play(o)["TRACE"] == [
            "begins waits",
            "begins holds",
            "ends holds",
            "ends waits",
            "begins new",
            "ends new",
        ]


@pytest.mark.parametrize("step", ['await metadata.ask("echo", Ask("x"))', "await metadata.approve({})"])
async def test_a_waiting_handler_gives_back_its_slot_and_opens_its_line(world: MakeWorld, step: str) -> None:
    made = world(
        WAITING.format(step=step),
        {"asker": {"peers": ["echo"], "max_concurrent": 1}, "echo": {}},
        limits={"max_concurrent_handlers": 2},
    )
    async with made.running(on_disk=False) as o:
        waits = await o.inject("asker", {"text": "waits"})
        await o.until(StepStarted)
        same = await o.inject("asker", {"text": "same line"}, thread_id=waits.thread_id)
        open_gate(o, "same line")
        await o.until(MessageHandled, message=same.message_id)
        other = await o.inject("asker", {"text": "other line"})
        open_gate(o, "other line")
        assert await o.tenant.ended(other.thread_id, 10)
        assert (await o.thread(waits.thread_id))["status"] == "active"


async def test_agents_take_turns_for_the_slots_of_the_organism(world: MakeWorld) -> None:
    made = world(
        """
        async def fan(payload: Ask, metadata: HandlerMetadata):
            return [HandlerResponse(Ask(str(n)), to="busy") for n in range(50)]

        async def busy(payload: Ask, metadata: HandlerMetadata):
            await asyncio.sleep(0)
        """,
        {"fan": {"peers": ["busy"]}, "busy": {}, "calm": {"handler": "busy"}},
        limits={"max_concurrent_handlers": 1},
    )
    async with made.running(on_disk=False) as o:
        await o.do(PauseAgent(agent="busy"))
        fan = await o.inject("fan", {"text": "x"})
        await o.until(MessageHandled, agent="fan")
        await o.do(ResumeAgent(agent="busy"))
        calm = await o.inject("calm", {"text": "x"}, wait=True)
        assert await o.tenant.ended(fan.thread_id, 20)
        starts = [record for record in await o.records(MessageStarted) if record.position > calm.position]
    assert "calm" in [record.event.agent for record in starts[:2]]


async def test_each_start_is_in_the_unit_of_what_made_it_possible(world: MakeWorld) -> None:
    """So it costs no commit of its own: the head after an injection that can start covers the start."""
    async with world(COUNTER, {"worker": {"max_concurrent": 1}}).running(on_disk=False) as o:
        first = await o.inject("worker", {"text": "1"})
        assert [record.event.message for record in await o.records(MessageStarted)] == [first.message_id]
        second = await o.inject("worker", {"text": "2"})
        open_gate(o, "1")
        handled = await o.until(MessageHandled, message=first.message_id)
        started = await o.until(MessageStarted, message=second.message_id)
        after = await o.log.read(handled.position, started.position)
        assert [record.type for record in after] == ["thread_completed", "message_started"]
        assert {record.at for record in after} == {handled.at}
