"""Lines of sessions over HTTP: compacted by hand and by themselves, gone on with, had back whole."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.server.sessions.talking import User, at_gate, error_of, events_of, open_gate, talking, text_of
from tests.server.sessions.test_failing_turns import talking as scripted


@pytest.fixture
async def dan(tmp_path: Path) -> AsyncIterator[User]:
    async with talking(tmp_path) as running:
        yield User(running)


async def post(user: User, path: str, status: int = 200) -> Any:
    answer = await user.call("POST", f"parrot/sessions/{path}", {})
    assert answer.status_code == status, answer.text
    return answer.json()


async def grown(user: User, *messages: str, agent: str = "parrot", **settings: Any) -> str:
    """A session in which these were said."""
    session = await user.begin(agent, **settings)
    for message in messages:
        assert (await user.say(session, message, agent)).status_code == 200
    return session


async def test_a_compaction_archives_the_session_and_a_turn_for_it_is_sent_on_whole(dan: User) -> None:
    session = await grown(dan, "one", "two", compact_keep_last_n=2)
    done = await post(dan, f"{session}/compact")
    successor = done["successor_session_id"]
    assert (done["source_session_id"], done["summary_text"]) == (session, "short of 1")
    moved = await dan.say(session, "three")
    location = f"/a1/agents/parrot/sessions/{successor}/messages"
    assert (moved.status_code, moved.headers["location"], moved.content) == (308, location, b"")
    followed = await dan.say(session, "three", follow_redirects=True)
    turn = followed.json()
    assert turn["session_id"] == successor
    assert turn["reply"].startswith(f"three after 3: [compaction summary from session {session}] short of 1 | two | ")
    page = await dan.history(session)
    assert [message["compacted_at"] is None for message in page["messages"]] == [False, False, True, True]
    first = (await dan.history(successor))["messages"][0]
    assert (first["id"], first["role"]) == (done["summary_id"], "assistant")
    source = (await dan.call("GET", f"parrot/sessions/{session}")).json()
    assert (source["successor_session_id"], source["archived_at"]) == (successor, page["messages"][0]["compacted_at"])


async def test_one_hop_leads_to_the_live_end_and_to_nothing_once_that_is_deleted(dan: User) -> None:
    session = await grown(dan, "one", compact_keep_last_n=0)
    second = (await post(dan, f"{session}/compact"))["successor_session_id"]
    assert (await dan.say(second, "two")).status_code == 200
    third = (await post(dan, f"{second}/compact"))["successor_session_id"]
    assert (await dan.say(session, "x")).headers["location"].split("/")[-2] == third
    shown = (await dan.call("GET", f"parrot/sessions/{second}/lineage")).json()
    assert [each["id"] for each in shown["backward"]] == [session]
    assert [each["id"] for each in shown["forward"]] == [third]
    assert [each["text"] for each in shown["summaries"]] == [
        f"[compaction summary from session {session}] short of 1",
        f"[compaction summary from session {second}] short of 1",
    ]
    assert (await dan.call("DELETE", f"parrot/sessions/{third}")).status_code == 204
    assert error_of(await dan.say(session, "x"))[:2] == (404, "not_found")
    shown = (await dan.call("GET", f"parrot/sessions/{session}/lineage")).json()
    assert shown["forward"][-1] == {"id": third, "deleted": True}
    assert shown["summaries"][-1]["text"] is None


async def test_an_uncompacted_session_has_the_whole_history_byte_for_byte(dan: User) -> None:
    session = await grown(dan, "one", "two", compact_keep_last_n=1)
    before = [(each["role"], each["content"]) for each in (await dan.history(session))["messages"]]
    successor = (await post(dan, f"{session}/compact"))["successor_session_id"]
    whole = await post(dan, f"{successor}/uncompact", status=201)
    assert whole["parent_session_id"] == successor
    after = [(each["role"], each["content"]) for each in (await dan.history(whole["id"]))["messages"]]
    assert after == before


@pytest.mark.parametrize(("settings", "messages"), [({"compact_strategy": "off"}, ("one",)), ({}, ()), ({}, ("one",))])
async def test_what_cannot_be_compacted_is_a_conflict(dan: User, settings: Any, messages: tuple[str, ...]) -> None:
    session = await grown(dan, *messages, **settings)
    answer = await dan.call("POST", f"parrot/sessions/{session}/compact")
    assert error_of(answer)[:2] == (409, "session_compact_conflict")
    assert error_of(await dan.call("POST", f"parrot/sessions/{session}/uncompact"))[1] == "session_compact_conflict"


async def test_it_is_compacted_once_and_a_key_gives_the_first_answer(dan: User) -> None:
    session = await grown(dan, "one", compact_keep_last_n=0)
    first = await dan.call("POST", f"parrot/sessions/{session}/compact", {}, Idempotency_Key="c")
    again = await dan.call("POST", f"parrot/sessions/{session}/compact", {}, Idempotency_Key="c")
    assert (first.status_code, again.content) == (200, first.content)
    other = await dan.call("POST", f"parrot/sessions/{session}/compact")
    assert error_of(other)[:2] == (409, "session_compact_conflict")


async def test_what_joins_a_compaction_gets_its_answer_under_its_own_key_again(dan: User) -> None:
    session = await grown(dan, "do wait for it", compact_keep_last_n=0)
    path = f"parrot/sessions/{session}/compact"
    both = [asyncio.ensure_future(dan.call("POST", path, Idempotency_Key=key)) for key in ("a", "b")]
    await at_gate(dan.server, "summary")
    open_gate(dan.server, "summary")
    first, joined = await asyncio.gather(*both)
    again = await dan.call("POST", path, Idempotency_Key="b")
    assert (again.status_code, again.content) == (200, joined.content) == (200, first.content)


async def test_a_key_shows_no_summary_of_a_session_that_was_deleted_since(tmp_path: Path) -> None:
    async with talking(tmp_path, tmp_path / "data") as server:
        dan = User(server)
        session = await grown(dan, "one", compact_keep_last_n=0)
        path = f"parrot/sessions/{session}/compact"
        done = (await dan.call("POST", path, Idempotency_Key="c")).json()
        for each in (session, done["successor_session_id"]):
            assert (await dan.call("DELETE", f"parrot/sessions/{each}")).status_code == 204
        again = await dan.call("POST", path, Idempotency_Key="c")
    assert error_of(again)[:2] == (404, "not_found")
    files = [each.read_bytes() for each in (tmp_path / "data").rglob("*") if each.is_file()]
    assert not any(b"short of 1" in each for each in files)


async def test_a_busy_session_is_not_compacted(dan: User) -> None:
    session = await grown(dan, "one", compact_keep_last_n=0)
    turn = asyncio.ensure_future(dan.say(session, "wait"))
    await at_gate(dan.server, "wait")
    for act in ("compact", "uncompact"):
        assert error_of(await dan.call("POST", f"parrot/sessions/{session}/{act}"))[:2] == (409, "session_busy")
    open_gate(dan.server, "wait")
    await turn


async def test_a_full_session_is_compacted_before_its_turn_which_runs_on_the_successor(dan: User) -> None:
    session = await grown(dan, "a" * 90, agent="small", compact_keep_last_n=1)
    answer = await dan.say(session, "next", "small", Idempotency_Key="k")
    successor = answer.headers["spass-session-compacted"]
    assert int(answer.headers["spass-session-compacted-tokens"]) > 40
    assert (answer.json()["session_id"], answer.json()["thread_id"]) == (successor, f"{successor}.1")
    assert f"[compaction summary from session {session}] short of 1" in answer.json()["reply"]
    assert (await dan.say(session, "next", "small", Idempotency_Key="k")).content == answer.content
    assert (await dan.say(session, "other", "small")).headers["location"].split("/")[-2] == successor


async def test_a_streamed_turn_on_a_successor_is_gone_on_with_at_the_address_that_streamed_it(dan: User) -> None:
    session = await grown(dan, "a" * 90, agent="small", compact_keep_last_n=0)
    answer = await dan.say(session, "next", "small", stream=True)
    assert answer.headers["spass-session-compacted"]
    whole = events_of(answer.text)
    rest = events_of((await dan.say(session, "next", "small", stream=True, Last_Event_ID=whole[1][0])).text)
    assert text_of([*whole[:2], *rest]) == text_of(whole)


async def test_a_repetition_while_its_session_is_being_compacted_waits_for_no_second_turn(dan: User) -> None:
    session = await grown(dan, "do wait for it " * 9, agent="small", compact_keep_last_n=0)
    first = asyncio.ensure_future(dan.say(session, "next", "small", Idempotency_Key="k"))
    await at_gate(dan.server, "summary")
    again = await dan.say(session, "next", "small", Idempotency_Key="k")
    assert error_of(again)[:2] == (409, "request_in_progress")
    open_gate(dan.server, "summary")
    answer = await first
    assert (await dan.say(session, "next", "small", Idempotency_Key="k")).content == answer.content


async def test_a_compaction_that_fails_never_stops_the_chat(dan: User) -> None:
    session = await grown(dan, "no summary " * 9, agent="small", compact_keep_last_n=0)
    answer = await dan.say(session, "next", "small")
    assert (answer.status_code, answer.json()["session_id"]) == (200, session)
    assert "spass-session-compacted" not in answer.headers


async def test_a_repetition_says_again_that_its_session_was_compacted_first_and_what_all_of_it_cost(
    tmp_path: Path,
) -> None:
    usage = {"input_tokens": 1900, "output_tokens": 1, "cost_usd": 0.01}
    async with scripted(tmp_path, {"text": "Well.", "usage": usage}) as dan:
        session = await grown(dan, "one", agent="thinker", compact_keep_last_n=0)
        first = await dan.say(session, "two", "thinker", Idempotency_Key="k")
        again = await dan.say(session, "two", "thinker", Idempotency_Key="k")
        live = first.headers["spass-session-compacted"]
        streams = [await dan.say(live, "three", "thinker", stream=True, Idempotency_Key="s") for _ in range(2)]
        (event_id, _), *_ = events_of(streams[0].text)
        rest = await dan.say(live, "three", "thinker", stream=True, Last_Event_ID=event_id)
    shown = [{name: said for name, said in each.headers.items() if "spass-" in name} for each in (first, again)]
    for each in shown:
        del each["spass-request-id"]
    assert (again.content, shown[0]) == (first.content, shown[1])
    assert (first.headers["spass-cost-usd"], first.headers["spass-cost-sub-calls"]) == ("0.02", "2")
    assert streams[0].content == streams[1].content
    assert '"usd":"0.02"' in streams[0].text
    assert streams[0].text.endswith(rest.text)


async def at_its_compaction(user: User, session: str) -> tuple[asyncio.Task[httpx2.Response], str]:
    """A turn whose full session is being compacted, and the thread that does."""
    turn = asyncio.ensure_future(user.say(session, "next", "small"))
    await at_gate(user.server, "summary")
    (thread,) = (await user.server.get("/threads?status=active"))["threads"]
    return turn, str(thread["id"])


async def test_no_turn_waits_for_a_compaction_that_is_paused_and_who_asks_for_it_is_told(dan: User) -> None:
    session = await grown(dan, "do wait for it " * 9, agent="small", compact_keep_last_n=0)
    turn, thread = await at_its_compaction(dan, session)
    await dan.server.call("POST", f"/threads/{thread}/pause")
    for answer in (await turn, await dan.say(session, "again", "small")):
        assert (answer.status_code, answer.json()["session_id"]) == (200, session)
    refused = await dan.call("POST", f"small/sessions/{session}/compact", Idempotency_Key="c")
    assert error_of(refused)[:2] == (503, "paused")
    assert f"organism resume --thread {thread}" in refused.json()["error"]["message"]
    open_gate(dan.server, "summary")
    await dan.server.call("POST", f"/threads/{thread}/resume")
    done = await dan.call("POST", f"small/sessions/{session}/compact", Idempotency_Key="c")
    assert error_of(done)[:2] == (409, "session_compact_conflict")  # it has gone on


async def test_a_turn_whose_agent_is_paused_during_its_compaction_is_refused_and_not_accepted(dan: User) -> None:
    session = await grown(dan, "do wait for it " * 9, agent="small", compact_keep_last_n=0)
    turn, _ = await at_its_compaction(dan, session)
    await dan.server.call("POST", "/agents/small/pause")
    open_gate(dan.server, "summary")
    assert error_of(await turn)[:2] == (503, "paused")
    live = (await dan.call("GET", f"small/sessions/{session}")).json()["successor_session_id"]
    history = await dan.call("GET", f"small/sessions/{live}/messages")
    assert [message["role"] for message in history.json()["messages"]] == ["assistant"]
