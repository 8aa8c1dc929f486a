"""What a handling waits for outlives the process: after a crash the rows say again what its next attempt waits for."""

from __future__ import annotations

import msgspec
import pytest

from organism.events.vocabulary import MessageStarted
from organism.server.http.attempts import read_handlings
from organism.testing import Running
from organism.views.handlings import OpenHandling
from organism.views.organism import AGENTS, handlings_of
from tests.flows.stage import at_gate, inject_and_crash_at
from tests.flows.world import MakeWorld

SOURCE = """
async def asker(payload: Ask, metadata: HandlerMetadata):
    await metadata.ask("held", payload)

async def held(payload: Ask, metadata: HandlerMetadata):
    await gate("held")
    return HandlerResponse.respond(Told("done"))

async def payer(payload: Ask, metadata: HandlerMetadata):
    async def pay(key):
        await gate("pay")
    await metadata.effect("pay", pay, kind=payload.text)
    return HandlerResponse.respond(Told("done"))
"""
LISTENERS = {"asker": {"peers": ["held"]}, "held": {}, "payer": {}}


async def open_in(o: Running, thread: str) -> list[OpenHandling]:
    """The thread's handlings under way."""
    return handlings_of(await o.views.live_rows(AGENTS), thread)


async def test_an_ask_is_waited_for_after_a_crash_as_before(world: MakeWorld) -> None:
    made = world(SOURCE, LISTENERS)
    async with made.running() as o:
        sent = await o.inject("asker", {"text": "x"})
        await at_gate(o, "held")
        before = await open_in(o, sent.thread_id)
        await o.crash()
    async with made.running() as o:
        await at_gate(o, "held")
        after = await open_in(o, sent.thread_id)
        row = await o.views.row("messages", sent.message_id)
        (handling,) = await read_handlings(o.log, o.views, b"[%b]" % (row or b""), o.log.head)
    assert [(each.agent, each.attempt) for each in before] == [("asker", 1), ("held", 1)]
    assert sorted((each.agent, each.attempt) for each in after) == [("asker", 2), ("held", 2)]
    (waits,) = [each.waits_for for each in after if each.agent == "asker"]
    assert msgspec.to_builtins(waits) == msgspec.to_builtins(before[0].waits_for)
    assert waits is not None
    assert (waits.kind, waits.name) == ("agent", "held")
    assert (handling.state, [each.outcome for each in handling.attempts]) == ("running", [None, None])


@pytest.mark.parametrize(("kind", "waits_for"), [("idempotent", "effect"), ("unsafe", "person")])
async def test_an_effect_that_a_crash_cut_is_done_again_or_waits_for_a_person(
    world: MakeWorld, kind: str, waits_for: str
) -> None:
    made = world(SOURCE, LISTENERS)
    sent = await inject_and_crash_at(made, "pay", "payer", kind)
    async with made.running() as o:
        if waits_for == "effect":
            await at_gate(o, "pay")
            (handling,) = await open_in(o, sent.thread_id)
            assert handling.waits_for is not None
            assert (handling.waits_for.kind, handling.waits_for.name) == ("effect", "pay")
        else:
            assert await open_in(o, sent.thread_id) == []
            assert len(await o.records(MessageStarted)) == 1
            row = await o.views.row("messages", sent.message_id)
            (found,) = await read_handlings(o.log, o.views, b"[%b]" % (row or b""), o.log.head)
            assert (found.state, len(found.attempts)) == ("queued", 1)
