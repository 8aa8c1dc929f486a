"""Persist, then act: nothing is acknowledged, delivered, given or shown before it is on disk (G1, G2)."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest

from organism.bootstrap import Parts
from organism.events.vocabulary import MessageSent, OrganismStarted
from organism.model.commands import KillThread, PauseAgent, PauseThread
from organism.testing import Running
from tests.flows.disk import Disk
from tests.flows.stage import at_gate, decided, open_gate, pairs, pass_gate, play
from tests.flows.world import MakeWorld

SOURCE = """
async def first(payload: Ask, metadata: HandlerMetadata):
    TRACE.append("first")
    await gate("first")
    return [HandlerResponse(Ask("x"), to="second"), HandlerResponse.respond(Told("y"))]

async def second(payload: Ask, metadata: HandlerMetadata):
    TRACE.append("second")

async def stepper(payload: Ask, metadata: HandlerMetadata):
    await gate("step")
    {step}
    TRACE.append("went on")

async def echo(payload: Ask, metadata: HandlerMetadata):
    TRACE.append("echo")
    return HandlerResponse.respond(Told("x"))

async def touch(key: str):
    TRACE.append("touched")
"""
LISTENERS = {"first": {"peers": ["second"]}, "second": {}, "stepper": {"peers": ["echo"]}, "echo": {}}


async def idle(o: Running) -> None:
    """Let everything run that can run while the disk is held: many turns of the loop, and a look at the log."""
    for _ in range(20):
        await o.records(OrganismStarted)


async def received(o: Running, agent: str) -> int:
    """How many messages the agent's row counts."""
    row = await o.views.row("agents", agent)
    count: int = orjson.loads(row or b"{}")["message_count"]
    return count


async def test_an_injection_is_acknowledged_delivered_and_shown_once_it_is_on_disk(world: MakeWorld) -> None:
    disk = Disk()
    async with world(SOURCE.format(step="pass"), LISTENERS).running(parts=Parts(driver=disk)) as o:
        head = o.log.head
        disk.hold()
        injecting = asyncio.create_task(o.inject("first", {"text": "x"}))
        await decided(o)
        await idle(o)
        assert not injecting.done()
        assert play(o)["TRACE"] == []
        assert o.log.head == head
        assert await o.records(MessageSent) == []
        assert await received(o, "first") == 0
        disk.release()
        await injecting
        await at_gate(o, "first")
        assert await received(o, "first") == 1
        assert play(o)["TRACE"] == ["first"]


async def test_what_a_handler_returns_is_delivered_once_its_end_is_on_disk(world: MakeWorld) -> None:
    disk = Disk()
    async with world(SOURCE.format(step="pass"), LISTENERS).running(parts=Parts(driver=disk)) as o:
        injected = await o.inject("first", {"text": "x"})
        await at_gate(o, "first")
        await o.pump.settled()
        disk.hold()
        open_gate(o, "first")
        await decided(o)
        await idle(o)
        assert play(o)["TRACE"] == ["first"]
        assert await o.replies(injected.thread_id) == ()
        disk.release()
        assert await o.tenant.ended(injected.thread_id, 10)
        assert play(o)["TRACE"] == ["first", "second"]
        assert await o.replies(injected.thread_id) == ({"text": "y"},)


async def test_the_end_of_a_handling_and_all_that_it_returns_stand_together(world: MakeWorld) -> None:
    async with world(SOURCE.format(step="pass"), LISTENERS).running() as o:
        injected = await o.inject("first", {"text": "x"})
        await pass_gate(o, "first")
        assert await o.tenant.ended(injected.thread_id, 10)
        records = await o.records(thread=injected.thread_id)
    kinds = pairs(records, "to", "agent")
    assert kinds[3:] == [
        ("message_sent", "second", None),
        ("message_sent", "console", None),
        ("message_handled", None, "console"),
        ("message_handled", None, "first"),
        ("message_started", None, "second"),
        ("message_handled", None, "second"),
        ("thread_completed", None, None),
    ]
    assert len({record.at for record in records[3:8]}) == 1


@pytest.mark.parametrize(
    ("step", "before", "after"),
    [
        ('await metadata.ask("echo", Ask("x"))', [], ["echo", "went on"]),
        ("await metadata.now()", [], ["went on"]),
        ('await metadata.effect("x", touch)', [], ["touched", "went on"]),
        ('await metadata.effect("x", touch, kind="unsafe")', [], ["touched", "went on"]),
        ('await metadata.effect("x", touch, kind="pure")', ["touched"], ["touched", "went on"]),
    ],
)
async def test_a_step_is_on_disk_before_it_acts_and_its_result_before_it_is_given(
    world: MakeWorld, step: str, before: list[str], after: list[str]
) -> None:
    disk = Disk()
    async with world(SOURCE.format(step=step), LISTENERS).running(parts=Parts(driver=disk)) as o:
        injected = await o.inject("stepper", {"text": "x"})
        await at_gate(o, "step")
        await o.pump.settled()
        disk.hold()
        open_gate(o, "step")
        await decided(o)
        await idle(o)
        assert play(o)["TRACE"] == before
        disk.release()
        assert await o.tenant.ended(injected.thread_id, 10)
        assert play(o)["TRACE"] == after


async def test_nothing_durable_is_written_next_to_the_log_its_rows_and_the_library(world: MakeWorld) -> None:
    made = world(SOURCE.format(step="pass"), LISTENERS)
    async with made.running() as o:
        injected = await o.inject("first", {"text": "x"})
        await pass_gate(o, "first")
        assert await o.tenant.ended(injected.thread_id, 10)
    files = {path.relative_to(made.data).as_posix() for path in made.data.rglob("*") if path.is_file()}
    names = {name.removesuffix("-wal").removesuffix("-shm") for name in files}
    assert names == {f"tenants/default/{name}" for name in ("key", "lock", "anchor", "log.sqlite", "library.sqlite")}


@pytest.mark.parametrize("what", ["kill", "pause thread", "pause agent"])
async def test_a_command_is_answered_once_it_is_on_disk(world: MakeWorld, what: str) -> None:
    disk = Disk()
    async with world(SOURCE.format(step="pass"), LISTENERS).running(parts=Parts(driver=disk)) as o:
        thread = (await o.inject("first", {"text": "x"})).thread_id
        await at_gate(o, "first")
        await o.pump.settled()
        commands: dict[str, Any] = {
            "kill": KillThread(thread_id=thread),
            "pause thread": PauseThread(thread_id=thread),
            "pause agent": PauseAgent(agent="first"),
        }
        disk.hold()
        commanding = asyncio.create_task(o.do(commands[what]))
        await decided(o)
        await idle(o)
        assert not commanding.done()
        disk.release()
        assert (await commanding).position <= o.log.head
