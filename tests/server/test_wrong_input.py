"""Whatever comes in, the answer is a documented refusal: never a 5xx, always of one shape, and the server goes on."""

from __future__ import annotations

import asyncio
import itertools
import re
from typing import Any

import httpx2
import pytest

from organism.server import problems
from organism.server.app import ROUTES
from organism.server.call import Route
from organism.server.rights import OPEN
from tests.server.served import Served, served

JSON = {"Content-Type": "application/json"}
XML: dict[str, Any] = {"headers": {"Content-Type": "application/xml"}, "content": b"<x/>"}
CODES = {entry["code"]: entry["http_status"] for entry in problems.table()["entries"]}
GUARDED = [route for route in ROUTES if route.right is not OPEN]
READING = [route for route in GUARDED if route.method == "GET" and route.address != "/api/v1/events"]
ACTING = [route for route in GUARDED if route.method != "GET"]
NAMED = [route for route in GUARDED if "{" in route.path]
LISTS = [route for route in READING if route.path in {
    "/agents", "/threads", "/threads/{id}/messages", "/messages", "/dead-letters", "/approvals", "/indeterminate",
}]  # fmt: skip
STRANGE = [
    "x",
    "%00",
    "%FF",
    "%F0%9F%90%99",
    "..%2F..%2Fetc",
    "'%20OR%201=1--",
    "a" * 4000,
    "%0A",
    "{id}",
    "-1",
    "msg-0:1",
]


def address(route: Route, name: str = "greeter") -> str:
    """The route's address with a name in each place for one."""
    return re.sub(r"\{\w+\}", name, route.address)


def refused(answer: httpx2.Response, *statuses: int) -> str:
    """The code of a refusal that keeps to the contract."""
    assert answer.status_code in statuses, (answer.request.url, answer.status_code, answer.text[:300])
    error = answer.json()["error"]
    assert {"type", "code", "message", "param", "request_id"} <= set(error) <= {
        "type", "code", "message", "param", "request_id", "details",
    }  # fmt: skip
    assert CODES[error["code"]] == answer.status_code
    return str(error["code"])


async def call(server: Served, route: Route, query: str = "", name: str = "greeter", **more: Any) -> httpx2.Response:
    """One request to a route."""
    return await server.call(route.method, "/" + address(route, name) + query, **more)


async def test_a_parameter_that_is_not_known_or_stands_twice_is_refused(hello: Served) -> None:
    for route in GUARDED:
        body: dict[str, Any] = XML if route.path == "/inject" else {}
        assert refused(await call(hello, route, "?colour=red", **body), 400) == "unknown_field"
        assert refused(await call(hello, route, "?limit=1&limit=1", **body), 400) == "invalid_field"
        assert refused(await call(hello, route, "?limit=%FF", **body), 400) == "invalid_field"


async def test_a_body_that_is_none_is_refused(hello: Served) -> None:
    for route in ACTING:
        for body in (b"{", b"\xff", b'{"a":1,"a":2}', b"[" * 100_000, b'{"a":' * 70 + b"1" + b"}" * 70, b"nul", b"NaN"):
            assert refused(await call(hello, route, content=body, headers=JSON), 400) == "invalid_json"
        for body in (b"[]", b"null", b"3", b'"text"'):
            assert refused(await call(hello, route, content=body, headers=JSON), 400) == "invalid_field"
        assert refused(await call(hello, route, content=b'{"colour":1}', headers=JSON), 400) in {
            "unknown_field", "missing_field",
        }  # fmt: skip


async def test_a_body_that_is_too_large_or_of_another_kind_is_refused(hello: Served) -> None:
    for route in ACTING:
        large = await call(hello, route, content=b" " * ((1 << 20) + 1), headers=JSON)
        assert refused(large, 413) == "body_too_large"
        for kind in ("text/plain", "multipart/form-data; boundary=x", "application/jsonp"):
            other = await call(hello, route, content=b"{}", headers={"Content-Type": kind})
            assert refused(other, 415) == "unsupported_media_type"


async def test_an_idempotency_key_that_is_none_is_refused(hello: Served) -> None:
    keys = ("a b", "x" * 256, "\xe9")
    for route, key in itertools.product([route for route in ACTING if route.is_kept], keys):
        answer = await call(hello, route, headers={"Idempotency-Key": key.encode("latin-1")})
        assert refused(answer, 400) == "invalid_field"
        assert answer.json()["error"]["param"] == "headers.idempotency-key"


async def test_what_there_is_not_is_not_found(hello: Served) -> None:
    bodies: dict[str, Any] = {
        "/approvals/{id}/resolve": {"decision": "reject"},
        "/indeterminate/{id}/resolve": {"outcome": "fail"},
        "/agents/{name}/invoke": {"data": {"inputs": {"message": "hello"}}},
    }
    for route, name in itertools.product(NAMED, STRANGE):
        more: dict[str, Any] = {"json": bodies[route.path]} if route.path in bodies else {}
        assert refused(await call(hello, route, name=name, **more), 404) == "not_found"


async def test_a_page_that_is_none_is_refused_by_the_name_of_its_parameter(hello: Served) -> None:
    for route in LISTS:
        thread = (await hello.inject())["thread_id"]
        wrong = {
            "limit": ["0", "501", "-1", "x", "1.5", "", "9" * 5000, "\u0661", "1e3", "0x10"],
            "offset": ["-1", "x", "9" * 30],
            "cursor": ["", "x", "AAAA", "\u00e9", "A" * 5000],
        }
        for parameter, values in wrong.items():
            for value in values:
                query = str(httpx2.QueryParams({parameter: value}))
                answer = await call(hello, route, f"?{query}", thread)
                assert refused(answer, 400) == "invalid_field"
                assert answer.json()["error"]["param"] == f"query.{parameter}"


@pytest.mark.parametrize("path", ["/threads", "/messages"])
async def test_a_time_that_is_none_is_refused(hello: Served, path: str) -> None:
    for value in ("x", "", "2024-01-15", "2024-01-15T10:00:00", "2024-13-01T00:00:00Z", "99999-01-01T00:00:00Z", "1"):
        answer = await hello.call("GET", f"{path}?since={value}")
        assert refused(answer, 400) == "invalid_field"
    for value in ("0001-01-01T00:00:00%2B23:59", "9999-12-31T23:59:59-23:59"):
        assert (await hello.call("GET", f"{path}?since={value}")).status_code == 200


async def test_a_parameter_without_a_value_is_refused_on_every_route(hello: Served) -> None:
    thread = (await hello.inject())["thread_id"]
    for route in GUARDED:
        for parameter in route.query:
            body: dict[str, Any] = XML if route.path == "/inject" else {}
            answer = await call(hello, route, f"?{parameter}=", thread, **body)
            assert refused(answer, 400) == "invalid_field"
            assert answer.json()["error"]["param"] == f"query.{parameter}"


async def test_a_text_to_be_found_may_be_any_text(hello: Served) -> None:
    await hello.inject()
    for value in ("%25", "_", "%22", "%5C", "%00", "'", "*", "%F0%9F%90%99", "a" * 4000, "NEAR("):
        assert (await hello.call("GET", f"/messages?q={value}")).status_code == 200


@pytest.mark.parametrize(
    "query", ["after=x", "after=-1", "until=x", "limit=501", "content=1", "type=x", "after=" + "9" * 25]
)
async def test_a_piece_of_the_log_that_is_none_is_refused(hello: Served, query: str) -> None:
    answer = await hello.call("GET", f"/log?{query}")
    assert refused(answer, 400) == "invalid_field"
    assert answer.json()["error"]["param"] == f"query.{query.partition('=')[0]}"


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
async def test_an_injection_that_is_none_names_what_is_wrong(hello: Served, body: Any, status: int, param: str) -> None:
    answer = await hello.call("POST", "/inject", json=body)
    refused(answer, status)
    assert answer.json()["error"]["param"] == param
    assert (await hello.get("/organism"))["total_messages"] == 0


async def test_another_method_is_told_which_there_are(hello: Served) -> None:
    for route in ROUTES:
        answer = await hello.call("PATCH", "/" + address(route))
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
                assert refused(answer, 400, 404, 503) in {"stopping", "log_unavailable", "missing_field", "not_found"}


@pytest.mark.parametrize("act", ["pause", "kill"])
async def test_the_same_act_at_the_same_time_is_done_once_and_answered_to_all(hello: Served, act: str) -> None:
    await hello.call("POST", "/agents/shouter/pause")
    thread = (await hello.inject(wait=None))["thread_id"]
    answers = await asyncio.gather(*(hello.call("POST", f"/threads/{thread}/{act}") for _ in range(10)))
    assert {answer.status_code for answer in answers} == {200}
    name = {"pause": "thread_paused", "kill": "thread_killed"}[act]
    assert len((await hello.get(f"/log?type={name}"))["events"]) == 1
