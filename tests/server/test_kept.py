"""The same key and body give the first status and body again, byte for byte (G5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from organism.errors import CommitUnknown
from organism.tenants import Tenant
from tests.flows.stage import TurnedTime
from tests.flows.world import MakeWorld, World
from tests.server.served import Frames, Served, served

SOURCE = """
async def asker(payload: Ask, metadata: HandlerMetadata):
    if payload.text == "bad":
        raise ValueError("bad")
    if payload.text == "ask":
        await metadata.approve({"sum": 3})
    if payload.text == "pay":
        async def pay(key: str):
            await asyncio.sleep(60)
        await metadata.effect("pay", pay, kind="unsafe")
    return HandlerResponse.respond(Told("done"))
"""
KEY = {"Idempotency-Key": "key-1"}
ACTS: list[tuple[str, str, Any]] = [
    ("POST", "/agents/asker/pause", None),
    ("POST", "/agents/asker/resume", None),
    ("POST", "/organism/pause", None),
    ("POST", "/organism/resume", None),
    ("POST", "/organism/reload", None),
    ("POST", "/threads/{ended}/kill", None),
    ("POST", "/threads/{open}/pause", None),
    ("POST", "/threads/{open}/resume", None),
    ("POST", "/threads/{open}/kill", None),
    ("POST", "/approvals/{approval}/resolve", {"decision": "approve", "comment": "fine"}),
    ("POST", "/indeterminate/{effect}/resolve", {"outcome": "done", "result": {"paid": 3.5}}),
    ("POST", "/dead-letters/{letter}/replay", {"payload": {"text": "good"}}),
    ("DELETE", "/dead-letters/{letter}", None),
]


@pytest.fixture
def made(world: MakeWorld) -> World:
    """One who asks, pays, fails or answers, as it is told."""
    return world(SOURCE, {"asker": {"timeout_s": 0.5}}, retry={"attempts": 1})


@asynccontextmanager
async def acting(made: World, data: Path | None = None) -> AsyncIterator[Served]:
    """The served world."""
    async with served(made.config, data) as server:
        yield server


async def prepared(server: Served) -> dict[str, str]:
    """Something of everything that can be acted on, by its id."""
    async with server.socket("?since=0") as socket:
        frames = Frames(socket)
        await server.inject("asker", {"text": "bad"})
        await server.inject("asker", {"text": "pay"}, wait=None)
        (*_, effect) = await frames.until("indeterminate")
        thread = (await server.inject("asker", {"text": "ask"}, wait=None))["thread_id"]
        (*_, approval) = await frames.until("approval")
    letter = (await server.get("/dead-letters"))["dead_letters"][0]
    return {
        "open": thread,
        "approval": approval["approval"]["id"],
        "effect": effect["indeterminate"]["id"],
        "letter": letter["id"],
        "ended": letter["thread_id"],
    }


async def moved_on(server: Served) -> None:
    """Everything that could be shown has moved on."""
    await server.call("POST", "/agents/asker/pause")
    await server.call("POST", "/agents/asker/resume")
    await server.call("POST", "/organism/resume")
    await server.inject("asker", {"text": ""}, wait=10)


@pytest.mark.parametrize(("method", "path", "body"), ACTS)
async def test_each_act_is_answered_again_as_it_was_though_all_has_moved_on(
    made: World, method: str, path: str, body: Any
) -> None:
    more = {"headers": KEY} | ({} if body is None else {"json": body})
    async with acting(made, made.data) as server:
        path = path.format(**await prepared(server))
        first = await server.call(method, path, **more)
        assert first.status_code in {200, 202}
        await moved_on(server)
        second = await server.call(method, path, **more)
    async with acting(made, made.data) as server:
        third = await server.call(method, path, **more)
        events = (await server.get("/log?limit=500"))["events"]
    assert [(answer.status_code, answer.content) for answer in (second, third)] == [
        (first.status_code, first.content)
    ] * 2
    assert not [event for event in events if event["type"] == "organism_reloaded"][1:]


async def test_an_answer_is_kept_for_a_day(made: World) -> None:
    time = TurnedTime()
    async with served(made.config, parts=time.parts()) as server:
        first = await server.call("POST", "/agents/asker/pause", headers=KEY)
        await server.call("POST", "/agents/asker/resume")
        time.turn(24 * 3600 - 1)
        again = await server.call("POST", "/agents/asker/pause", headers=KEY)
        assert again.content == first.content
        assert not (await server.get("/agents/asker"))["paused"]
        time.turn(2)
        anew = await server.call("POST", "/agents/asker/pause", headers=KEY)
        assert anew.json()["position"] > first.json()["position"]
        assert (await server.get("/agents/asker"))["paused"]


async def test_a_stop_is_not_repeated_in_the_next_life(made: World) -> None:
    async with acting(made, made.data) as server:
        first = await server.call("POST", "/organism/stop", headers=KEY)
    async with acting(made, made.data) as server:
        again = await server.call("POST", "/organism/stop", headers=KEY)
        assert (again.status_code, again.content) == (first.status_code, first.content)
        assert (await server.get("/organism"))["status"] == "running"


async def test_another_body_under_the_key_is_refused(made: World) -> None:
    async with acting(made) as server:
        path = f"/approvals/{(await prepared(server))['approval']}/resolve"
        await server.call("POST", path, json={"decision": "approve"}, headers=KEY)
        answer = await server.call("POST", path, json={"decision": "reject"}, headers=KEY)
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "idempotency_key_reused")


async def test_what_was_refused_is_not_kept(made: World) -> None:
    async with acting(made) as server:
        refused = await server.call("POST", "/agents/asker/pause", json={"hard": True}, headers=KEY)
        done = await server.call("POST", "/agents/asker/pause", headers=KEY)
        assert (refused.status_code, done.status_code) == (400, 200)


async def test_while_the_first_call_runs_its_repetition_is_told_so(
    made: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, released = asyncio.Event(), asyncio.Event()
    keep = Tenant.keep_answer

    async def slowly(self: Tenant, *said: Any) -> None:
        reached.set()
        await released.wait()
        await keep(self, *said)

    monkeypatch.setattr(Tenant, "keep_answer", slowly)
    async with acting(made) as server:
        first = asyncio.ensure_future(server.call("POST", "/agents/asker/pause", headers=KEY))
        await reached.wait()
        second = await server.call("POST", "/agents/asker/pause", headers=KEY)
        other = await server.call("POST", "/agents/asker/pause", content=b"{}", headers={**KEY, **JSON})
        released.set()
        assert (second.status_code, second.json()["error"]["code"]) == (409, "request_in_progress")
        assert (other.status_code, other.json()["error"]["code"]) == (422, "idempotency_key_reused")
        assert (await first).status_code == 200


JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(("method", "path", "body"), ACTS)
async def test_what_was_done_and_never_answered_is_not_done_again(
    made: World, monkeypatch: pytest.MonkeyPatch, method: str, path: str, body: Any
) -> None:
    async def lost(*_: Any) -> None:
        raise CommitUnknown

    more = {"headers": KEY} | ({} if body is None else {"json": body})
    async with acting(made) as server:
        path = path.format(**await prepared(server))
        with monkeypatch.context() as patch:
            patch.setattr(Tenant, "keep_answer", lost)
            await server.call(method, path, **more)
        repeated = await server.call(method, path, **more)
        again = await server.call(method, path, **more)
        events = (await server.get("/log?limit=500"))["events"]
        assert repeated.status_code in {200, 202}
        assert len([event for event in events if event["type"] == "organism_reloaded"]) == path.endswith("/reload")
        assert (again.status_code, again.content) == (repeated.status_code, repeated.content)


async def test_an_injection_that_was_waited_for_is_answered_alike_though_its_thread_went_on(made: World) -> None:
    body = {"to": "asker", "payload": {"text": ""}, "wait": 10}
    async with acting(made, made.data) as server:
        first = await server.call("POST", "/inject", json=body, headers=KEY)
        thread = first.json()["thread_id"]
        await server.inject("asker", {"text": ""}, thread_id=thread)
        await server.call("POST", f"/threads/{thread}/kill")
        second = await server.call("POST", "/inject", json=body, headers=KEY)
    async with acting(made, made.data) as server:
        third = await server.call("POST", "/inject", json=body, headers=KEY)
    assert first.status_code == 200
    assert first.content == second.content == third.content
