"""A graceful stop: nothing new starts, what runs may end, what waits is released, nothing accepted is lost (G13)."""

from __future__ import annotations

import asyncio

import pytest

from organism.errors import OrganismError, Stopping
from organism.events.vocabulary import ApprovalRequested, MessageDead, MessageStarted, OrganismStarted
from tests.flows.stage import at_gate, open_gate, pass_gate, play, stopping
from tests.flows.world import MakeWorld

SOURCE = """
async def worker(payload: Ask, metadata: HandlerMetadata):
    TRACE.append(payload.text)
    await gate(payload.text)
    {then}
    return HandlerResponse.respond(Told(payload.text))

async def asker(payload: Ask, metadata: HandlerMetadata):
    reply = await metadata.ask("silent", Ask("x"))
    return HandlerResponse.respond(reply)

async def approver(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told((await metadata.approve({{}})).decision))

async def silent(payload: Ask, metadata: HandlerMetadata):
    await metadata.approve({{}})
    return HandlerResponse.respond(Told("spoke"))

async def touch(key: str):
    return key
"""
LISTENERS = {"worker": {}, "asker": {"peers": ["silent"]}, "approver": {}, "silent": {}}


@pytest.mark.parametrize("then", ["pass", "await metadata.effect('x', touch)"])
async def test_what_runs_gets_its_grace_and_new_work_is_refused(world: MakeWorld, then: str) -> None:
    made = world(SOURCE.format(then=then), LISTENERS)
    async with made.running() as o:
        injected = await o.inject("worker", {"text": "runs"})
        await o.inject("worker", {"text": "waits"}, thread_id=injected.thread_id)
        await at_gate(o, "runs")
        stop = await stopping(o, 20)
        assert o.organism.status == "stopping"
        with pytest.raises(Stopping):
            await o.inject("worker", {"text": "new"})
        open_gate(o, "runs")
        await stop
        assert play(o)["TRACE"] == ["runs"]
    async with made.running() as o:
        await pass_gate(o, "waits")
        assert await o.tenant.ended(injected.thread_id, 10)
        assert [reply["text"] for reply in await o.replies(injected.thread_id)] == ["runs", "waits"]
        assert play(o)["TRACE"] == ["waits"]


@pytest.mark.parametrize("who", ["asker", "approver"])
async def test_what_waits_in_a_step_is_let_go_at_once_and_goes_on_in_the_next_life(world: MakeWorld, who: str) -> None:
    made = world(SOURCE.format(then="pass"), LISTENERS)
    async with made.running() as o:
        injected = await o.inject(who, {"text": "x"})
        await o.until(ApprovalRequested)
        await o.pump.settled()
        async with asyncio.timeout(5):
            await o.organism.stop(grace_s=1000)
    async with made.running() as o:
        assert (await o.thread(injected.thread_id))["status"] == "active"
        assert len(await o.records(ApprovalRequested)) == 1
        assert await o.records(MessageDead) == []


async def test_what_runs_longer_than_its_grace_is_let_go_and_starts_again_in_the_next_life(world: MakeWorld) -> None:
    made = world(SOURCE.format(then="pass"), LISTENERS)
    async with made.running() as o:
        injected = await o.inject("worker", {"text": "long"})
        await at_gate(o, "long")
        await o.organism.stop(grace_s=0)
    for _ in range(4):
        async with made.running() as o:
            await at_gate(o, "long")
            await o.organism.stop(grace_s=0)
    async with made.running() as o:
        await pass_gate(o, "long")
        assert await o.tenant.ended(injected.thread_id, 10)
        started = [record.event.after for record in await o.records(MessageStarted)]
        assert await o.replies(injected.thread_id) == ({"text": "long"},)
    assert started == ["", *["stop"] * 5]


async def test_the_stop_is_the_last_event_and_the_next_life_knows_of_it(world: MakeWorld) -> None:
    made = world(SOURCE.format(then="pass"), LISTENERS)
    async with made.running():
        pass
    async with made.running() as o:
        kinds = [record.type for record in await o.records()]
        started = await o.records(OrganismStarted)
        assert kinds == ["organism_started", "organism_stopped", "organism_started"]
        assert [record.event.clean for record in started] == [True, True]
        await o.crash()
    async with made.running() as o:
        started = await o.records(OrganismStarted)
    assert [record.event.clean for record in started] == [True, True, False]
    assert [record.event.life for record in started] == [1, 2, 3]


async def test_an_injection_accepted_before_the_stop_is_handled_afterwards(world: MakeWorld) -> None:
    made = world(SOURCE.format(then="pass"), LISTENERS)
    async with made.running() as o:
        injecting = [asyncio.create_task(o.inject("worker", {"text": f"{n}"})) for n in range(20)]
        await asyncio.wait(injecting, return_when=asyncio.FIRST_COMPLETED)
        await o.organism.stop(grace_s=0)
        results = await asyncio.gather(*injecting, return_exceptions=True)
    accepted = [result for result in results if not isinstance(result, BaseException)]
    refused = [result for result in results if isinstance(result, BaseException)]
    assert all(isinstance(result, OrganismError) for result in refused)
    async with made.running() as o:
        open_gate(o, *map(str, range(20)))
        for each in accepted:
            assert await o.tenant.ended(each.thread_id, 10)
            assert len(await o.replies(each.thread_id)) == 1
