"""Reload: all or nothing; what runs ends on its version, what waits is checked again (G12)."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from organism.errors import ConfigInvalid, NotFound
from organism.events.vocabulary import MessageDead, MessageRefused, MessageStarted, OrganismReloaded
from organism.model.commands import PauseAgent, ReplayDeadLetter, ResumeAgent
from organism.testing import Running
from tests.flows.stage import at_gate, open_gate, play
from tests.flows.world import MakeWorld, World

OLD = """
@dataclass
class Form:
    text: str = ""

async def worker(payload: Ask, metadata: HandlerMetadata):
    await gate(payload.text)
    return HandlerResponse.respond(Told("old"))

async def former(payload: Form, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told(payload.text))
"""
NEW = OLD.replace('"old"', '"new"')
LISTENERS: dict[str, dict[str, Any]] = {"worker": {}, "former": {"payload_class": "Form"}}


@asynccontextmanager
async def begun(world: MakeWorld) -> AsyncIterator[tuple[World, Running]]:
    """The world with its old code, running."""
    made = world(OLD, LISTENERS)
    async with made.running(on_disk=False) as o:
        yield made, o


def refuse(_models: object) -> None:
    """What cannot be served."""
    raise ConfigInvalid("no such model")


async def test_a_handling_ends_on_the_version_it_began_with_and_the_next_takes_the_new_one(world: MakeWorld) -> None:
    async with begun(world) as (made, o):
        running = await o.inject("worker", {"text": "gate"})
        await at_gate(o, "gate")
        before = play(o)
        waiting = await o.inject("worker", {"text": "gate"}, thread_id=running.thread_id)
        made.write(NEW)
        await o.organism.reload()
        open_gate(o, "gate")
        before["GATES"]["gate"].set()
        assert await o.tenant.ended(running.thread_id, 10)
        assert [reply["text"] for reply in await o.replies(running.thread_id)] == ["old", "new"]
        starts = {record.event.message: record.event.version for record in await o.records(MessageStarted)}
    assert starts[running.message_id] != starts[waiting.message_id]


async def test_the_result_names_what_was_added_removed_and_updated_and_is_an_event(world: MakeWorld) -> None:
    made = world(
        OLD, {"gone": {"handler": "worker"}, "worker": {}, "same": {"handler": "former", "payload_class": "Form"}}
    )
    async with made.running(on_disk=False) as o:
        made.write(
            OLD, {"worker": {"max_concurrent": 2}, "same": made.listeners["same"], "fresh": {"handler": "worker"}}
        )
        result = await o.organism.reload()
        reloaded = (await o.records(OrganismReloaded))[0]
        assert await o.views.row("agents", "gone") is None
        assert await o.views.row("agents", "fresh") is not None
    assert (result.added, result.removed, result.updated) == (("fresh",), ("gone",), ("worker",))
    assert (reloaded.event.added, reloaded.event.removed, reloaded.event.updated) == (
        ("fresh",),
        ("gone",),
        ("worker",),
    )
    assert result.position == reloaded.position


async def test_a_removed_listener_takes_nothing_more_and_an_added_one_does(world: MakeWorld) -> None:
    async with begun(world) as (made, o):
        made.write(OLD, {"former": LISTENERS["former"], "fresh": {"handler": "worker"}})
        await o.organism.reload()
        with pytest.raises(NotFound):
            await o.inject("worker", {"text": "x"})
        fresh = await o.inject("fresh", {"text": "gate"})
        await at_gate(o, "gate")
        open_gate(o, "gate")
        assert await o.tenant.ended(fresh.thread_id, 10)


async def wait_paused(o: Running, agent: str, text: str) -> tuple[str, str]:
    """A message that waits for a paused agent; gives thread and message."""
    await o.do(PauseAgent(agent=agent))
    waiting = await o.inject(agent, {"text": text})
    return waiting.thread_id, waiting.message_id


async def test_a_waiting_message_whose_listener_is_gone_becomes_a_dead_letter(world: MakeWorld) -> None:
    async with begun(world) as (made, o):
        thread, message = await wait_paused(o, "former", "kept")
        made.write(OLD, {"worker": {}})
        await o.organism.reload()
        dead = await o.until(MessageDead, message=message)
        assert await o.tenant.ended(thread, 10)
        assert (await o.thread(thread))["status"] == "error"
        assert o.pump.mailboxes.running == 0
        made.write(OLD, LISTENERS)
        await o.organism.reload()
        await o.do(ReplayDeadLetter(message_id=message))
        assert await o.tenant.ended(thread, 10)
        assert await o.replies(thread) == ({"text": "kept"},)
    assert dead.event.code == "listener_gone"
    assert "former" in dead.event.reason


async def test_a_waiting_message_that_no_longer_fits_becomes_a_dead_letter(world: MakeWorld) -> None:
    async with begun(world) as (made, o):
        thread, message = await wait_paused(o, "former", "words")
        made.write(OLD.replace('class Form:\n    text: str = ""', "class Form:\n    text: int = 0"))
        await o.organism.reload()
        await o.do(ResumeAgent(agent="former"))
        dead = await o.until(MessageDead, message=message)
        assert await o.tenant.ended(thread, 10)
    assert dead.event.code == "schema_changed"
    assert dead.event.attempts == 1


async def test_a_waiting_message_that_still_fits_is_delivered_as_the_new_class(world: MakeWorld) -> None:
    async with begun(world) as (made, o):
        thread, _ = await wait_paused(o, "former", "words")
        wider = OLD.replace(
            'class Form:\n    text: str = ""', 'class Form:\n    text: str = ""\n    more: str = "more"'
        )
        made.write(wider.replace("Told(payload.text)", "Told(payload.text + payload.more)"))
        await o.organism.reload()
        await o.do(ResumeAgent(agent="former"))
        assert await o.tenant.ended(thread, 10)
        assert await o.replies(thread) == ({"text": "wordsmore"},)


BAD = """
async def worker(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told("bad"))

def plain(payload: Ask, metadata: HandlerMetadata):
    return None
"""


async def test_a_bad_reload_names_every_fault_and_changes_nothing(world: MakeWorld) -> None:
    async with begun(world) as (made, o):
        open_gate(o, "x")
        head = o.log.head
        made.write(BAD, {"worker": {"peers": ["nobody"]}, "plain": {}, "other": {"handler": "missing", "surprise": 1}})
        with pytest.raises(ConfigInvalid) as refused:
            await o.organism.reload()
        assert o.log.head == head
        outcome = await o.inject("worker", {"text": "x"}, wait=True)
        assert await o.views.row("agents", "former") is not None
    faults = " | ".join(f"{fault.pointer} {fault.message}" for fault in refused.value.details)
    for wanted in ("nobody", "plain", "missing", "surprise", "organism.yaml:"):
        assert wanted in faults
    assert outcome.replies == ({"text": "old"},)


async def test_a_reload_that_is_refused_once_all_is_loaded_takes_back_modules_and_servers(
    world: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with begun(world) as (made, o):
        before, code = play(o), sys.modules["actors.play"]
        made.write(NEW)
        left: list[bool] = []

        async def leave() -> None:
            left.append(True)

        monkeypatch.setattr(o.organism._gateways.registry, "prepared", refuse)  # noqa: SLF001 - what comes after the loading
        monkeypatch.setattr(o.organism._tools, "roll_back", leave)  # noqa: SLF001 - who leaves the servers of tools
        with pytest.raises(ConfigInvalid):
            await o.organism.reload()
        assert left == [True]
        assert sys.modules["actors.play"] is code
        assert play(o) is before


async def test_what_a_running_handler_sends_is_routed_by_the_rules_that_hold_when_it_sends(world: MakeWorld) -> None:
    source = """
    async def sender(payload: Ask, metadata: HandlerMetadata):
        await gate("sender")
        return HandlerResponse(Ask("x"), to="taker")

    async def taker(payload: Ask, metadata: HandlerMetadata):
        return HandlerResponse.respond(Told("taken"))
    """
    made = world(source, {"sender": {"peers": ["taker"]}, "taker": {}})
    async with made.running(on_disk=False) as o:
        thread = (await o.inject("sender", {"text": "x"})).thread_id
        await at_gate(o, "sender")
        gates = play(o)["GATES"]
        made.write(source, {"sender": {}})
        await o.organism.reload()
        gates["sender"].set()
        refused = await o.until(MessageRefused, thread=thread)
        assert await o.tenant.ended(thread, 10)
    assert refused.event.why == "unknown_receiver"


async def test_limits_that_a_reload_changes_hold_from_then_on(world: MakeWorld) -> None:
    made = world(OLD, {"worker": {"max_concurrent": 1}})
    async with made.running(on_disk=False) as o:
        for n in range(2):
            await o.inject("worker", {"text": f"gate{n}"})
        await at_gate(o, "gate0")
        assert len(await o.records(MessageStarted)) == 1
        made.write(OLD, {"worker": {"max_concurrent": 2}})
        result = await o.organism.reload()
        started = (await o.records(MessageStarted))[1]
    assert started.position <= result.position + 1


async def test_a_restart_takes_the_code_that_is_loaded_then(world: MakeWorld) -> None:
    made = world(OLD, LISTENERS)
    async with made.running() as o:
        running = await o.inject("worker", {"text": "gate"})
        await at_gate(o, "gate")
        await o.crash()
    made.write(NEW)
    async with made.running() as o:
        await at_gate(o, "gate")
        open_gate(o, "gate")
        assert await o.tenant.ended(running.thread_id, 10)
        assert await o.replies(running.thread_id) == ({"text": "new"},)


async def test_a_message_whose_listener_is_gone_after_a_restart_becomes_a_dead_letter(world: MakeWorld) -> None:
    made = world(OLD, LISTENERS)
    async with made.running() as o:
        thread, message = await wait_paused(o, "former", "x")
        await o.crash()
    made.write(OLD, {"worker": {}})
    async with made.running() as o:
        dead = await o.until(MessageDead, message=message)
        assert await o.tenant.ended(thread, 10)
    assert dead.event.code == "listener_gone"
