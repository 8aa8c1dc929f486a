"""A fault of the pump itself: the state is folded anew, who waits is told, and no message makes it so for ever."""

from __future__ import annotations

import asyncio

import pytest

from organism.errors import StalePosition, Unavailable
from organism.pump.unit import Decision
from organism.testing import Running
from tests.flows.world import MakeWorld

ECHO = """
async def echo(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told(payload.text))
"""


async def until_begun_anew(o: Running, life: int) -> None:
    """Wait for the life after this one, and until the tenant takes commands again."""
    await o.until("organism_started", life=life + 1)
    while o.tenant.recovering:
        turned = asyncio.Event()
        asyncio.get_running_loop().call_soon(turned.set)
        await turned.wait()


async def test_one_in_what_a_unit_makes_possible_folds_the_state_anew(world: MakeWorld) -> None:
    def fault(unit: Decision) -> None:
        if unit.failed is None:
            raise LookupError("a fault of the pump")

    async with world(ECHO, {"echo": {}}).running() as o:
        pump, life = o.pump, o.pump.state.routing.life
        decision = pump.state.decide(None)
        decision.add("organism_resumed", {"by": "operator"})
        pump.write(decision, fault)
        await until_begun_anew(o, life)
        assert o.pump is not pump
        assert (await o.inject("echo", {"text": "still here"}, wait=True)).replies == ({"text": "still here"},)


@pytest.mark.parametrize(("error", "deaths"), [(StalePosition(), 1), (LookupError(), 1), (Unavailable(), 0)])
async def test_it_counts_as_a_death_unless_it_was_the_log_s(world: MakeWorld, error: Exception, deaths: int) -> None:
    source = "async def slow(payload: Ask, metadata: HandlerMetadata):\n    await asyncio.sleep(60)\n"
    async with world(source, {"slow": {}}).running() as o:
        injected = await o.inject("slow", {"text": ""})
        await o.until("message_started", thread=injected.thread_id)
        life = o.pump.state.routing.life
        o.tenant.broken(error)
        await until_begun_anew(o, life)
        assert o.pump.state.routing.messages[injected.message_id].deaths == deaths
