"""A session's row, and the list of all of a user's sessions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.flows.thinking import agent, says, thinking
from tests.flows.world import MakeWorld
from tests.server.served import Served, served
from tests.server.sessions.talking import User, at_gate, open_gate, talking


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    async with talking(tmp_path) as running:
        yield running


@pytest.fixture
def dan(server: Served) -> User:
    return User(server)


async def listed(user: User, query: str = "") -> list[dict[str, Any]]:
    answer = await user.call("GET", f"/a1/sessions{query}")
    assert answer.status_code == 200, answer.text
    rows: list[dict[str, Any]] = answer.json()["sessions"]
    return rows


async def row(user: User, session: str, of: str = "parrot") -> dict[str, Any]:
    found: dict[str, Any] = (await user.call("GET", f"{of}/sessions/{session}")).json()
    return found


async def test_a_user_finds_the_sessions_with_all_agents_the_newest_activity_first(dan: User) -> None:
    first, second = await dan.begin(), await dan.begin("other")
    await User(dan.server, "eve").begin()
    assert [session["id"] for session in await listed(dan)] == [second, first]
    await dan.say(first, "one")
    rows = await listed(dan)
    assert [(session["id"], session["agent"]) for session in rows] == [(first, "parrot"), (second, "other")]
    assert rows[0] == await row(dan, first)
    assert await listed(User(dan.server, "dan", "acme")) == []
    assert len(await listed(User(dan.server, None, token="boss"))) == 3
    page = (await dan.call("GET", "/a1/sessions?limit=1")).json()
    (rest,) = await listed(dan, f"?limit=1&cursor={page['next']}")
    assert (page["total"], rest["id"]) == (2, second)


async def test_a_session_is_busy_while_a_turn_runs_or_waits(dan: User) -> None:
    session = await dan.begin()
    assert (await row(dan, session))["status"] == "idle"
    saying = [asyncio.ensure_future(dan.say(session, "wait for me"))]
    await at_gate(dan.server, "wait for me")
    assert [each["id"] for each in await listed(dan, "?status=busy")] == [session]
    open_gate(dan.server, "wait for me")
    await asyncio.gather(*saying)
    assert ((await row(dan, session))["status"], await listed(dan, "?status=busy")) == ("idle", [])
    await dan.say(session, "fail")
    assert [each["id"] for each in await listed(dan, "?status=idle")] == [session]


async def test_an_archived_session_is_listed_and_a_deleted_one_is_not(dan: User) -> None:
    session = await dan.begin(compact_keep_last_n=0)
    await dan.say(session, "one")
    answer = await dan.call("POST", f"parrot/sessions/{session}/compact")
    assert answer.is_success, answer.text
    assert [each["id"] for each in await listed(dan, "?status=archived")] == [session]
    (successor,) = await listed(dan, "?status=idle")
    await dan.call("DELETE", f"parrot/sessions/{successor['id']}")
    assert [each["id"] for each in await listed(dan)] == [session]


async def test_a_session_is_called_by_its_first_message_and_counts_its_turns(dan: User) -> None:
    session = await dan.begin()
    begun = await row(dan, session)
    assert (begun["title"], begun["turns"], begun["context_tokens"], begun["cost_usd"]) == (None, 0, None, "0")
    await dan.say(session, "x" * 200)
    await dan.say(session, "two")
    said = await row(dan, session)
    assert (said["title"], said["turns"], said["context_window"]) == ("x" * 120, 2, None)
    small = await dan.begin("small")
    assert (await row(dan, small, "small"))["context_window"] == 50


async def test_a_session_sums_what_its_turns_cost_and_knows_how_full_its_context_is(world: MakeWorld) -> None:
    used = {"input_tokens": 70, "output_tokens": 7}
    answers = [says("One.", usage=used), says("Two.", usage={"input_tokens": 90, "output_tokens": 9})]
    play = thinking(world, {"thinker": agent()}, *answers)
    async with served(play.world.config) as server:
        headers = {**server.bearer, "SPASS-User-Id": "dan"}
        begun = await server.client.post("/a1/agents/thinker/sessions", json={}, headers=headers)
        path = f"/a1/agents/thinker/sessions/{begun.json()['id']}"
        for text in ("one", "two"):
            answer = await server.client.post(f"{path}/messages", json={"message": text}, headers=headers)
            assert answer.is_success, answer.text
        session = (await server.client.get(path, headers=headers)).json()
        calls = (await server.get("/log?type=model_called"))["events"]
        settled = (await server.get("/usage"))["total"]
    last = calls[-1]["data"]
    assert len(calls) == 2
    assert session["context_tokens"] == last["input_tokens"] + last["output_tokens"] > 0
    assert session["cost_usd"] == settled["cost_usd"]


@pytest.mark.parametrize(
    ("query", "code"),
    [("status=deleted", "invalid_field"), ("at=1", "unknown_field"), ("limit=0", "invalid_field")],
)
async def test_a_list_of_sessions_that_cannot_be_made_is_refused(dan: User, query: str, code: str) -> None:
    answer = await dan.call("GET", f"/a1/sessions?{query}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)


async def test_a_list_of_sessions_needs_its_user_and_the_whole_right(dan: User) -> None:
    assert (await User(dan.server, None).call("GET", "/a1/sessions")).json()["error"]["code"] == "missing_field"
    assert (await User(dan.server, token="narrow").call("GET", "/a1/sessions")).status_code == 403
