"""The edge: what every request passes, whatever it asks for."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator

import orjson
import pytest

from organism.server.app import ROUTES
from organism.server.edge import MAX_BODY_BYTES
from organism.server.rights import OPEN
from tests.server.served import TOKEN, Frames, Served


async def test_every_answer_has_strict_headers_and_a_request_id(hello: Served) -> None:
    first, second = await hello.call("GET", "/organism"), await hello.call("GET", "/nothing")
    assert first.headers["x-content-type-options"] == second.headers["x-content-type-options"] == "nosniff"
    assert first.headers["content-security-policy"].startswith("default-src 'none'")
    assert first.headers["x-request-id"] != second.headers["x-request-id"]
    assert "server" not in first.headers


async def test_no_route_answers_without_a_token(hello: Served) -> None:
    guarded = [route for route in ROUTES if route.right is not OPEN]
    for route in guarded:
        path = route.address.replace("{id}", "x").replace("{name}", "greeter")
        answer = await hello.client.request(route.method, path)
        assert (route, answer.status_code) == (route, 401)
        assert answer.json()["error"]["code"] == "missing_authorization"


@pytest.mark.parametrize("path", ["//healthz", "//readyz", "//errors", "/errors"])
async def test_probes_and_the_error_table_need_no_token(hello: Served, path: str) -> None:
    answer = await hello.call("GET", path, headers={"Authorization": ""})
    assert answer.status_code == 200


async def test_a_wrong_token_is_not_told_from_an_expired_one(hello: Served) -> None:
    answer = await hello.call("GET", "/organism", headers={"Authorization": "Bearer page_1_00"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_authorization")
    assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_token_may_come_as_an_api_key(hello: Served) -> None:
    answer = await hello.call("GET", "/organism", headers={"Authorization": "", "X-API-Key": TOKEN})
    assert answer.status_code == 200
    async with hello.socket(headers={"X-API-Key": TOKEN}) as socket:
        assert (await Frames(socket).next())["event"] == "connected"


async def test_a_credential_in_the_url_is_refused_and_not_echoed(hello: Served) -> None:
    answer = await hello.call("GET", f"/organism?token={TOKEN}")
    assert answer.json()["error"]["code"] == "credential_in_url"
    assert TOKEN not in answer.text


async def test_another_host_is_turned_away(hello: Served) -> None:
    answer = await hello.call("GET", "/organism", headers={"Host": "evil.example"})
    assert (answer.status_code, answer.json()["error"]["param"]) == (403, "headers.host")


async def test_an_unknown_route_and_a_wrong_method_say_what_there_is(hello: Served) -> None:
    unknown, wrong = await hello.call("GET", "/nowhere"), await hello.call("PUT", "/threads")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "not_found")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET")


async def test_a_query_that_is_not_understood_is_refused_by_name(hello: Served) -> None:
    for query in (
        "limt=5",
        "at=3",
        "limit=5&limit=6",
        "limit=0",
        "limit=501",
        "limit=x",
        "offset=-1",
        "offset=1&cursor=x",
    ):
        answer = await hello.call("GET", f"/messages?{query}")
        assert (query, answer.status_code) == (query, 400)
        assert answer.json()["error"]["param"].startswith("query.")


async def test_a_body_that_announces_too_much_is_refused_at_once(hello: Served) -> None:
    answer = await hello.call(
        "POST", "/inject", content=b" " * (MAX_BODY_BYTES + 1), headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "body_too_large")


async def test_a_body_that_streams_too_much_is_refused_while_it_streams(hello: Served) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b" " * 65_536

    answer = await hello.call("POST", "/inject", content=endless(), headers={"Content-Type": "application/json"})
    assert answer.status_code == 413


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded"])
async def test_another_kind_of_body_is_refused(hello: Served, kind: str) -> None:
    answer = await hello.call("POST", "/inject", content=b"{}", headers={"Content-Type": kind})
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported_media_type")


async def test_a_body_that_is_encoded_is_refused(hello: Served) -> None:
    sent = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    answer = await hello.call("POST", "/inject", content=gzip.compress(b"{}"), headers=sent)
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported_media_type")


async def test_what_is_known_already_is_not_sent_again(hello: Served) -> None:
    await hello.inject()
    first = await hello.call("GET", "/messages")
    again = await hello.call("GET", "/messages", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    await hello.inject()
    later = await hello.call("GET", "/messages", headers={"If-None-Match": first.headers["etag"]})
    assert (later.status_code, later.json()["total"]) == (200, 8)


async def test_head_answers_as_get_without_the_body(hello: Served) -> None:
    answer = await hello.call("HEAD", "/agents")
    assert (answer.status_code, answer.content) == (200, b"")
    assert int(answer.headers["content-length"]) > 100


async def test_the_page_is_served_with_its_own_policy(hello: Served) -> None:
    page = await hello.call("GET", "//", headers={"Authorization": ""})
    assert page.headers["content-type"].startswith("text/html")
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert (await hello.call("GET", "//../organism.yaml")).status_code == 404


async def test_what_nobody_foresaw_is_an_internal_error_without_its_trace(
    hello: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("/secret/path")

    monkeypatch.setattr(hello.log, "row", broken, raising=False)
    answer = await hello.call("GET", "/agents/greeter")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal_error")
    assert "secret" not in answer.text
    assert answer.json()["error"]["request_id"] == answer.headers["x-request-id"]


async def test_what_is_no_http_is_refused_in_the_same_shape(hello: Served) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(hello.url.rsplit(":", 1)[1]))
    writer.write(b"GET / HTTP/9.9\r\nbad\r\n\r\n")
    said = await reader.read()
    writer.close()
    head, _, body = said.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"nosniff" in head
    assert set(orjson.loads(body)["error"]) >= {"type", "code", "message", "param", "request_id"}
