"""Handlers that wait for nothing start together, in few commits; handlers that wait still keep to their slots (G4)."""

from __future__ import annotations

import asyncio

import pytest

from organism.events.vocabulary import MessageDead, MessageFailed, MessageHandled, MessageStarted
from organism.model.commands import KillThread, PauseAgent, ResumeAgent
from organism.testing import Outcome, Running
from tests.flows.stage import at_gate, open_gate, play
from tests.flows.world import MakeWorld, World

SOURCE = """
RUNNING = []

async def quick(payload: Ask, metadata: HandlerMetadata):
    TRACE.append(payload.text)

async def worker(payload: Ask, metadata: HandlerMetadata):
    RUNNING.append(payload.text)
    TRACE.append((payload.text, len(RUNNING)))
    if payload.text != "warm":
        await gate(payload.text)
    RUNNING.remove(payload.text)
"""
MANY = 20


def made_of(world: MakeWorld, **limits: int) -> World:
    return world(SOURCE, {"worker": {}, "quick": {}, "calm": {"handler": "worker"}}, limits=limits)


async def sent_together(o: Running, to: str, number: int) -> list[Outcome]:
    return await asyncio.gather(*(o.inject(to, {"text": f"{to} {n}"}) for n in range(number)))


async def warm(o: Running, *agents: str) -> None:
    """A handler of each has waited for nothing: what comes next may be started ahead of its slots."""
    for name in agents or ("worker",):
        await all_ended(o, [await o.inject(name, {"text": "warm"})])
    play(o)["TRACE"].clear()


def ran(o: Running) -> list[str]:
    return [text for text, _ in play(o)["TRACE"]]


async def all_ended(o: Running, sent: list[Outcome]) -> None:
    for outcome in sent:
        assert await o.tenant.ended(outcome.thread_id, 10)


async def test_more_handlers_that_do_not_wait_start_together_than_there_are_slots(world: MakeWorld) -> None:
    made = made_of(world, max_concurrent_handlers=2, max_concurrent_per_agent=1)
    async with made.running(on_disk=False) as o:
        await warm(o, "quick")
        await all_ended(o, await sent_together(o, "quick", MANY))
        started, ended = (await o.records(MessageStarted))[1:], (await o.records(MessageHandled))[1:]
        assert len(play(o)["TRACE"]) == MANY
    assert max(record.position for record in started) < min(record.position for record in ended)


@pytest.mark.parametrize(
    ("limits", "most"), [({}, 5), ({"max_concurrent_per_agent": 2}, 2), ({"max_concurrent_handlers": 3}, 3)]
)
async def test_handlers_that_wait_keep_to_their_slots_though_more_were_started(
    world: MakeWorld, limits: dict[str, int], most: int
) -> None:
    async with made_of(world, **limits).running(on_disk=False) as o:
        await warm(o)
        sent = await sent_together(o, "worker", MANY)
        await at_gate(o, f"worker {most - 1}")
        assert await started(o) == MANY + 1
        assert len(play(o)["RUNNING"]) == most
        open_gate(o, *(f"worker {n}" for n in range(MANY)))
        await all_ended(o, sent)
        assert max(number for _, number in play(o)["TRACE"]) == most
        assert ran(o) == [f"worker {n}" for n in range(MANY)]


async def started(o: Running) -> int:
    return len(await o.records(MessageStarted))


async def test_an_agent_whose_last_handler_waited_starts_only_what_has_slots(world: MakeWorld) -> None:
    async with made_of(world).running(on_disk=False) as o:
        sent = await sent_together(o, "worker", MANY)
        await at_gate(o, "worker 4")
        assert await started(o) == len(play(o)["RUNNING"]) == 5
        open_gate(o, *(f"worker {n}" for n in range(MANY)))
        await all_ended(o, sent)


async def test_while_handlers_wait_nothing_more_is_started(world: MakeWorld) -> None:
    async with made_of(world, max_concurrent_per_agent=1).running(on_disk=False) as o:
        first = await sent_together(o, "worker", 1)
        await at_gate(o, "worker 0")
        behind = await sent_together(o, "worker", 3)
        assert await started(o) == 1
        open_gate(o, "worker 0", "worker 1", "worker 2")
        await all_ended(o, [*first, *behind])


async def test_a_started_message_that_has_no_slot_yet_waits_out_a_pause(world: MakeWorld) -> None:
    async with made_of(world, max_concurrent_per_agent=1).running(on_disk=False) as o:
        await warm(o)
        sent = await sent_together(o, "worker", 3)
        await at_gate(o, "worker 0")
        await o.do(PauseAgent(agent="worker"))
        open_gate(o, "worker 0", "worker 1", "worker 2")
        await all_ended(o, sent[:1])
        await all_ended(o, await sent_together(o, "quick", 1))
        assert play(o)["RUNNING"] == []
        assert "worker 1" not in play(o)["CAME"]
        await o.do(ResumeAgent(agent="worker"))
        await all_ended(o, sent)


async def test_a_started_message_that_is_killed_before_it_has_a_slot_never_runs(world: MakeWorld) -> None:
    async with made_of(world, max_concurrent_per_agent=1).running(on_disk=False) as o:
        await warm(o)
        sent = await sent_together(o, "worker", 3)
        await at_gate(o, "worker 0")
        await o.do(KillThread(thread_id=sent[1].thread_id))
        open_gate(o, "worker 0", "worker 1", "worker 2")
        await all_ended(o, sent)
        assert ran(o) == ["worker 0", "worker 2"]


async def test_a_slot_goes_to_each_agent_in_turn_though_one_has_many_started(world: MakeWorld) -> None:
    async with made_of(world, max_concurrent_handlers=1).running(on_disk=False) as o:
        await warm(o, "worker", "calm")
        sent = await asyncio.gather(sent_together(o, "worker", MANY), sent_together(o, "calm", 1))
        await at_gate(o, "worker 0")
        open_gate(o, "calm 0", *(f"worker {n}" for n in range(MANY)))
        await all_ended(o, [*sent[0], *sent[1]])
        assert "calm 0" in ran(o)[:3]


async def test_a_started_message_whose_listener_is_gone_before_it_has_a_slot_is_dead(world: MakeWorld) -> None:
    made = made_of(world, max_concurrent_per_agent=1)
    async with made.running(on_disk=False) as o:
        await warm(o)
        sent = await sent_together(o, "worker", 2)
        await at_gate(o, "worker 0")
        made.write(SOURCE, {"quick": {}, "calm": {"handler": "worker"}})
        await o.organism.reload()
        open_gate(o, "worker 0", "worker 1")
        dead = await o.until(MessageDead, thread=sent[1].thread_id)
        assert dead.event.code == "listener_gone"
        assert [each.event.attempt for each in await o.records(MessageFailed, thread=sent[1].thread_id)] == [1]


async def test_after_a_crash_what_was_started_without_a_slot_runs_once(world: MakeWorld) -> None:
    made = made_of(world, max_concurrent_per_agent=1)
    async with made.running() as o:
        await warm(o)
        sent = await sent_together(o, "worker", 3)
        await at_gate(o, "worker 0")
        await o.crash()
    async with made.running() as o:
        open_gate(o, "worker 0", "worker 1", "worker 2")
        await all_ended(o, sent)
        assert sorted(ran(o)) == ["worker 0", "worker 1", "worker 2"]
