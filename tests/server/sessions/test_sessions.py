"""Sessions over HTTP: begun, talked with, read, listed, deleted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.flows.thinking import agent, call, calls, says, thinking
from tests.flows.world import MakeWorld
from tests.server.served import Frames, Served, served
from tests.server.sessions.talking import User, at_gate, error_of, events_of, open_gate, talking, text_of
from tests.server.tenanted import bearer

FIELDS = {
    *("id", "agent", "user_id", "created_at", "last_activity", "message_count", "compact_strategy"),
    *("compact_keep_last_n", "compact_observation_mask", "parent_session_id", "successor_session_id", "archived_at"),
    *("status", "turns", "context_tokens", "context_window", "cost_usd", "title"),
}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    async with talking(tmp_path) as running:
        yield running


@pytest.fixture
def dan(server: Served) -> User:
    return User(server)


async def test_a_session_has_its_fields_and_what_it_was_not_given_is_the_tenants(dan: User) -> None:
    answer = await dan.call("POST", "parrot/sessions")
    session = answer.json()
    assert answer.headers["location"] == f"/a1/agents/parrot/sessions/{session['id']}"
    assert set(session) == FIELDS
    assert (session["agent"], session["user_id"], session["message_count"]) == ("parrot", "dan", 0)
    settings = ("compact_strategy", "compact_keep_last_n", "compact_observation_mask")
    assert [session[name] for name in settings] == ["auto", 10, True]
    given: dict[str, Any] = {"compact_strategy": "off", "compact_keep_last_n": 0, "compact_observation_mask": False}
    own = await dan.begin(**given, budget={"day": {"tokens": 9, "usd": 0.5}, "run": None})
    assert {name: (await dan.call("GET", f"parrot/sessions/{own}")).json()[name] for name in settings} == given
    put = {"compact_keep_last_n": 7}
    admin = dan.server.bearer
    assert (await dan.server.client.put("/v1/tenant/config", json=put, headers=admin)).status_code == 200
    shown = (await dan.call("GET", "parrot/sessions")).json()["sessions"]
    assert {row["id"]: row["compact_keep_last_n"] for row in shown} == {session["id"]: 7, own: 0}


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"compact_strategy": "never"}, "/compact_strategy"),
        ({"compact_keep_last_n": 201}, "/compact_keep_last_n"),
        ({"compact_keep_last_n": -1}, "/compact_keep_last_n"),
        ({"compact_keep_last_n": True}, "/compact_keep_last_n"),
        ({"compact_observation_mask": "yes"}, "/compact_observation_mask"),
        ({"budget": {"day": {"tokens": -1}}}, "/budget/day/tokens"),
        ({"budget": {"year": {}}}, "/budget/year"),
        ({"user_id": "eve"}, "/user_id"),
    ],
)
async def test_a_wrong_setting_is_told_where_it_is_wrong(dan: User, body: Any, param: str) -> None:
    answer = await dan.call("POST", "parrot/sessions", body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


async def test_a_turn_sees_the_turns_before_it_and_the_history_has_all_of_them(dan: User) -> None:
    session = await dan.begin()
    first = (await dan.say(session, "one")).json()
    second = (await dan.say(session, "two")).json()
    assert first["reply"] == "one after 0: "
    assert second["reply"] == "two after 2: one | one after 0: "
    assert (first["thread_id"], second["thread_id"]) == (f"{session}.1", f"{session}.2")
    page = await dan.history(session)
    shown = [(said["role"], said["content"], said["thread_id"], said["compacted_at"]) for said in page["messages"]]
    assert shown == [
        ("user", "one", f"{session}.1", None),
        ("assistant", first["reply"], f"{session}.1", None),
        ("user", "two", f"{session}.2", None),
        ("assistant", second["reply"], f"{session}.2", None),
    ]
    assert (page["total"], page["next"]) == (4, None)
    walked, query = [], "?limit=3"
    while query:
        part = await dan.history(session, query)
        walked += part["messages"]
        query = part["next"] and f"?limit=3&cursor={part['next']}"
    assert walked == page["messages"]
    assert (await dan.call("GET", f"parrot/sessions/{session}")).json()["message_count"] == 4
    threads = (await dan.server.get("/threads"))["threads"]
    assert {thread["session_id"] for thread in threads} == {session}


async def test_a_streamed_turn_goes_on_after_any_event_missing_nothing(dan: User) -> None:
    session = await dan.begin()
    whole = events_of((await dan.say(session, "hello", stream=True)).text)
    for index, (seen, _) in enumerate(whole):
        rest = events_of((await dan.say(session, "hello", stream=True, Last_Event_ID=seen)).text)
        both = [*whole[: index + 1], *rest]
        assert text_of(both) == "hello after 0: "
        kinds = [entry["type"] for _, entry in both if "delta" not in entry["data"]]
        assert kinds == ["message_start", "message_end", "done"]
    assert (await dan.history(session))["total"] == 2


async def test_a_stream_that_is_cut_in_the_middle_is_gone_on_with_by_its_last_event(dan: User) -> None:
    session = await dan.begin()
    path = f"/a1/agents/parrot/sessions/{session}/messages"
    body = {"message": "a longer text to be cut", "stream": True}
    headers = {**bearer("default", "talker"), "SPASS-User-Id": "dan"}
    got = ""
    async with dan.server.client.stream("POST", path, json=body, headers=headers) as answer:
        async for text in answer.aiter_text():
            got += text
            if "delta" in got:
                break
    whole = events_of(got[: got.rindex("\n\n") + 2])
    rest = events_of((await dan.call("POST", path, body, Last_Event_ID=whole[-1][0])).text)
    assert text_of([*whole, *rest]) == "a longer text to be cut after 0: "
    assert (await dan.history(session))["total"] == 2


async def test_a_turn_goes_on_when_its_client_has_left_and_is_found_in_the_history(dan: User) -> None:
    session = await dan.begin()
    saying = asyncio.ensure_future(dan.say(session, "wait"))
    await at_gate(dan.server, "wait")
    saying.cancel()
    open_gate(dan.server, "wait")
    assert (await dan.say(session, "next")).json()["reply"] == "next after 2: wait | wait after 0: "


@pytest.mark.parametrize("form", [{}, {"stream": True}])
async def test_a_turn_ends_with_its_client_if_it_asks_for_that(dan: User, form: dict[str, Any]) -> None:
    session = await dan.begin()
    saying = asyncio.ensure_future(dan.say(session, "wait", on_disconnect="kill", **form))
    await at_gate(dan.server, "wait")
    saying.cancel()
    said = (await dan.say(session, "next")).json()
    assert said["stop_reason"] == "stop"
    threads = {row["id"]: row["status"] for row in (await dan.server.get("/threads"))["threads"]}
    assert threads == {f"{session}.1": "killed", f"{session}.2": "completed"}
    assert (await dan.history(session))["messages"][0]["content"] == "wait"


async def test_a_second_turn_waits_is_refused_or_takes_over(dan: User) -> None:
    session = await dan.begin()
    first = asyncio.ensure_future(dan.say(session, "wait"))
    await at_gate(dan.server, "wait")
    assert error_of(await dan.say(session, "no", on_busy="reject"))[:2] == (409, "session_busy")
    into = {"to": "parrot", "payload": {"message": "x"}, "thread_id": f"{session}.1"}
    assert error_of(await dan.server.call("POST", "/inject", json=into))[:2] == (409, "session_busy")
    queued = asyncio.ensure_future(dan.say(session, "queued", on_busy="queue"))
    await dan.server.until(lambda: f"{session}.2" in dan.server.organism.tenants["default"].pump.state.folded.threads)
    forced = await dan.say(session, "forced", on_busy="force")
    for killed in (await first, await queued):
        assert error_of(killed)[:2] == (409, "thread_killed")
    assert forced.json()["thread_id"] == f"{session}.3"
    assert forced.json()["reply"] == "forced after 2: wait | queued"


async def test_what_a_busy_session_does_is_the_tenants_where_the_caller_does_not_say(dan: User) -> None:
    put = await dan.server.client.put("/v1/tenant/config", json={"on_busy": "reject"}, headers=dan.server.bearer)
    assert put.status_code == 200
    session = await dan.begin()
    first = asyncio.ensure_future(dan.say(session, "wait"))
    await at_gate(dan.server, "wait")
    assert error_of(await dan.say(session, "no"))[:2] == (409, "session_busy")
    open_gate(dan.server, "wait")
    assert (await first).status_code == 200


async def test_a_repeated_turn_gives_the_first_answer(dan: User) -> None:
    session = await dan.begin()
    first = await dan.say(session, "one", Idempotency_Key="k")
    assert (await dan.say(session, "one", Idempotency_Key="k")).content == first.content
    assert error_of(await dan.say(session, "two", Idempotency_Key="k"))[:2] == (422, "idempotency_key_reused")
    assert (await dan.history(session))["total"] == 2
    begun = []
    for _ in range(2):
        begun.append((await dan.call("POST", "parrot/sessions", {}, Idempotency_Key="b")).json())
        await dan.say(begun[-1]["id"], "hello")
    assert begun[0] == begun[1]
    eve = User(dan.server, "eve")
    assert (await eve.call("POST", "parrot/sessions", {}, Idempotency_Key="b")).json()["id"] != begun[0]["id"]


async def test_a_failed_turn_is_reported_and_the_next_one_sees_what_was_said(dan: User) -> None:
    session = await dan.begin()
    assert error_of(await dan.say(session, "fail"))[:2] == (500, "handling_failed")
    assert (await dan.say(session, "next")).json()["reply"] == "next after 1: fail"
    assert (await dan.history(session))["messages"][0]["stop_reason"] == "error"


async def test_a_deleted_session_is_gone_with_its_messages_and_its_running_turn(dan: User) -> None:
    session = await dan.begin()
    running = asyncio.ensure_future(dan.say(session, "wait"))
    await at_gate(dan.server, "wait")
    deleted = await dan.call("DELETE", f"parrot/sessions/{session}")
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert error_of(await running)[1] == "thread_killed"
    for method, more in (("GET", ""), ("DELETE", ""), ("GET", "/messages"), ("POST", "/messages")):
        body = {"message": "x"} if method == "POST" else None
        assert error_of(await dan.call(method, f"parrot/sessions/{session}{more}", body))[:2] == (404, "not_found")
    assert (await dan.call("GET", "parrot/sessions")).json()["total"] == 0
    log = await dan.server.call("GET", "/log?content=true&limit=500")
    assert '"message":"wait"' not in log.text


async def test_a_session_is_of_its_agent(dan: User) -> None:
    session = await dan.begin()
    for method, more in (("GET", ""), ("DELETE", ""), ("GET", "/messages"), ("POST", "/messages")):
        body = {"message": "x"} if method == "POST" else None
        answer = await dan.call(method, f"other/sessions/{session}{more}", body)
        assert error_of(answer)[:2] == (400, "session_agent_mismatch")
    assert (await dan.call("GET", "other/sessions")).json()["total"] == 0
    assert error_of(await dan.call("GET", "nobody/sessions"))[:2] == (404, "not_found")


async def test_two_hundred_sessions_talk_at_once_and_none_is_mixed_with_another(dan: User) -> None:
    users = [User(dan.server, f"user-{number % 20}") for number in range(200)]
    sessions = await asyncio.gather(*(user.begin() for user in users))

    async def converse(number: int) -> list[str]:
        said = [await users[number].say(sessions[number], f"{number}-{turn}") for turn in range(3)]
        return [answer.json()["reply"] for answer in said]

    for number, replies in enumerate(await asyncio.gather(*map(converse, range(200)))):
        first = f"{number}-0 after 0: "
        second = f"{number}-1 after 2: {number}-0 | {first}"
        assert replies[:2] == [first, second]
        assert replies[2] == f"{number}-2 after 4: {number}-0 | {first} | {number}-1 | {second}"


async def test_a_session_goes_on_after_a_restart(tmp_path: Path) -> None:
    async with talking(tmp_path, tmp_path / "data") as server:
        session = await User(server).begin()
        await User(server).say(session, "one")
    async with talking(tmp_path, tmp_path / "data") as server:
        assert (await User(server).say(session, "two")).json()["reply"] == "two after 2: one | one after 0: "


async def test_the_socket_shows_a_turn_as_it_shows_threads(dan: User) -> None:
    session = await dan.begin()
    async with dan.server.socket(f"?threads={session}.1") as socket:
        frames = Frames(socket)
        await dan.say(session, "one")
        seen = await frames.until("thread_updated", status="completed")
    (message, *_) = [frame["message"] for frame in seen if frame["event"] == "message"]
    assert (message["to"], message["payload"]["message"]) == ("parrot", "one")


LOOKER = """
async def looker(payload: Ask, metadata: HandlerMetadata):
    await gate("looker")
    return HandlerResponse.respond(Told("found " + payload.text))
"""


@pytest.mark.parametrize("surface", ["/a1", "/invoke"])
async def test_a_message_that_steers_is_answered_by_the_turn_that_takes_it_in(world: MakeWorld, surface: str) -> None:
    answers = (calls(call("looker", text="it")), says("As you wish."))
    play = thinking(world, {"looker": {}, "thinker": agent(tools=["looker"])}, *answers, source=LOOKER)
    async with served(play.world.config) as server:
        headers = {**server.bearer, "SPASS-User-Id": "dan"}

        async def post(path: str, **body: Any) -> Any:
            answer = await server.client.post(path, json=body, headers=headers)
            assert answer.is_success, answer.text
            return answer.json()

        session = (await post("/a1/agents/thinker/sessions"))["id"]
        path = f"/a1/agents/thinker/sessions/{session}/messages"
        first = asyncio.ensure_future(post(path, message="Look."))
        await at_gate(server, "looker")
        if surface == "/a1":
            steering = asyncio.ensure_future(post(path, message="Be brief.", on_busy="steer"))
        else:
            inputs = {"data": {"inputs": {"message": "Be brief."}}, "session_id": session, "on_busy": "steer"}
            steering = asyncio.ensure_future(post("/invoke", agent="thinker", **inputs))
        threads = server.organism.tenants["default"].pump.state.folded.threads
        await server.until(lambda: f"{session}.2" in threads)
        open_gate(server, "looker")
        answer, steered = await first, await steering
    outputs = steered if surface == "/a1" else steered["data"]["outputs"]
    assert answer["reply"] == "As you wish."
    assert outputs["messages"] == [{"role": "assistant", "content": "As you wish."}]
    assert steered["thread_id"] == f"{session}.2"
    assert answer["messages"][0]["tool_name"] == "looker"


async def test_the_default_agents_remember_as_the_walk_through_says(hello: Served) -> None:
    headers = {**hello.bearer, "SPASS-User-Id": "dan"}

    async def post(path: str, body: Any = None) -> Any:
        answer = await hello.client.post(f"/a1/agents/concise-de/sessions{path}", json=body, headers=headers)
        assert answer.is_success, answer.text
        return answer.json()

    session = (await post(""))["id"]
    await post(f"/{session}/messages", {"message": "Mein Lieblingssport ist Tennis."})
    said = await post(f"/{session}/messages", {"message": "Welcher Sport ist mein Liebling?"})
    assert "Tennis" in said["reply"]
    assert said["session_id"] == session


async def test_who_has_a_thread_from_before_its_session_was_deleted_gets_it_without_its_text(dan: User) -> None:
    session = await dan.begin()
    await dan.say(session, "Hello")
    path = f"/threads/{session}.1"
    before = await dan.server.call("GET", path)
    has = {"If-None-Match": before.headers["etag"]}
    assert (await dan.server.call("GET", path, headers=has)).status_code == 304
    assert (await dan.call("DELETE", f"parrot/sessions/{session}")).status_code == 204
    after = await dan.server.call("GET", path, headers=has)
    assert (after.status_code, after.json()["title"]) == (200, None)
    assert after.json()["messages"][0]["payload"] == {"erased": True}
