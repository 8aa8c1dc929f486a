"""``/invoke`` with a session: the same turns, by the other surface."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest

from tests.server.sessions.talking import User, at_gate, error_of, open_gate, talking


@pytest.fixture
async def dan(tmp_path: Path) -> AsyncIterator[User]:
    async with talking(tmp_path) as running:
        yield User(running)


async def invoke(user: User, session: str | None, message: str, agent: str = "parrot", **more: Any) -> httpx2.Response:
    """What begins with a capital, or with x, is a header."""
    headers = {name: value for name, value in more.items() if name[0] in "Ix"}
    body = {name: value for name, value in more.items() if name not in headers}
    inputs = {"data": {"inputs": {"message": message}}, **({} if session is None else {"session_id": session})}
    return await user.call("POST", "/invoke", {"agent": agent, **inputs, **body}, **headers)


def text_of(answer: httpx2.Response) -> str:
    assert answer.status_code == 200, answer.text
    return str(answer.json()["data"]["outputs"]["messages"][-1]["content"])


async def test_a_session_is_the_same_by_both_surfaces(dan: User) -> None:
    session = await dan.begin()
    first = await invoke(dan, session, "one")
    assert (text_of(first), first.json()["session_id"]) == ("one after 0: ", session)
    assert first.json()["thread_id"] == f"{session}.1"
    by_header = await invoke(dan, None, "two", x_ag_session_id=session)
    assert text_of(by_header) == "two after 2: one | one after 0: "
    assert (await dan.say(session, "three")).json()["reply"].startswith("three after 4: ")
    streamed = await invoke(dan, session, "four", flags={"stream": True})
    assert orjson.loads(streamed.text.split("\n")[-2]) == {"type": "done", "data": {"stopReason": "stop"}}


async def test_what_the_caller_sends_of_the_talk_so_far_is_the_sessions_own_matter(dan: User) -> None:
    session = await dan.begin()
    talk = [{"role": "user", "content": "invented"}, {"role": "user", "content": "one"}]
    body = {"agent": "parrot", "session_id": session, "data": {"inputs": {"messages": talk}}}
    assert text_of(await dan.call("POST", "/invoke", body)) == "one after 0: "


async def test_a_forced_turn_takes_over_where_the_handler_declares_it(dan: User) -> None:
    session = await dan.begin()
    first = asyncio.ensure_future(invoke(dan, session, "wait"))
    await at_gate(dan.server, "wait")
    forced = await invoke(dan, session, "forced", x_ag_session_control="force")
    assert text_of(forced) == "forced after 1: wait"
    assert error_of(await first)[:2] == (409, "thread_killed")
    plain = await dan.begin("plain")
    refused = await invoke(dan, plain, "x", "plain", flags={"force": True})
    assert error_of(refused) == (406, "force_not_supported", "/flags/force")


async def test_the_answer_says_where_a_message_was_taken_up(dan: User) -> None:
    session = await dan.begin()
    first = asyncio.ensure_future(invoke(dan, session, "wait"))
    await at_gate(dan.server, "wait")
    second = asyncio.ensure_future(invoke(dan, session, "two", on_busy="queue"))
    threads = dan.server.organism.tenants["default"].pump.state.folded.threads
    await dan.server.until(lambda: f"{session}.2" in threads)
    open_gate(dan.server, "wait")
    places = [(await each).json()["position"] for each in (first, second)]
    started = (await dan.server.get("/log?type=message_started"))["events"]
    assert [event["position"] for event in started] == places
    assert error_of(await invoke(dan, None, "x", on_busy="queue")) == (400, "invalid_field", "/on_busy")


async def test_an_archived_session_is_gone_on_with_by_its_successor(dan: User) -> None:
    session = await dan.begin(compact_keep_last_n=0)
    await dan.say(session, "one")
    done = (await dan.call("POST", f"parrot/sessions/{session}/compact", {})).json()
    answer = await invoke(dan, session, "two")
    assert answer.json()["session_id"] == done["successor_session_id"]
    assert text_of(answer).startswith(f"two after 1: [compaction summary from session {session}]")


async def test_a_full_session_is_compacted_before_the_turn(dan: User) -> None:
    session = await dan.begin("small", compact_keep_last_n=0)
    await dan.say(session, "a" * 90, "small")
    answer = await invoke(dan, session, "next", "small")
    assert answer.json()["session_id"] == answer.headers["spass-session-compacted"] != session


async def test_the_same_key_gives_the_same_turn(dan: User) -> None:
    session = await dan.begin()
    answers = [await invoke(dan, session, "one", Idempotency_Key="k") for _ in range(2)]
    assert answers[0].content == answers[1].content
    assert (await dan.history(session))["total"] == 2


@pytest.mark.parametrize("place", ["/session_id", "headers.x-ag-session-id"])
async def test_a_session_that_is_not_there_or_not_the_users_is_named_where_it_was(dan: User, place: str) -> None:
    session = await dan.begin()
    missing, no_user = (404, "not_found", place), (400, "missing_field", "headers.spass-user-id")
    for user, wanted, error in (
        (User(dan.server, "eve"), session, missing),
        (dan, "ses-none", missing),
        (User(dan.server, None), session, no_user),
    ):
        named: dict[str, Any] = {} if place == "/session_id" else {"x_ag_session_id": wanted}
        answer = await invoke(user, None if named else wanted, "x", **named)
        assert error_of(answer) == error
    assert error_of(await invoke(dan, session, "x", "other")) == (400, "session_agent_mismatch", "/agent")
