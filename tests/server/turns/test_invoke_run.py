"""Invoke of a handler that shows a run: streamed as it comes, one fold with the batch, whatever happens (4.4, 4.5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest

from organism.model.commands import Inject, Injected
from organism.server.turns.follow import MAX_WAITING_PIECES, entries_of
from organism.views.run import fold
from tests.server.logged import logged
from tests.server.served import PATIENCE_SECONDS, Served, lines_of, patience, served
from tests.server.tenanted import bearer, write_tokens
from tests.server.turns.talkers import talkers

HELLO = {"data": {"inputs": {"message": "hello, you of many words"}}}
SAID = [{"role": "assistant", "content": "You said: hello, you of many words"}]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return talkers(tmp_path)


@pytest.fixture
async def server(config: Path) -> AsyncIterator[Served]:
    async with served(config) as serving:
        yield serving


async def batch(server: Served, agent: str, **headers: str) -> httpx2.Response:
    url = f"{server.url}/agents/{agent}/invoke"
    return await server.client.post(url, json=HELLO, headers={**server.bearer, **headers})


@asynccontextmanager
async def streamed(server: Served, agent: str, **headers: str) -> AsyncIterator[AsyncIterator[Any]]:
    """A stream's entries as they come."""
    given = {**server.bearer, "accept": "application/x-ndjson", **headers}
    url = f"{server.url}/agents/{agent}/invoke"
    async with server.client.stream("POST", url, json=HELLO, headers=given) as answer:
        assert answer.status_code == 200
        yield (orjson.loads(line) async for line in lines_of(answer))


async def all_lines(server: Served, agent: str, **headers: str) -> list[Any]:
    async with streamed(server, agent, **headers) as lines:
        return [entry async for entry in lines]


async def until(lines: AsyncIterator[Any], kind: str) -> list[Any]:
    """The entries up to the first of this type."""
    seen = []
    async for entry in lines:
        seen.append(entry)
        if entry["type"] == kind:
            return seen
    raise AssertionError(f"There was no {kind}: {seen}")


async def resolve(server: Served) -> str:
    """Approve what waits; gives its thread."""
    while not (waiting := (await server.get("/approvals", params={"status": "pending"}))["approvals"]):
        pass
    await server.call("POST", f"/approvals/{waiting[0]['id']}/resolve", json={"decision": "approve"})
    return str(waiting[0]["thread_id"])


async def test_text_is_sent_before_the_run_goes_on(server: Served) -> None:
    async with streamed(server, "asking") as lines:
        seen = await until(lines, "message_delta")
        assert seen[-1]["data"] == {"id": "m1", "delta": "You said: ", "offset": 0}
        await resolve(server)
        rest = [entry async for entry in lines]
    assert rest[-1] == {"type": "done", "data": {"stopReason": "stop"}}
    assert fold([*seen, *rest])["messages"] == SAID


async def test_a_run_that_is_killed_ends_with_its_text_and_says_so(server: Served) -> None:
    async with streamed(server, "asking") as lines:
        await until(lines, "message_delta")
        thread = (await server.get("/threads"))["threads"][0]["id"]
        await server.call("POST", f"/threads/{thread}/kill")
        rest = [entry async for entry in lines]
    assert rest[-1] == {"type": "done", "data": {"stopReason": "killed"}}


async def test_the_same_key_tells_the_same_run_again_from_the_log(server: Served) -> None:
    once = {"idempotency-key": "one"}
    first = fold(await all_lines(server, "teller", **once))
    assert fold(await all_lines(server, "teller", **once)) == first
    assert (await batch(server, "teller", **once)).json()["data"]["outputs"]["messages"] == first["messages"]
    assert (await server.get("/threads"))["total"] == 1


async def test_a_run_that_is_joined_late_is_sent_whole(server: Served) -> None:
    once = {"idempotency-key": "two"}
    async with streamed(server, "asking", **once) as lines:
        await until(lines, "message_delta")
        async with streamed(server, "asking", **once) as late:
            assert fold(await until(late, "message_delta"))["messages"][0]["content"] == "You said: "
            await resolve(server)
            assert [entry async for entry in late][-1]["type"] == "done"


async def test_what_a_slow_client_has_no_room_for_reaches_it_from_the_log(server: Served) -> None:
    tenant = server.organism.tenants["default"]
    message = "x" * 8 * MAX_WAITING_PIECES  # ``teller`` sends four characters at a time
    sent = await tenant.do(Inject(to="teller", json={"message": message}))
    assert isinstance(sent, Injected)
    entries = entries_of(tenant, sent)
    seen = [await anext(entries)]
    assert await tenant.ended(sent.thread_id, PATIENCE_SECONDS)
    seen += [entry async for entry in entries]
    assert fold(seen)["messages"] == [{"role": "assistant", "content": f"You said: {message}"}]
    assert len(seen) < 2 * MAX_WAITING_PIECES


async def test_a_run_goes_on_when_its_client_leaves(server: Served) -> None:
    async with streamed(server, "asking") as lines:
        await until(lines, "message_delta")
    thread = await resolve(server)
    assert await server.organism.tenants["default"].ended(thread, 10)
    assert (await server.get(f"/threads/{thread}"))["status"] == "completed"
    assert server.organism.tenants["default"].feed.count == 0


async def test_a_stream_ends_with_its_token_and_the_run_goes_on(config: Path) -> None:
    path = write_tokens(config.parent, {"default": {"app": ["agents:chat"]}})
    async with served(config) as server:
        async with streamed(server, "asking", **bearer("default", "app")) as lines:
            await until(lines, "message_delta")
            path.unlink()
            async with asyncio.timeout(PATIENCE_SECONDS):
                assert "done" not in [line["type"] async for line in lines]
        await server.until(lambda: not server.serving.process.connections.answers)
        thread = await resolve(server)
        assert await server.organism.tenants["default"].ended(thread, 10)


@pytest.mark.parametrize("accept", ["application/json", "application/x-ndjson"])
async def test_anyone_who_waits_for_a_run_and_leaves_is_waited_for_no_longer(server: Served, accept: str) -> None:
    tenant = server.organism.tenants["default"]
    with logged() as log:
        async with httpx2.AsyncClient(trust_env=False) as client:
            url = f"{server.url}/agents/mute/invoke"
            asking = client.post(url, json=HELLO, headers={**server.bearer, "accept": accept}, timeout=None)
            waiting = asyncio.ensure_future(asking)
            await server.until(lambda: tenant.feed.count == 1)
            waiting.cancel()
        await server.until(lambda: "/agents/{name}/invoke" in {entry.get("route") for entry in log.entries})
        ends = [entry["status"] for entry in log.entries if entry.get("route", "").endswith("/invoke")]
    assert ends == [499]
    assert tenant.feed.count == 0
    thread = await resolve(server)
    assert await tenant.ended(thread, PATIENCE_SECONDS)
    assert (await server.get(f"/threads/{thread}"))["status"] == "completed"


async def test_events_have_a_heartbeat_while_the_run_is_quiet_and_lines_have_none(config: Path) -> None:
    async with served(config, settings=patience(heartbeat_seconds=0.01)) as server:
        url = f"{server.url}/agents/asking/invoke"
        once = {**server.bearer, "idempotency-key": "beat", "accept": "text/event-stream"}
        for more in ({}, {"x-ag-messages-format": "vercel"}):
            async with server.client.stream("POST", url, json=HELLO, headers={**once, **more}) as answer:
                lines = lines_of(answer)
                beats = 0
                while beats < 3:
                    beats += (await anext(lines)) == ":"
        async with streamed(server, "asking", **{"idempotency-key": "beat"}) as entries:
            seen = await until(entries, "message_delta")
            await resolve(server)
            assert fold([*seen, *[entry async for entry in entries]])["messages"] == SAID


async def test_a_run_is_followed_over_the_death_of_the_server(config: Path, tmp_path: Path) -> None:
    once = {"idempotency-key": "three"}
    async with served(config, tmp_path / "data") as server:
        async with streamed(server, "asking", **once) as lines:
            seen = await until(lines, "message_delta")
            await server.organism.tenants["default"].crash()
            assert "done" not in {entry["type"] async for entry in lines}
        await server.organism.stop(0, is_crash=True)
    async with served(config, tmp_path / "data") as server, streamed(server, "asking", **once) as lines:
        again = await until(lines, "message_start")
        await resolve(server)
        again += [entry async for entry in lines]
    assert fold(again)["messages"] == SAID
    assert seen[0] == again[0]


async def test_a_stopping_server_does_not_hold_a_batch_for_ever(server: Served) -> None:
    waiting = asyncio.ensure_future(batch(server, "asking"))
    while not (await server.get("/approvals", params={"status": "pending"}))["count"]:
        pass
    server.serving.stop()
    answer = await waiting
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "stopping")
