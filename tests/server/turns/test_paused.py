"""A turn that needs what is paused: refused at once, or waited for by those who say so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest

from organism.server.turns.write.openai import CompletionWriter, Head
from tests.server.served import Served, lines_of, served
from tests.server.sessions.talking import User, at_gate, error_of, open_gate, talking
from tests.server.tenanted import bearer
from tests.server.turns.talkers import talkers

DAN = {"SPASS-User-Id": "dan"}
JSON = {"Accept": "application/json"}
VERCEL = {"x-ag-messages-format": "vercel"}
MESSAGE = {"message": "hello"}
INPUTS: dict[str, Any] = {"data": {"inputs": MESSAGE}}
COMPLETION = {"model": "default", "messages": [{"role": "user", "content": "hello"}]}
ASKING: dict[str, tuple[str, Any, Mapping[str, str]]] = {
    "chat": ("//a1/agents/teller/chat", MESSAGE, DAN),
    "chat as a stream": ("//a1/agents/teller/chat", {**MESSAGE, "stream": True}, DAN),
    "session": ("//a1/agents/teller/sessions/{session}/messages", MESSAGE, DAN),
    "invoke": ("/invoke", {"agent": "teller", **INPUTS}, JSON),
    "invoke by path": ("//agents/teller/invoke", INPUTS, {"Accept": "text/event-stream"}),
    "invoke as the AI SDK": ("/invoke", {"agent": "teller", **INPUTS}, VERCEL),
    "invoke in a session": ("/invoke", {"agent": "teller", **INPUTS, "session_id": "{session}"}, {**DAN, **JSON}),
    "completion": ("//v1/chat/completions", COMPLETION, {}),
    "completion as a stream": ("//v1/chat/completions", {**COMPLETION, "stream": True}, {}),
}
OF_AGENT = [name for name in ASKING if "completion" not in name]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(talkers(tmp_path, models={"default": {"provider": "offline"}})) as serving:
        yield serving


async def ask(server: Served, surface: str, *, waits: bool = False, key: str = "") -> httpx2.Response:
    path, body, given = ASKING[surface]
    is_header = "completion" in surface
    if "{session}" in path + str(body):
        begun = await server.call("POST", "//a1/agents/teller/sessions", json={}, headers=DAN)
        path = path.replace("{session}", begun.json()["id"])
        body = orjson.loads(orjson.dumps(body).replace(b"{session}", begun.json()["id"].encode()))
    more = {"SPASS-Wait": "true"} if waits and is_header else {}
    more |= {"Idempotency-Key": key} if key else {}
    body = {**body, "wait": True} if waits and not is_header else body
    return await server.call("POST", path, json=body, headers={**given, **more})


@pytest.mark.parametrize("surface", ASKING)
async def test_a_turn_of_a_paused_organism_is_refused_before_anything_is_accepted(server: Served, surface: str) -> None:
    await server.call("POST", "/organism/pause")
    answer = await ask(server, surface)
    assert error_of(answer)[:2] == (503, "paused"), answer.text
    assert "organism resume --all" in answer.json()["error"]["message"]
    assert "retry-after" not in answer.headers
    assert (await server.get("/threads"))["total"] == 0


@pytest.mark.parametrize("surface", OF_AGENT)
async def test_a_turn_of_a_paused_agent_is_refused_and_another_agents_is_not(server: Served, surface: str) -> None:
    await server.call("POST", "/agents/teller/pause")
    answer = await ask(server, surface)
    assert error_of(answer)[:2] == (503, "paused"), answer.text
    assert "organism resume teller" in answer.json()["error"]["message"]
    other = await server.call("POST", "/invoke", json={"agent": "echo", **INPUTS})
    assert other.status_code == 200
    await server.call("POST", "/agents/teller/resume")
    assert (await ask(server, surface)).status_code == 200


@pytest.mark.parametrize("surface", ASKING)
async def test_who_waits_is_answered_after_the_resume(server: Served, surface: str) -> None:
    await server.call("POST", "/organism/pause")
    waiting = asyncio.ensure_future(ask(server, surface, waits=True))
    await server.until(lambda: bool(server.organism.tenants["default"].pump.state.folded.messages))
    assert not waiting.done()
    await server.call("POST", "/organism/resume")
    answer = await waiting
    assert answer.status_code == 200, answer.text
    assert "stop" in answer.text


@pytest.mark.parametrize(
    ("surface", "first"),
    [
        ("chat as a stream", '{"type":"waiting","data":{"reason":'),
        ("invoke by path", '{"type":"waiting","data":{"reason":'),
        ("invoke as the AI SDK", '{"type":"start"'),
        ("completion as a stream", '"spass_waiting":{"reason":'),
    ],
)
async def test_a_stream_that_waits_says_so_first(server: Served, surface: str, first: str) -> None:
    await server.call("POST", "/organism/pause")
    path, body, headers = ASKING[surface]
    more = {"SPASS-Wait": "true"} if "completion" in surface else {}
    body = (
        body
        if more
        else {**body, "wait": True, "flags": {"stream": True}}
        if "invoke" in surface
        else {**body, "wait": True}
    )
    url = server.url + (path.removeprefix("/") if path.startswith("//") else f"/api/v1{path}")
    async with server.client.stream("POST", url, json=body, headers={**server.bearer, **headers, **more}) as answer:
        assert answer.status_code == 200
        lines = lines_of(answer)
        said = [await anext(lines)]
        while "The organism is paused." not in said[-1]:
            said.append(await anext(lines))
        assert any(first in line for line in said)
        await server.call("POST", "/organism/resume")
        rest = [line async for line in lines]
    text = "\n".join(rest)
    assert "paused" not in text
    assert text.count('"finish_reason":"stop"') + text.count('"stopReason":"stop"') == 1


PAUSES = {
    "organism": ("/organism", "The organism is paused."),
    "agent": ("/agents/asking", "The agent asking is paused."),
    "thread": ("/threads/{thread}", "for which this waits, is paused."),
}


@pytest.mark.parametrize("paused", PAUSES)
@pytest.mark.parametrize("form", [{"Accept": "text/event-stream"}, VERCEL], ids=["events", "AI SDK"])
async def test_a_stream_says_when_a_pause_begins_and_goes_on_after_it(
    server: Served, form: Mapping[str, str], paused: str
) -> None:
    url, body = f"{server.url}/agents/asking/invoke", {**INPUTS, "wait": True, "flags": {"stream": True}}
    async with server.client.stream("POST", url, json=body, headers={**server.bearer, **form}) as answer:
        lines = lines_of(answer)
        said = [await until(lines, "You said: ")]
        path, reason = PAUSES[paused]
        path = path.format(thread=(await server.get("/threads"))["threads"][0]["id"])
        for _ in ("once", "and again"):
            await server.call("POST", f"{path}/pause")
            await server.call("POST", f"{path}/pause")  # changes nothing, so nothing is said
            said.append(await until(lines, reason))
            await server.call("POST", f"{path}/resume")
        while not (asked := (await server.get("/approvals", params={"status": "pending"}))["approvals"]):
            pass
        await server.call("POST", f"/approvals/{asked[0]['id']}/resolve", json={"decision": "approve"})
        text = "\n".join([*said, *[line async for line in lines]])
    assert text.count(reason) == text.count('"reason":') == 2
    assert (text.count('"delta":"hell"'), text.count('"type":"start"')) == (1, int(form is VERCEL))


async def until(lines: AsyncIterator[str], text: str) -> str:
    """The lines up to one with the text."""
    said = ""
    async for line in lines:
        said += f"{line}\n"
        if text in line:
            return said
    raise AssertionError(f"There was no {text!r}: {said}")


def test_a_completion_that_has_begun_does_not_begin_again_to_say_that_it_waits() -> None:
    writer = CompletionWriter(Head("thr-1", 1, "m"), lambda error: error.message.encode())
    first = writer.lines({"type": "message", "data": {"id": "m1", "text": "Hello"}})
    waiting = orjson.loads(writer.waiting("It is paused.").removeprefix(b"data: "))
    assert first.count(b'"role"') == 1
    assert (waiting["choices"][0]["delta"], waiting["spass_waiting"]) == ({}, {"reason": "It is paused."})


async def test_a_turn_that_waits_for_another_one_of_its_session_says_when_that_is_paused(tmp_path: Path) -> None:
    async with talking(tmp_path) as server:
        dan, tenant = User(server), server.organism.tenants["default"]
        session = await dan.begin()
        running = asyncio.ensure_future(dan.say(session, "wait"))
        await at_gate(server, "wait")

        async def follow() -> str:
            url, body = (
                f"/a1/agents/parrot/sessions/{session}/messages",
                {"message": "next", "stream": True, "wait": True},
            )
            headers = {**bearer("default", "talker"), **DAN}
            async with server.client.stream("POST", url, json=body, headers=headers) as answer:
                lines = lines_of(answer)
                said = await until(lines, f"Thread {session}.1, for which this waits, is paused.")
                await server.call("POST", f"/threads/{session}.1/resume")
                open_gate(server, "wait")
                return said + await until(lines, '"stopReason":"stop"')

        following = asyncio.ensure_future(follow())
        await server.until(lambda: tenant.feed.count > 1)
        await server.call("POST", f"/threads/{session}.1/pause")
        assert (await following).count('"waiting"') == 1
        assert (await running).status_code == 200


async def test_a_client_that_leaves_while_it_waits_goes_on_by_the_id_of_what_it_has(server: Served) -> None:
    await server.call("POST", "/agents/teller/pause")
    path, body, headers = ASKING["chat as a stream"]
    url = server.url + path.removeprefix("/")
    async with server.client.stream(
        "POST", url, json={**body, "wait": True}, headers={**server.bearer, **headers}
    ) as answer:
        line = await anext(lines_of(answer))
    await server.call("POST", "/agents/teller/resume")
    last = {"Last-Event-ID": line.removeprefix("id: ")}
    again = await server.call("POST", path, json=body, headers={**headers, **last})
    assert '"type":"done"' in again.text
    assert (await server.get("/threads"))["total"] == 1


async def test_a_turn_that_was_accepted_before_the_pause_is_answered_under_its_key(server: Served) -> None:
    first = await ask(server, "chat", key="one")
    await server.call("POST", "/agents/teller/pause")
    assert (await ask(server, "chat", key="one")).json() == first.json()
    refused = await ask(server, "chat", key="two")
    await server.call("POST", "/agents/teller/resume")
    done = await ask(server, "chat", key="two")
    assert (refused.status_code, done.status_code) == (503, 200)


async def test_an_injection_is_taken_though_its_receiver_is_paused(server: Served) -> None:
    await server.call("POST", "/agents/teller/pause")
    answer = await server.call("POST", "/inject", json={"to": "teller", "payload": MESSAGE})
    assert answer.status_code == 202


@pytest.mark.parametrize("value", ["yes", "1"])
async def test_an_unknown_wish_to_wait_is_refused(server: Served, value: str) -> None:
    answer = await server.call("POST", "//v1/chat/completions", json=COMPLETION, headers={"SPASS-Wait": value})
    assert error_of(answer) == (400, "invalid_field", "headers.spass-wait")


async def test_a_turn_that_would_wait_for_a_paused_one_of_its_session_is_refused(tmp_path: Path) -> None:
    async with talking(tmp_path) as server:
        dan = User(server)
        session = await dan.begin()
        running = asyncio.ensure_future(dan.say(session, "wait"))
        await at_gate(server, "wait")
        thread = (await server.get("/threads"))["threads"][0]["id"]
        await server.call("POST", f"/threads/{thread}/pause")
        refused = [await dan.say(session, "next", on_busy=on_busy) for on_busy in ("queue", "steer")]
        assert {error_of(each)[:2] for each in refused} == {(503, "paused")}
        assert f"organism resume --thread {thread}" in refused[0].json()["error"]["message"]
        assert error_of(await dan.say(session, "next", on_busy="reject"))[:2] == (409, "session_busy")
        forced = await dan.say(session, "next", on_busy="force")
        assert (forced.status_code, forced.json()["reply"].startswith("next")) == (200, True)
        open_gate(server, "wait")
        assert error_of(await running)[1] == "thread_killed"
