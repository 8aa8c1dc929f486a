"""The same key and body give the first status and body again, byte for byte (G5)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import orjson
import pytest

from organism.bootstrap import Parts
from tests.flows.disk import Disk, Fault
from tests.flows.stage import TurnedTime
from tests.flows.world import MakeWorld, World
from tests.server.acting import asker
from tests.server.served import Frames, Served, served

KEY = {"Idempotency-Key": "key-1"}
JSON = {"Content-Type": "application/json"}
ACTS: list[tuple[str, str, Any]] = [
    ("POST", "/inject", {"to": "asker", "payload": {"text": ""}, "wait": 10}),
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
    ("DELETE", "/dead-letters/{other}", None),
]


@pytest.fixture
def made(world: MakeWorld) -> World:
    return asker(world)


async def prepared(server: Served) -> dict[str, str]:
    """Something of everything that can be acted on, by its id."""
    async with server.socket("?since=0") as socket:
        frames = Frames(socket)
        for _ in range(2):
            await server.inject("asker", {"text": "bad"})
        await server.inject("asker", {"text": "pay"}, wait=None)
        (*_, effect) = await frames.until("indeterminate")
        await server.inject("asker", {"text": "ask"}, wait=None)
        (*_, approval) = await frames.until("approval")
        thread = (await server.inject("asker", {"text": "ask"}, wait=None))["thread_id"]
        await frames.until("approval")
    letter, other = (await server.get("/dead-letters"))["dead_letters"]
    return {
        "open": thread,
        "approval": approval["approval"]["id"],
        "effect": effect["indeterminate"]["id"],
        "letter": letter["id"],
        "other": other["id"],
        "ended": other["thread_id"],
    }


async def acted(server: Served, ids: dict[str, str], act: tuple[str, str, Any]) -> tuple[int, bytes]:
    """The status and the body with which an act is answered under a key of its own."""
    method, path, body = act
    more = {} if body is None else {"json": body}
    answer = await server.call(
        method, path.format(**ids), headers={"Idempotency-Key": f"key-{ACTS.index(act)}"}, **more
    )
    return answer.status_code, answer.content


async def moved_on(server: Served, thread: str) -> None:
    """Everything that could be shown has moved on."""
    await server.call("POST", "/agents/asker/pause")
    await server.call("POST", "/agents/asker/resume")
    await server.call("POST", "/organism/resume")
    await server.inject("asker", {"text": ""}, thread_id=thread)
    await server.call("POST", f"/threads/{thread}/kill")


async def reloads(server: Served) -> int:
    """How often the organism was reloaded."""
    return len((await server.get("/log?type=organism_reloaded"))["events"])


async def test_each_act_is_answered_again_as_it_was_though_all_has_moved_on(made: World) -> None:
    async with served(made.config, made.data) as server:
        ids = await prepared(server)
        first = [await acted(server, ids, act) for act in ACTS]
        assert {status for status, _ in first} == {200, 202}
        await moved_on(server, orjson.loads(first[0][1])["thread_id"])
        assert [await acted(server, ids, act) for act in ACTS] == first
        stop = await server.call("POST", "/organism/stop", headers=KEY)
    async with served(made.config, made.data) as server:
        assert [await acted(server, ids, act) for act in ACTS] == first
        again = await server.call("POST", "/organism/stop", headers=KEY)
        assert (again.status_code, again.content) == (stop.status_code, stop.content)
        assert (await server.get("/organism"))["status"] == "running"
        assert await reloads(server) == 1


async def failed(
    server: Served, disk: Disk, fault: Fault, act: Callable[[], Awaitable[tuple[int, bytes]]], *, after: int = 0
) -> None:
    """The act, of which the disk fails a commit; then all goes on.

    What the act before has caused may commit first, and meet the fault; then this one was refused, and is tried again.
    """
    status, code = 503, "log_unavailable"
    while code == "log_unavailable":
        disk.fail(fault, after)
        status, body = await act()
        code = orjson.loads(body)["error"]["code"]
        disk.mend()
        await server.until(lambda: server.organism.tenants["default"].writable() is not None)
    assert (status, code) == (503, "commit_unknown")


async def test_what_was_done_and_never_answered_is_not_done_again(made: World) -> None:
    disk = Disk()
    async with served(made.config, made.data, parts=Parts(driver=disk)) as server:
        ids = await prepared(server)
        for act in ACTS[1:]:
            await failed(server, disk, Fault.AFTER, partial(acted, server, ids, act))
            repeated = await acted(server, ids, act)
            assert repeated[0] in {200, 202}, (act, repeated)
            assert await acted(server, ids, act) == repeated
        assert await reloads(server) == 1


async def test_what_was_done_and_whose_answer_was_lost_is_not_done_again(made: World) -> None:
    """Of an answer that is recorded whole, since it is in no row, the record is a commit of its own."""

    async def written() -> tuple[int, bytes]:
        answer = await server.call("PUT", "//v1/tenant/config", json={"on_busy": "reject"}, headers=KEY)
        return answer.status_code, answer.content

    disk = Disk()
    async with served(made.config, made.data, parts=Parts(driver=disk)) as server:
        await failed(server, disk, Fault.BEFORE, written, after=1)
        first = await written()
        await server.call("PUT", "//v1/tenant/config", json={"on_busy": "queue"})
        assert (first[0], await written()) == (200, first)
        assert len((await server.get("/log?type=tenant_config_changed"))["events"]) == 2


async def test_a_thread_that_was_killed_before_is_shown_again_as_it_then_stood(made: World) -> None:
    async with served(made.config) as server:
        ids = await prepared(server)
        thread = ids["ended"]
        await server.call("POST", f"/threads/{thread}/kill")
        first = await server.call("POST", f"/threads/{thread}/kill", headers=KEY)
        await server.call("DELETE", f"/dead-letters/{ids['other']}")
        again = await server.call("POST", f"/threads/{thread}/kill", headers=KEY)
        assert (again.content, again.headers["etag"]) == (first.content, first.headers["etag"])


async def test_an_answer_is_recorded_for_a_day(made: World) -> None:
    time = TurnedTime()
    async with served(made.config, parts=time.parts()) as server:
        first = await server.call("POST", "/agents/asker/pause", headers=KEY)
        await server.call("POST", "/agents/asker/resume")
        time.turn(24 * 3600 - 1)
        again = await server.call("POST", "/agents/asker/pause", headers=KEY)
        assert again.content == first.content
        assert not (await server.get("/agents/asker"))["paused"]
        time.turn(2)
        again = await server.call("POST", "/agents/asker/pause", headers=KEY)
        assert again.json()["position"] > first.json()["position"]
        assert (await server.get("/agents/asker"))["paused"]


async def test_what_was_refused_is_not_kept(made: World) -> None:
    async with served(made.config) as server:
        refused = await server.call("POST", "/agents/asker/pause", json={"hard": True}, headers=KEY)
        done = await server.call("POST", "/agents/asker/pause", headers=KEY)
        assert (refused.status_code, done.status_code) == (400, 200)


async def test_while_the_first_call_runs_its_repetition_says_so(made: World) -> None:
    disk = Disk()
    async with served(made.config, made.data, parts=Parts(driver=disk)) as server:
        disk.hold()
        first = asyncio.ensure_future(server.call("POST", "/agents/asker/pause", headers=KEY))
        await server.until(lambda: server.organism.tenants["default"].pump.writer.pending > 0)
        second = await server.call("POST", "/agents/asker/pause", headers=KEY)
        other = await server.call("POST", "/agents/asker/pause", content=b"{}", headers={**KEY, **JSON})
        disk.release()
        assert (second.status_code, second.json()["error"]["code"]) == (409, "request_in_progress")
        assert (other.status_code, other.json()["error"]["code"]) == (422, "idempotency_key_reused")
        assert (await first).status_code == 200
        other = await server.call("POST", "/agents/asker/pause", content=b"{}", headers={**KEY, **JSON})
        assert (other.status_code, other.json()["error"]["code"]) == (422, "idempotency_key_reused")
