"""A fault of the pump itself: the state is folded again, waiting callers get an error, and no message repeats it."""

from __future__ import annotations

import pytest

from organism.errors import LogUnavailable, StalePosition, Unavailable
from organism.events.vocabulary import MessageStarted, OrganismResumed, OrganismStarted
from organism.pump.decide.decision import Decision
from organism.testing import Running
from tests.flows.stage import at_gate, open_gate, stopping, until
from tests.flows.world import MakeWorld

ECHO = """
async def echo(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told(payload.text))
"""


async def until_begun_again(o: Running, life: int) -> None:
    """Wait for the life after this one, and until the tenant takes commands again."""
    await o.until(OrganismStarted, life=life + 1)
    await until(lambda: not o.tenant.recovering)


async def test_one_in_what_a_unit_makes_possible_folds_the_state_again(world: MakeWorld) -> None:
    def fault(unit: Decision) -> None:
        if unit.failed is None:
            raise LookupError("a fault of the pump")

    async with world(ECHO, {"echo": {}}).running() as o:
        pump, life = o.pump, o.pump.state.folded.life
        decision = Decision.on(pump.state, None)
        decision.add(OrganismResumed(by="operator"))
        pump.write(decision, fault)
        await until_begun_again(o, life)
        assert o.pump is not pump
        assert (await o.inject("echo", {"text": "still here"}, wait=True)).replies == ({"text": "still here"},)


@pytest.mark.parametrize(("error", "deaths"), [(StalePosition(), 1), (LookupError(), 1), (Unavailable(), 0)])
async def test_it_counts_as_a_death_unless_it_was_the_log_s(world: MakeWorld, error: Exception, deaths: int) -> None:
    source = "async def slow(payload: Ask, metadata: HandlerMetadata):\n    await asyncio.sleep(60)\n"
    async with world(source, {"slow": {}}).running() as o:
        injected = await o.inject("slow", {"text": ""})
        await o.until(MessageStarted, thread=injected.thread_id)
        life = o.pump.state.folded.life
        o.tenant.broken(error)
        await until_begun_again(o, life)
        assert o.pump.state.folded.messages[injected.message_id].deaths == deaths


async def test_a_reload_meanwhile_is_refused_and_changes_nothing(world: MakeWorld) -> None:
    made = world(ECHO, {"echo": {}})
    async with made.running() as o:
        life, settings = o.pump.state.folded.life, o.organism.settings
        made.write(ECHO, {"echo": {}, "another": {"handler": "echo"}})
        o.tenant.broken(LookupError())
        with pytest.raises(LogUnavailable):
            await o.organism.reload()
        assert o.organism.settings is settings
        await until_begun_again(o, life)
        assert (await o.organism.reload()).added == ("another",)
        assert (await o.inject("another", {"text": "here"}, wait=True)).replies == ({"text": "here"},)


async def test_one_while_it_stops_begins_no_new_life(world: MakeWorld) -> None:
    source = """
async def slow(payload: Ask, metadata: HandlerMetadata):
    await gate("slow")
    return HandlerResponse.respond(Told(payload.text))
"""
    made = world(source, {"slow": {}})
    async with made.running() as o:
        injected = await o.inject("slow", {"text": "kept"})
        await at_gate(o, "slow")
        stop = await stopping(o, 60)
        o.tenant.broken(LookupError())
        await stop
    async with made.running() as o:
        assert len(await o.records(OrganismStarted)) == 2
        open_gate(o, "slow")
        assert await o.tenant.ended(injected.thread_id, 10)
        assert [reply["text"] for reply in await o.replies(injected.thread_id)] == ["kept"]
