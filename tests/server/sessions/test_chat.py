"""Talking with agents over HTTP: which there are, one turn as JSON and as events, and for whom it is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest

from tests.server.hostile.client import answered
from tests.server.hostile.http import POST, Raw
from tests.server.served import Served, served
from tests.server.tenanted import bearer, hello_with, write_tokens
from tests.server.turns.talkers import talkers

DAN = {"SPASS-User-Id": "dan"}
BOSS = {"scopes": ["agents:chat"], "tenant_admin": True}
TURN = {"reply", "messages", "stop_reason", "usage", "agent", "model", "thread_id"}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    """Agents to talk with, and tokens that act for some users, for all, for none."""
    config = talkers(tmp_path)
    chat = "agents:chat"
    tokens: dict[str, Any] = {
        "any": [chat],
        "two": [chat, "act-as:user:dan", "act-as:user:eve"],
        "all": [chat, "act-as"],
        "boss": BOSS,
        "reader": ["read"],
    }
    write_tokens(config.parent, {"default": tokens})
    async with served(config) as running:
        yield running


async def ask(server: Served, path: str, body: Any = None, **headers: str) -> httpx2.Response:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    method = "GET" if body is None else "POST"
    return await server.client.request(method, path, json=body, headers={**server.bearer, **DAN, **names})


def events(answer: httpx2.Response) -> list[tuple[str, Any]]:
    """Each event's id and entry, without the cost that follows them."""
    assert answer.status_code == 200, answer.text
    found = [dict(line.split(": ", 1) for line in part.split("\n")) for part in answer.text.split("\n\n") if part]
    return [(each["id"], orjson.loads(each["data"])) for each in found if each.get("event") != "spass.cost"]


async def test_a_turn_is_answered_with_all_that_was_said(hello: Served) -> None:
    answer = await ask(hello, "/a1/agents/concise-de/chat", {"message": "What is 2*21?"})
    reply = answer.json()
    assert set(reply) == TURN
    assert reply["messages"][-1] == {"role": "assistant", "content": reply["reply"]}
    assert (reply["agent"], reply["model"], reply["stop_reason"]) == ("concise-de", "llama-4-scout", "stop")
    assert reply["usage"]["total"] == reply["usage"]["input"] + reply["usage"]["output"] > 0
    (sent, *_) = (await hello.get(f"/log?type=message_sent&thread={reply['thread_id']}"))["events"]
    assert sent["actor"]["user"] == "dan"


async def test_an_answer_that_names_its_sources_has_them_as_citations(server: Served) -> None:
    reply = (await ask(server, "/a1/agents/citing/chat", {"message": "hi"})).json()
    assert (reply["reply"], reply["citations"]) == ("hi", ["a.md"])


async def test_it_streams_and_goes_on_after_any_event_missing_nothing(server: Served) -> None:
    path, body = "/a1/agents/teller/chat", {"message": "hello", "stream": True}
    whole = events(await ask(server, path, body))
    assert [entry["type"] for _, entry in whole][-2:] == ["message_end", "done"]
    for index, (seen, _) in enumerate(whole):
        rest = events(await ask(server, path, body, Last_Event_ID=seen))
        text = "".join(each["data"].get("delta", "") for _, each in [*whole[: index + 1], *rest])
        kinds = [each["type"] for _, each in [*whole[: index + 1], *rest] if "delta" not in each["data"]]
        assert (text, kinds) == ("You said: hello", ["message_start", "message_end", "done"])
    assert (await server.get("/threads"))["total"] == 1


@pytest.mark.parametrize("seen", ["7", "x", "AAAA"])
async def test_a_stream_goes_on_by_an_id_of_its_own_address_and_user_alone(server: Served, seen: str) -> None:
    body = {"message": "hello", "stream": True}
    own = events(await ask(server, "/a1/agents/teller/chat", body))[0][0]
    for path, last, user in (
        ("/a1/agents/teller/chat", seen, "dan"),
        ("/a1/agents/asking/chat", own, "dan"),
        ("/a1/agents/teller/chat", own, "eve"),
    ):
        refused = await ask(server, path, body, Last_Event_ID=last, SPASS_User_Id=user)
        error = refused.json()["error"]
        assert (refused.status_code, error["code"], error["param"]) == (400, "invalid_field", "headers.last-event-id")
    whole = await ask(server, "/a1/agents/teller/chat", {"message": "hello"}, Last_Event_ID=own)
    assert whole.status_code == 400
    assert (await server.get("/threads"))["total"] == 1


async def test_an_error_before_the_first_event_has_its_own_status(server: Served) -> None:
    for stream in (True, False):
        answer = await ask(server, "/a1/agents/broken/chat", {"message": "hi", "stream": stream})
        assert (answer.status_code, answer.json()["error"]["code"]) == (500, "handling_failed")


async def test_an_agent_that_cannot_stream_says_so(server: Served) -> None:
    error = (await ask(server, "/a1/agents/echo/chat", {"message": "hi", "stream": True})).json()["error"]
    assert (error["code"], error["param"], error["supported"]) == ("not_acceptable", "/stream", ["batch"])


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        ({}, "missing_field", "/message"),
        ({"message": ""}, "invalid_field", "/message"),
        ({"message": 7}, "invalid_field", "/message"),
        ({"message": "a\x00b"}, "invalid_payload", "/message"),
        ({"message": "hi", "stream": "yes"}, "invalid_field", "/stream"),
        ({"message": "hi", "user_id": "eve"}, "invalid_field", "/user_id"),
        ({"message": "hi", "history": []}, "unknown_field", "/history"),
        ([], "invalid_field", None),
    ],
)
async def test_a_wrong_body_is_told_where_it_is_wrong(server: Served, body: Any, code: str, param: str | None) -> None:
    answer = await ask(server, "/a1/agents/echo/chat", body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"] or None) == (400, code, param)


async def test_a_body_may_be_larger_than_elsewhere_and_a_message_as_large_as_its_agent_takes(server: Served) -> None:
    large = await ask(server, "/a1/agents/echo/chat", {"message": "x" * (2 << 20)})
    assert (large.status_code, large.json()["error"]["code"]) == (413, "payload_too_large")
    head = POST.replace("/api/v1/inject", "/a1/agents/echo/chat") + "SPASS-User-Id: dan\r\n"
    announced = f"{head}Content-Length: {(32 << 20) + 1}\r\n\r\n"
    assert await answered(server, Raw("more than 32 MiB", announced, (413,))) == ""


@pytest.mark.parametrize("user", ["", "a b", "x" * 129, "../eve", "dän", "eve,dan", "a/b", "a\tb"])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_the_user_is_a_header_and_fits_its_pattern(server: Served, method: str, user: str) -> None:
    body = {"message": "hi"} if method == "POST" else None
    path = "/a1/agents/echo" + ("/chat" if body else "")
    headers = {name.encode(): value.encode() for name, value in {**server.bearer, "SPASS-User-Id": user}.items()}
    answer = await server.client.request(method, path, json=body, headers=headers)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "invalid_field", "headers.spass-user-id")


async def test_the_user_must_be_named_and_by_the_header_alone(server: Served) -> None:
    for method, path in (("GET", "/a1/agents"), ("GET", "/a1/agents/echo"), ("POST", "/a1/agents/echo/chat")):
        missing = await server.client.request(method, path, headers=server.bearer)
        error = missing.json()["error"]
        assert (missing.status_code, error["code"], error["param"]) == (400, "missing_field", "headers.spass-user-id")
        query = await server.client.request(method, f"{path}?user_id=dan", headers={**server.bearer, **DAN})
        error = query.json()["error"]
        assert (query.status_code, error["code"], error["param"]) == (400, "invalid_field", "query.user_id")
    twice = [*server.bearer.items(), ("SPASS-User-Id", "dan"), ("SPASS-User-Id", "eve")]
    assert (await server.client.get("/a1/agents", headers=twice)).status_code == 400


@pytest.mark.parametrize(
    ("token", "user", "status"),
    [
        ("any", "dan", 200),
        ("any", "zoe", 200),
        ("two", "dan", 200),
        ("two", "eve", 200),
        ("two", "zoe", 403),
        ("all", "zoe", 200),
        ("reader", "dan", 403),
    ],
)
async def test_a_token_acts_for_the_users_that_it_may(server: Served, token: str, user: str, status: int) -> None:
    headers = {**bearer("default", token), "SPASS-User-Id": user}
    said = await server.client.post("/a1/agents/echo/chat", json={"message": "hi"}, headers=headers)
    read = await server.client.get("/a1/agents", headers=headers)
    assert (said.status_code, read.status_code) == (status, status)


async def test_an_administrator_of_the_tenant_reads_for_no_user_and_says_nothing_for_none(server: Served) -> None:
    boss = bearer("default", "boss")
    assert (await server.client.get("/a1/agents", headers=boss)).status_code == 200
    said = await server.client.post("/a1/agents/echo/chat", json={"message": "hi"}, headers=boss)
    assert said.json()["error"]["code"] == "missing_field"


async def test_a_key_gives_the_first_answer_and_is_the_users_own(server: Served) -> None:
    async def say(text: str, user: str = "dan", key: str = "one", **more: Any) -> httpx2.Response:
        body = {"message": text, **more}
        return await ask(server, "/a1/agents/teller/chat", body, Idempotency_Key=key, SPASS_User_Id=user)

    first = await say("hi")
    assert (await say("hi")).content == first.content
    assert (await say("other")).json()["error"]["code"] == "idempotency_key_reused"
    assert (await say("other", "eve")).json()["reply"] == "You said: other"
    streamed = [events(await say("hi", key="two", stream=True)) for _ in range(2)]
    texts = ["".join(entry["data"].get("delta", "") for _, entry in each) for each in streamed]
    assert texts == ["You said: hi"] * 2
    assert (await server.get("/threads"))["total"] == 3


@pytest.mark.parametrize("name", ["SPASS-Request-Id", "X-Request-Id"])
async def test_the_callers_request_id_is_echoed_and_stands_in_the_log(server: Served, name: str) -> None:
    headers = {**server.bearer, **DAN, name: "req/17"}
    answer = await server.client.post("/a1/agents/echo/chat", json={"message": "hi"}, headers=headers)
    assert (answer.headers["spass-request-id"], answer.headers["x-request-id"]) == ("req/17", "req/17")
    (sent, *_) = (await server.get(f"/log?type=message_sent&thread={answer.json()['thread_id']}"))["events"]
    assert sent["actor"]["request_id"] == "req/17"
    missing = await server.client.get("/a1/agents/nobody", headers=headers)
    assert (missing.headers["spass-request-id"], missing.json()["error"]["request_id"]) == ("req/17", "req/17")
    made = await ask(server, "/a1/agents")
    assert made.headers["spass-request-id"] == made.headers["x-request-id"] != "req/17"
    wrong = await server.client.get("/a1/agents", headers={**headers, name: "a b"})
    assert wrong.json()["error"]["param"] == f"headers.{name.lower()}"


async def test_a_secret_of_the_server_is_neither_a_user_nor_a_request_id(server: Served) -> None:
    secret = bearer("default", "any")["Authorization"].removeprefix("Bearer ")
    for name in ("SPASS-User-Id", "SPASS-Request-Id"):
        answer = await ask(server, "/a1/agents", **{name: secret})
        assert answer.json()["error"]["param"] == f"headers.{name.lower()}"


async def test_a_call_from_too_deep_is_refused(hello: Served) -> None:
    answer = await ask(hello, "/a1/agents/concise-de/chat", {"message": "hi"}, SPASS_Caller_Depth="3")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "recursion_depth_exceeded")


async def test_the_agents_are_those_that_take_words(hello: Served) -> None:
    page = (await ask(hello, "/a1/agents")).json()
    names = [agent["name"] for agent in page["agents"]]
    assert "concise-de" in names
    assert not {"greeter", "summarizer", "calculator"} & set(names)
    assert page["total"] == page["count"] == len(names)
    walked, more = [], "?limit=2"
    while more:
        part = (await ask(hello, f"/a1/agents{more}")).json()
        walked += [agent["name"] for agent in part["agents"]]
        more = part["next"] and f"?limit=2&cursor={part['next']}"
    assert walked == names
    offset = (await ask(hello, "/a1/agents?offset=1&limit=1")).json()
    assert [agent["name"] for agent in offset["agents"]] == names[1:2]
    eve = await ask(hello, f"/a1/agents?limit=2&cursor={offset['next']}", SPASS_User_Id="eve")
    assert eve.json()["error"]["param"] == "query.cursor"


async def test_an_agents_prompt_is_for_administrators(tmp_path: Path) -> None:
    config = hello_with(tmp_path, {"default": {"user": ["agents:chat"], "boss": BOSS, "root": ["admin"]}})
    async with served(config) as server:
        shown = {}
        for name in ("user", "boss", "root"):
            answer = await server.client.get("/a1/agents/researcher", headers={**bearer("default", name), **DAN})
            shown[name] = answer.json()
        assert shown["user"]["system_prompt"].startswith("sha256:")
        assert "careful research assistant" in shown["boss"]["system_prompt"]
        assert shown["boss"] == shown["root"]
        assert (shown["user"]["model"], shown["user"]["tools"][:1]) == ("claude-opus-4.7", ["calculator"])


@pytest.mark.parametrize("name", ["nobody", "greeter", "..%2Fconcise-de", "%00"])
async def test_what_is_no_agent_to_talk_with_is_not_found(hello: Served, name: str) -> None:
    read = await ask(hello, f"/a1/agents/{name}")
    reply = await ask(hello, f"/a1/agents/{name}/chat", {"message": "hi"})
    assert (read.status_code, reply.status_code) == (404, 404)
