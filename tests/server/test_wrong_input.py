"""Whatever comes in, the answer is a documented refusal: never a 5xx, always of one shape, and the server goes on."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import orjson
import pytest
from websockets import InvalidStatus

from organism.server.api.library import IngestBody
from organism.server.app import ROUTES
from organism.server.http import problems
from organism.server.http.call import MAX_BODY_BYTES, MAX_GATEWAY_BODY_BYTES, USER, Route
from organism.server.http.rights import OPEN
from tests.flows.world import MakeWorld
from tests.server.contract import refusal_of
from tests.server.served import TOKEN, Frames, Served, served

JSON = {"Content-Type": "application/json"}
XML: dict[str, Any] = {"headers": {"Content-Type": "application/xml"}, "content": b"<x/>"}
CODES = {entry["code"]: entry["http_status"] for entry in problems.table()["entries"]}
GUARDED = [route for route in ROUTES if route.right is not OPEN]
READING = [route for route in GUARDED if route.method == "GET" and route.address != "/api/v1/events"]
ACTING = [route for route in GUARDED if route.method != "GET" and not route.takes_files]
NAMED = [route for route in GUARDED if "{" in route.path and not route.takes_files]
LISTS = [route for route in READING if route.path in {
    "/agents", "/threads", "/threads/{id}/messages", "/messages", "/dead-letters", "/approvals", "/indeterminate",
}]  # fmt: skip
STRANGE = [
    "x", "%00", "%FF", "%F0%9F%90%99", "..%2F..%2Fetc", "'%20OR%201=1--", "a" * 4000, "%0A", "{id}", "-1", "msg-0:1",
]  # fmt: skip


def address(route: Route, name: str = "greeter") -> str:
    """The route's address with a name in each place for one."""
    return re.sub(r"\{\w+\}", name, route.address)


def refused(answer: httpx2.Response, *statuses: int) -> str:
    """The code of a refusal that keeps to the contract."""
    assert answer.status_code in statuses, (answer.request.url, answer.status_code, answer.text[:300])
    error = refusal_of(answer)
    assert {"type", "code", "message", "param", "request_id"} <= set(error) <= {
        "type", "code", "message", "param", "request_id", "details",
    }  # fmt: skip
    assert CODES[error["code"]] == answer.status_code
    return str(error["code"])


async def call(server: Served, route: Route, query: str = "", name: str = "greeter", **more: Any) -> httpx2.Response:
    """One request to a route, for a user where it needs one."""
    headers = {**({USER: "ann"} if route.needs_user else {}), **more.pop("headers", {})}
    return await server.call(route.method, "/" + address(route, name) + query, headers=headers, **more)


async def test_a_parameter_that_is_not_known_or_stands_twice_is_refused(shared: Served) -> None:
    for route in GUARDED:
        body: dict[str, Any] = XML if route.path == "/inject" else {}
        assert refused(await call(shared, route, "?colour=red", **body), 400) == "unknown_field"
        assert refused(await call(shared, route, "?limit=1&limit=1", **body), 400) == "invalid_field"
        assert refused(await call(shared, route, "?limit=%FF", **body), 400) == "invalid_field"


async def test_a_body_that_is_none_is_refused(shared: Served) -> None:
    for route in ACTING:
        for body in (b"{", b"\xff", b'{"a":1,"a":2}', b"[" * 100_000, b'{"a":' * 70 + b"1" + b"}" * 70, b"nul", b"NaN"):
            assert refused(await call(shared, route, content=body, headers=JSON), 400) == "invalid_json"
        for body in (b"[]", b"null", b"3", b'"text"'):
            assert refused(await call(shared, route, content=body, headers=JSON), 400) == "invalid_field"
        assert refused(await call(shared, route, content=b'{"colour":1}', headers=JSON), 400) in {
            "unknown_field", "missing_field",
        }  # fmt: skip


async def test_a_body_that_is_too_large_or_of_another_kind_is_refused(shared: Served) -> None:
    for route in ACTING:
        most = MAX_GATEWAY_BODY_BYTES if route.is_gateway else MAX_BODY_BYTES
        large = await call(shared, route, content=b" " * (most + 1), headers=JSON)
        assert refused(large, 413) == "body_too_large"
        for kind in ("", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            other = await call(shared, route, content=b"{}", headers={"Content-Type": kind})
            assert refused(other, 415) == "unsupported_media_type"
        coded = {**JSON, "Content-Encoding": "gzip"}
        assert refused(await call(shared, route, content=gzip.compress(b"{}"), headers=coded), 415)


async def test_an_idempotency_key_that_is_none_is_refused(shared: Served) -> None:
    keys = ("a b", "x" * 256, "\xe9", TOKEN)
    for route, key in itertools.product([route for route in ACTING if route.is_recorded], keys):
        answer = await call(shared, route, headers={"Idempotency-Key": key.encode("latin-1")})
        assert refused(answer, 400) == "invalid_field"
        assert answer.json()["error"]["param"] == "headers.idempotency-key"


async def test_what_there_is_not_is_not_found(shared: Served) -> None:
    bodies: dict[str, Any] = {
        "/approvals/{id}/resolve": {"decision": "reject"},
        "/indeterminate/{id}/resolve": {"outcome": "fail"},
        "/foreign-tools/{name}/accept": {"digest": "0" * 64},
        "/a1/agents/{name}/chat": {"message": "hello"},
        "/a1/agents/{name}/sessions/{sid}/messages": {"message": "hello"},
        "/agents/{name}/invoke": {"data": {"inputs": {"message": "hello"}}},
        "/a1/rag/indices/{index_id}/query": {"query": "hello"},
        "/a1/rag/indices/{index_id}/reembed": {"embedding_model": "builtin"},
        "/a1/rag/indices/{index_id}/documents/{doc_id}": {"text": "hello"},
    }
    for route, name in itertools.product([route for route in NAMED if route.takes is not IngestBody], STRANGE):
        has_body = route.path in bodies and route.method in {"POST", "PATCH"}
        more: dict[str, Any] = {"json": bodies[route.path]} if has_body else {}
        answer = await call(shared, route, name=name, **more)
        assert refused(answer, 404) in {"not_found", "model_not_found"}
        assert answer.json()["error"]["param"] is None, "what stands in the path is no field"


async def test_a_page_that_is_none_is_refused_by_the_name_of_its_parameter(shared: Served) -> None:
    for route in LISTS:
        thread = (await shared.inject())["thread_id"]
        wrong = {
            "limit": ["0", "501", "-1", "x", "1.5", "", "9" * 5000, "\u0661", "1e3", "0x10"],
            "offset": ["-1", "x", "9" * 30],
            "cursor": ["", "x", "AAAA", "\u00e9", "A" * 5000],
        }
        for parameter, values in wrong.items():
            for value in values:
                query = str(httpx2.QueryParams({parameter: value}))
                answer = await call(shared, route, f"?{query}", thread)
                assert refused(answer, 400) == "invalid_field"
                assert answer.json()["error"]["param"] == f"query.{parameter}"


async def test_a_parameter_without_a_value_is_refused_on_every_route(shared: Served) -> None:
    thread = (await shared.inject())["thread_id"]
    for route in GUARDED:
        for parameter in route.query:
            body: dict[str, Any] = XML if route.path == "/inject" else {}
            answer = await call(shared, route, f"?{parameter}=", thread, **body)
            assert refused(answer, 400) == "invalid_field"
            assert answer.json()["error"]["param"] == f"query.{parameter}"


async def test_a_text_to_be_found_may_be_any_text(shared: Served) -> None:
    await shared.inject()
    for value in ("%25", "_", "%22", "%5C", "%00", "'", "*", "%F0%9F%90%99", "a" * 4000, "NEAR("):
        assert (await shared.call("GET", f"/messages?q={value}")).status_code == 200


WRONG_INJECTIONS: list[tuple[Any, int, str]] = [
    ({"to": 3, "payload": {}}, 400, "/to"),
    ({"to": "x" * 201, "payload": {}}, 400, "/to"),
    ({"to": "greeter"}, 400, "/payload"),
    ({"to": "greeter", "payload": 3}, 400, "/payload"),
    ({"to": "greeter", "payload": None}, 400, "/payload"),
    ({"to": "greeter", "payload": {"name": 3}}, 400, "/payload/name"),
    ({"to": "greeter", "payload": {"name": "\x00"}}, 400, "/payload/name"),
    ({"to": "greeter", "payload": {"name": "x" * 300_000}}, 413, "/payload"),
    ({"to": "greeter", "payload": {"name": "x"}, "wait": True}, 400, "/wait"),
    ({"to": "greeter", "payload": {"name": "x"}, "wait": 61}, 400, "/wait"),
    ({"to": "greeter", "payload": {"name": "x"}, "wait": -1}, 400, "/wait"),
    ({"to": "greeter", "payload": {"name": "x"}, "thread_id": 3}, 400, "/thread_id"),
    ({"to": "greeter", "payload": {"name": "x"}, "thread_id": "x" * 200}, 404, "/thread_id"),
    ({"to": "console", "payload": {"name": "x"}}, 404, "/to"),
    ({"to": "system.todo", "payload": {"name": "x"}}, 404, "/to"),
]


@pytest.mark.parametrize(("body", "status", "param"), WRONG_INJECTIONS)
async def test_an_injection_that_is_none_names_what_is_wrong(
    shared: Served, body: Any, status: int, param: str
) -> None:
    before = (await shared.get("/organism"))["total_messages"]
    answer = await shared.call("POST", "/inject", json=body)
    refused(answer, status)
    assert answer.json()["error"]["param"] == param
    assert (await shared.get("/organism"))["total_messages"] == before


async def test_another_method_is_told_which_there_are(shared: Served) -> None:
    for route in ROUTES:
        method = "PUT" if route.path.startswith("/a1/rag/") else "PATCH"
        answer = await shared.call(method, "/" + address(route))
        assert refused(answer, 405) == "method_not_allowed"
        assert route.method in answer.headers["allow"].split(", ")


async def test_once_it_has_stopped_nothing_breaks() -> None:
    async with served() as server:
        thread = (await server.inject())["thread_id"]
        await server.organism.stop(0)
        for route in sorted(GUARDED, key=lambda route: route.path == "/organism/stop"):  # after it nobody answers
            name = thread if route.path.startswith("/threads") else "greeter"
            sent: dict[str, Any] = {"content": b"{}", "headers": JSON} if route.method != "GET" else {}
            answer = await call(server, route, name=name, **sent)
            if answer.status_code >= 400:
                codes = {"stopping", "log_unavailable", "missing_field", "not_found", "model_not_found"}
                assert refused(answer, 400, 404, 503) in codes


@pytest.mark.parametrize("act", ["pause", "kill"])
async def test_the_same_act_at_the_same_time_is_done_once_and_answered_to_all(hello: Served, act: str) -> None:
    await hello.call("POST", "/agents/shouter/pause")
    thread = (await hello.inject(wait=None))["thread_id"]
    answers = await asyncio.gather(*(hello.call("POST", f"/threads/{thread}/{act}") for _ in range(10)))
    await hello.call("POST", "/agents/shouter/resume")
    assert {answer.status_code for answer in answers} == {200}
    name = {"pause": "thread_paused", "kill": "thread_killed"}[act]
    assert len((await hello.get(f"/log?type={name}&thread={thread}"))["events"]) == 1


AS_XML = {"Content-Type": "application/xml"}
GREETING = b"<Greeting><name>Dan</name></Greeting>"


def named(answer: httpx2.Response, status: int = 400) -> list[str | None]:
    """Where the faults of a refusal lie, the first of them first."""
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    found = [fault["param"] for fault in error.get("details", [])] or [error["param"]]
    assert error["param"] == found[0]
    return found


@pytest.mark.parametrize(
    ("asked", "params"),
    [
        ("/threads?odd=1&even=2&limit=0&status=x", ["odd", "even", "limit", "status"]),
        ("/messages?since=y&offset=-1&at=z&xml=maybe", ["since", "offset", "xml", "at"]),
        ("/log?after=x&until=y&limit=0&type=odd&odd=1", ["odd", "after", "until", "limit", "type"]),
        ("/threads/none?xml=maybe&at=z&odd=1", ["odd", "xml", "at"]),
        ("/organism/activity?until=z&buckets=0&at=1&after=soon", ["at", "buckets", "after", "until"]),
        ("/events?odd=1&since=x&events=odd", ["odd", "since", "events"]),
        ("/threads?limit=0", ["limit"]),
    ],
)
async def test_all_parameters_that_are_wrong_are_named_at_once(shared: Served, asked: str, params: list[str]) -> None:
    assert named(await shared.call("GET", asked)) == [f"query.{name}" for name in params]


async def test_all_that_is_wrong_in_a_socket_s_address_is_named_at_once(shared: Served) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with shared.socket("?odd=1&since=x&batch=maybe"):
            pass
    faults = orjson.loads(refused.value.response.body)["error"]["details"]
    assert [fault["param"] for fault in faults] == ["query.odd", "query.since", "query.batch"]


@pytest.mark.parametrize(
    ("query", "status", "params"),
    [
        ("?wait=x&odd=1", 400, ["query.odd", "query.to", "query.wait"]),
        ("?to=nobody", 404, ["query.to"]),
        ("?to=greeter&thread_id=none", 404, ["query.thread_id"]),
        ("?to=shouter", 400, [""]),
    ],
)
async def test_what_a_document_has_in_its_address_is_named_there(
    shared: Served, query: str, status: int, params: list[str]
) -> None:
    answer = await shared.call("POST", "/inject" + query, headers=AS_XML, content=GREETING)
    assert named(answer, status) == params


@pytest.mark.parametrize("wait", ["nan", "inf", "-1", "0", "1_0", "%2010", "%D9%A1"])
async def test_a_wait_in_the_address_is_a_plain_number(shared: Served, wait: str) -> None:
    answer = await shared.call("POST", f"/inject?to=greeter&wait={wait}", headers=AS_XML, content=GREETING)
    assert named(answer) == ["query.wait"]


WRONG_COMMANDS: list[tuple[dict[str, Any], str, str]] = [
    ({"cmd": "dance"}, "invalid_field", "/cmd"),
    ({"cmd": "pause"}, "missing_field", "/agent"),
    ({"cmd": "pause", "agent": "greeter", "thread_id": "x"}, "invalid_field", "/thread_id"),
    ({"cmd": "pause", "agent": "nobody"}, "not_found", "/agent"),
    ({"cmd": "resume", "thread_id": "none"}, "not_found", "/thread_id"),
    ({"cmd": "resolve", "approval": "none", "decision": "approve"}, "not_found", "/approval"),
    ({"cmd": "auth", "token": "none"}, "invalid_authorization", "/token"),
    ({"cmd": "subscribe", "since": 1 << 40}, "bad_position", "/since"),
    ({"cmd": "subscribe", "since": 1, "log": "another"}, "bad_position", "/log"),
    ({"cmd": "subscribe", "events": ["mesage"]}, "invalid_field", "/events/0"),
    ({"cmd": "inject", "to": "nobody", "payload": {}}, "not_found", "/to"),
    ({"cmd": "inject", "to": "greeter"}, "missing_field", "/payload"),
    ({"cmd": "inject", "to": "greeter", "payload": {"x": 1}}, "invalid_payload", "/payload/x"),
    ({"cmd": "inject", "to": "greeter", "payload": {"name": "D"}, "wait": 3}, "unknown_field", "/wait"),
]


async def test_a_command_s_wrong_field_is_named(hello: Served) -> None:
    async with hello.socket("?events=reload") as socket:
        for command, code, param in WRONG_COMMANDS:
            reply = await Frames(socket).ask(**command)
            assert (command, reply["event"], reply["code"], reply["param"]) == (command, "error", code, param)


async def test_who_has_no_room_is_named_where_the_call_names_it(world: MakeWorld) -> None:
    source = """
async def idler(payload: Ask, metadata: HandlerMetadata):
    return None
"""
    made = world(source, {"idler": {}}, limits={"max_queue_per_agent": 1})
    asked = {"data": {"inputs": {"payload": {"text": ""}}}, "wait": True}
    async with served(made.config) as server:
        await server.call("POST", "/agents/idler/pause")
        await server.inject("idler", {"text": ""}, wait=None)
        sent = await server.call("POST", "/inject", json={"to": "idler", "payload": {"text": ""}})
        invoked = await server.call("POST", "//invoke", json={"agent": "idler", **asked})
        by_path = await server.call("POST", "/agents/idler/invoke", json=asked)
    assert [named(answer, 503) for answer in (sent, invoked, by_path)] == [["/to"], ["/agent"], [None]]


async def test_no_route_answers_without_a_token(shared: Served) -> None:
    guarded = [route for route in ROUTES if route.right is not OPEN]
    for route in guarded:
        path = route.address.replace("{id}", "x").replace("{name}", "greeter")
        answer = await shared.client.request(route.method, path)
        assert (route, answer.status_code) == (route, 401)
        assert refusal_of(answer)["code"] == "missing_authorization"


@pytest.mark.parametrize("path", ["//healthz", "//readyz", "//errors", "/errors"])
async def test_probes_and_the_error_table_need_no_token(shared: Served, path: str) -> None:
    answer = await shared.call("GET", path, headers={"Authorization": ""})
    assert answer.status_code == 200


async def test_a_token_may_come_as_an_api_key(shared: Served) -> None:
    answer = await shared.call("GET", "/organism", headers={"Authorization": "", "X-API-Key": TOKEN})
    assert answer.status_code == 200
    async with shared.socket(headers={"X-API-Key": TOKEN}) as socket:
        assert (await Frames(socket).next())["event"] == "connected"


async def test_a_body_that_streams_too_much_is_refused_while_it_streams(shared: Served) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b" " * 65_536

    answer = await shared.call("POST", "/inject", content=endless(), headers={"Content-Type": "application/json"})
    assert answer.status_code == 413


async def test_what_is_known_already_is_not_sent_again(shared: Served) -> None:
    await shared.inject()
    first = await shared.call("GET", "/messages")
    again = await shared.call("GET", "/messages", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    await shared.inject()
    later = await shared.call("GET", "/messages", headers={"If-None-Match": first.headers["etag"]})
    assert (later.status_code, later.json()["total"]) == (200, first.json()["total"] + 4)


async def test_head_answers_as_get_without_the_body(shared: Served) -> None:
    answer = await shared.call("HEAD", "/agents")
    assert (answer.status_code, answer.content) == (200, b"")
    assert int(answer.headers["content-length"]) > 100


async def test_the_page_is_served_with_its_own_policy(shared: Served) -> None:
    page = await shared.call("GET", "//", headers={"Authorization": ""})
    assert page.headers["content-type"].startswith("text/html")
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert (await shared.call("GET", "//../organism.yaml")).status_code == 404
