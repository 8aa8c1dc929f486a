"""The slots of the process are shared fairly among the tenants that have work (S4)."""

from __future__ import annotations

import asyncio
import random
from itertools import count
from typing import Any

import orjson
import pytest

from organism.bootstrap import Organism
from organism.events.vocabulary import OrganismStarted
from organism.log.log import EventFilter
from organism.model.commands import Inject, Injected, KillThread, PauseOrganism, ResumeOrganism
from organism.pump.run.mailboxes import wants_slots
from organism.tenants import Tenant
from organism.testing import Running, running
from tests.flows.stage import at_gate, open_gate, play
from tests.flows.world import MakeWorld, World, open_all

SOURCE = """
RUNNING = []

async def worker(payload: Ask, metadata: HandlerMetadata):
    RUNNING.append(payload.text)
    TRACE.append((payload.text, len(RUNNING)))
    try:
        await gate(payload.text)
    finally:
        RUNNING.remove(payload.text)

async def quick(payload: Ask, metadata: HandlerMetadata):
    RUNNING.append(payload.text)
    TRACE.append((payload.text, len(RUNNING)))
    for _ in range(len(TRACE) % 3):
        await asyncio.sleep(0)
    RUNNING.remove(payload.text)
"""
LISTENERS: dict[str, dict[str, Any]] = {
    name: {"max_concurrent": 50, "peers": ["console"]} for name in ("worker", "quick")
}
MANY = 2_000
SLOTS = 4
TURNS = 12
"""So many turns of the loop, and a log in memory has written all that follows from one event."""


@pytest.fixture
def crowded(world: MakeWorld) -> Any:
    """Makes an organism of three tenants with so many slots."""

    def make(slots: int) -> World:
        limits = {"max_concurrent_handlers": slots, "max_queue_per_agent": MANY + 1000}
        made = world(SOURCE, LISTENERS, limits=limits)
        tokens = made.folder / "config" / "tokens.yaml"
        tokens.parent.mkdir(exist_ok=True)
        tokens.write_bytes(orjson.dumps({"tenants": [{"id": "acme"}, {"id": "globex"}]}))
        return made

    return make


async def send(tenant: Tenant, text: str, to: str = "worker") -> str:
    done = await tenant.do(Inject(to=to, json={"text": text}))
    assert isinstance(done, Injected)
    return done.thread_id


async def crowd(tenant: Tenant, text: str, number: int, to: str = "worker") -> list[str]:
    return await asyncio.gather(*(send(tenant, text, to) for _ in range(number)))


def acme_and_globex(o: Running) -> tuple[Tenant, Tenant]:
    return o.organism.tenants["acme"], o.organism.tenants["globex"]


def held(organism: Organism) -> dict[str, int]:
    """How many slots each tenant holds, of those that hold any."""
    found = {name: tenant.pump.mailboxes.running for name, tenant in organism.tenants.items()}
    return {name: number for name, number in found.items() if number}


async def test_a_tenants_message_starts_at_the_next_free_slot_though_another_has_thousands_waiting(
    crowded: Any,
) -> None:
    async with running(crowded(2).config) as o:
        acme, globex = acme_and_globex(o)
        await crowd(acme, "acme", MANY)
        await send(globex, "globex")
        assert held(o.organism) == {"acme": 2}
        one = next(iter(acme.pump.handlings.values()))
        await acme.do(KillThread(thread_id=one.message.thread.id))
        await at_gate(o, "globex")
        assert held(o.organism) == {"acme": 1, "globex": 1}
        assert max(number for _, number in play(o)["TRACE"]) == 2
        await acme.do(PauseOrganism())
        open_all(o)


async def test_each_of_those_that_have_work_comes_to_an_equal_part(crowded: Any) -> None:
    async with running(crowded(6).config) as o:
        acme, globex = acme_and_globex(o)
        await crowd(acme, "acme", 40)
        await crowd(globex, "globex", 40)
        await crowd(o.tenant, "default", 40)
        assert held(o.organism) == {"acme": 6}
        for handling in list(acme.pump.handlings.values()):
            await acme.do(KillThread(thread_id=handling.message.thread.id))
        for name in ("globex", "default"):
            await at_gate(o, name)
        assert held(o.organism) == {"default": 2, "acme": 2, "globex": 2}
        open_all(o)


class Moves:
    """Chance moves in three tenants, each followed until all is done that follows from it."""

    def __init__(self, o: Running, seed: int) -> None:
        self.o = o
        self.chance = random.Random(seed)
        self.number = count()
        self.tenants = list(o.organism.tenants.values())

    async def make(self) -> None:
        """One of them."""
        kinds = (self.send, self.finish, self.kill, self.pause, self.fold_again)
        [move] = self.chance.choices(kinds, (20, 20, 3, 3, 1))
        await move(self.chance.choice(self.tenants))
        await self.quiet()

    async def quiet(self) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(TURNS):
            turned: asyncio.Future[None] = loop.create_future()
            loop.call_soon(turned.set_result, None)
            await turned

    async def send(self, tenant: Tenant) -> None:
        await send(tenant, f"{tenant.id} {next(self.number)}")

    async def finish(self, tenant: Tenant) -> None:
        """One of its handlings ends: the slot goes to one of those who hold the fewest of those that wait."""
        running = [text for text in play(self.o)["RUNNING"] if text.startswith(tenant.id)]
        if not running:
            return
        before = {each.id: each.pump.mailboxes.running for each in self.tenants}
        before[tenant.id] -= 1
        waiting = [before[each.id] for each in self.tenants if wants_slots(each.pump.mailboxes)]
        open_gate(self.o, self.chance.choice(running))
        await self.quiet()
        now = held(self.o.organism)
        assert [number for name, number in before.items() if now.get(name, 0) > number] == sorted(waiting)[:1]

    async def kill(self, tenant: Tenant) -> None:
        for thread in list(tenant.pump.state.folded.threads)[:1]:
            await tenant.do(KillThread(thread_id=thread))

    async def pause(self, tenant: Tenant) -> None:
        await tenant.do(ResumeOrganism() if tenant.pump.state.folded.paused else PauseOrganism())

    async def fold_again(self, tenant: Tenant) -> None:
        head = tenant.log.head
        tenant.broken(ValueError("for once"))
        async for found in tenant.log.follow(head, EventFilter(types=(OrganismStarted,))):
            if found:
                return

    def work(self) -> int:
        """How many messages run or could."""
        pumps = [(tenant.pump.state.folded, tenant.pump.mailboxes) for tenant in self.tenants]
        return sum(boxes.running if routing.paused else len(routing.messages) for routing, boxes in pumps)


@pytest.mark.parametrize("seed", range(3))
async def test_whatever_happens_no_slot_is_idle_while_there_is_work_and_no_more_than_the_limit_run(
    crowded: Any, seed: int
) -> None:
    async with running(crowded(SLOTS).config) as o:
        moves = Moves(o, seed)
        for _ in range(150):
            await moves.make()
            assert sum(held(o.organism).values()) == min(SLOTS, moves.work()) == len(play(o)["RUNNING"])
        open_all(o)


async def test_what_one_that_stops_held_is_divided_among_the_others(crowded: Any) -> None:
    async with running(crowded(4).config) as o:
        acme, globex = acme_and_globex(o)
        await crowd(acme, "acme", 4)
        for tenant in (globex, o.tenant):
            await crowd(tenant, tenant.id, 10)
        await acme.stop(0)
        del o.organism.tenants["acme"]
        for tenant in (globex, o.tenant):
            await at_gate(o, tenant.id)
        assert held(o.organism) == {"globex": 2, "default": 2}
        open_all(o)


async def test_a_tenant_that_comes_later_shares_from_then_on(world: MakeWorld) -> None:
    made = world(SOURCE, LISTENERS, limits={"max_concurrent_handlers": 2})
    async with running(made.config) as o:
        await crowd(o.tenant, "default", 5)
        assert o.tenant.pump.mailboxes.fair_share is None
        await o.organism.open_tenants(["late"])
        late = o.organism.tenants["late"]
        await send(late, "late")
        one = next(iter(o.tenant.pump.handlings.values()))
        await o.tenant.do(KillThread(thread_id=one.message.thread.id))
        await at_gate(o, "late")
        assert held(o.organism) == {"default": 1, "late": 1}
        open_all(o)


async def test_a_reload_that_gives_more_slots_gives_them_to_who_waits(crowded: Any) -> None:
    made = crowded(1)
    async with running(made.config) as o:
        acme, globex = acme_and_globex(o)
        await send(acme, "hangs")
        await at_gate(o, "hangs")
        thread = await send(globex, "globex", "quick")
        made.top["limits"]["max_concurrent_handlers"] = 2
        made.write(SOURCE)
        await o.organism.reload()
        assert await globex.ended(thread, 10)
        assert held(o.organism) == {"acme": 1}
        open_all(o)
