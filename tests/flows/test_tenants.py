"""Tenants: one organism for each, of one config and one code; they share nothing else (S4)."""

from __future__ import annotations

import math
import stat
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pytest

from organism import bootstrap
from organism.bootstrap import Parts
from organism.errors import LogHeld
from organism.events.record import Actor, Record
from organism.events.vocabulary import Event, OrganismReloaded
from organism.log.directory import LogDirectory
from organism.log.log import EventFilter
from organism.model.commands import Inject, PauseAgent, PauseOrganism
from organism.model.ids import folder_of
from organism.tenants import Tenant
from organism.testing import Running, running
from tests.flows.world import MakeWorld, World

WAITS = """
async def greeter(payload: Ask, metadata):
    await metadata.approve({"text": payload.text})

async def other(payload: Ask, metadata):
    return HandlerResponse(Told(payload.text), to="console")
"""
LISTENERS: Mapping[str, dict[str, Any]] = {"greeter": {}, "other": {"peers": ["console"]}}


@pytest.fixture
def shared(world: MakeWorld) -> World:
    """An organism of three tenants."""
    made = world(WAITS, dict(LISTENERS))
    tokens = made.folder / "config" / "tokens.yaml"
    tokens.parent.mkdir(exist_ok=True)
    tokens.write_bytes(orjson.dumps({"tenants": [{"id": "acme"}, {"id": "globex"}]}))
    return made


async def send(tenant: Tenant, to: str) -> str:
    """Inject, and give the thread."""
    done = await tenant.do(Inject(to=to, json={"text": tenant.id}))
    return getattr(done, "thread_id", "")


async def records(tenant: Tenant, *types: type[Event]) -> list[Record[Any]]:
    return await tenant.log.read(wanted=EventFilter(types=types, content=True), limit=1000)


def tenants(o: Running) -> list[Tenant]:
    return list(o.organism.tenants.values())


async def test_each_tenant_has_a_log_with_positions_of_its_own(shared: World) -> None:
    async with running(shared.config, parts=Parts(blocked_seconds=math.inf)) as o:
        assert [tenant.id for tenant in tenants(o)] == ["default", "acme", "globex"]
        acme = o.organism.tenants["acme"]
        before = {tenant.id: tenant.log.head for tenant in tenants(o)}
        thread = await send(acme, "other")
        assert await acme.ended(thread, 10)
        assert acme.log.head > before["acme"]
        assert len({tenant.log.timeline for tenant in tenants(o)}) == 3
        for other in (o.tenant, o.organism.tenants["globex"]):
            assert await other.views.row("threads", thread) is None
            assert await other.log.read(before[other.id]) == []


async def test_each_tenant_has_a_directory_of_its_own_and_default_keeps_its_name(shared: World) -> None:
    async with running(shared.config, shared.data):
        pass
    place = shared.data / "tenants"
    assert {each.name for each in place.iterdir()} == {
        "default",
        sha256(b"acme").hexdigest()[:32],
        sha256(b"globex").hexdigest()[:32],
    }
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    for each in place.rglob("*"):
        assert stat.S_IMODE(each.stat().st_mode) == (0o700 if each.is_dir() else 0o600), each


def texts(folder: Path, pattern: str) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.glob(pattern)}


async def test_a_key_that_lies_elsewhere_is_each_tenants_own(shared: World, tmp_path: Path) -> None:
    parts = Parts(key_path=tmp_path / "chain.key")
    keys = []
    for _ in range(2):
        async with running(shared.config, shared.data, parts) as o:
            for tenant in tenants(o):
                assert await tenant.ended(await send(tenant, "other"), 10)
        keys.append(texts(tmp_path, "chain.key*"))
    assert keys[0] == keys[1]
    assert set(keys[0]) == {"chain.key", f"chain.key.{folder_of('acme')}", f"chain.key.{folder_of('globex')}"}
    assert len(set(keys[0].values())) == 3


def test_no_id_can_name_another_tenants_directory() -> None:
    hashed = folder_of("acme")
    assert len({folder_of(each) for each in ("acme", "Acme", hashed, "default", "../acme")}) == 5
    assert folder_of("../acme").isalnum()


async def test_the_open_messages_of_all_tenants_are_taken_up_at_the_start(shared: World) -> None:
    async with running(shared.config, shared.data) as o:
        for tenant in tenants(o):
            await tenant.do(PauseAgent(agent="other"))
            await send(tenant, "other")
    async with running(shared.config, shared.data) as o:
        for tenant in tenants(o):
            assert len(tenant.pump.state.folded.threads) == 1
            assert tenant.pump.state.folded.threads.keys() <= {record.thread for record in await records(tenant)}


async def test_a_pause_of_the_organism_acts_inside_its_tenant(shared: World) -> None:
    async with running(shared.config) as o:
        acme, globex = o.organism.tenants["acme"], o.organism.tenants["globex"]
        await acme.do(PauseOrganism())
        waiting, done = await send(acme, "other"), await send(globex, "other")
        assert await globex.ended(done, 10)
        assert waiting in acme.pump.state.folded.threads
        assert o.organism.status == "running"
        await globex.do(PauseAgent(agent="other"))
        assert await o.tenant.ended(await send(o.tenant, "other"), 10)


async def test_a_reload_reaches_every_tenant_and_names_its_cause_to_the_operator_alone(shared: World) -> None:
    async with running(shared.config) as o:
        shared.write(WAITS, {**LISTENERS, "third": {"handler": "other"}})
        await o.organism.reload(Actor(request_id="req-1"))
        for tenant in tenants(o):
            [record] = await records(tenant, OrganismReloaded)
            assert record.event.added == ("third",)
            is_named = record.actor is not None and record.actor.request_id == "req-1"
            assert is_named == (tenant.id == "default")
            assert await tenant.views.row("agents", "third") is not None


async def test_a_tenant_that_another_process_holds_ends_the_start_and_lets_the_others_go(shared: World) -> None:
    async with running(shared.config, shared.data):
        pass
    held = LogDirectory(shared.data / "tenants" / folder_of("globex"))
    held.lock(lambda: 0)
    with pytest.raises(LogHeld):
        await bootstrap.start(shared.config, shared.data)
    held.unlock()
    async with running(shared.config, shared.data) as o:
        assert len(tenants(o)) == 3


async def test_a_tenant_that_comes_later_is_opened_once(shared: World) -> None:
    async with running(shared.config) as o:
        await o.organism.open_tenants(["late", "acme"])
        late = o.organism.tenants["late"]
        await o.organism.open_tenants(["late"])
        assert o.organism.tenants["late"] is late
        assert await late.ended(await send(late, "other"), 10)
