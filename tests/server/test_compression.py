"""JSON in fewer bytes: reads by gzip, for who accepts it; never what may hold a fresh secret, and no stream."""

from __future__ import annotations

import gzip
from typing import Any

import httpx2
import pytest

from tests.server.served import Served

LONG = {"name": "x" * 5000}


async def raw(server: Served, path: str, accept: str) -> tuple[httpx2.Response, bytes]:
    """The answer to a read, and its body as it came."""
    sent = {**server.bearer, "Accept-Encoding": accept}
    async with server.client.stream("GET", f"/api/v1{path}", headers=sent) as answer:
        return answer, b"".join([part async for part in answer.aiter_raw()])


@pytest.mark.parametrize("count", [1, 20])
async def test_a_read_is_the_same_json_by_gzip_with_the_same_etag(hello: Served, count: int) -> None:
    for _ in range(count):
        await hello.inject(payload=LONG)
    plain, body = await raw(hello, "/messages", "identity")
    packed, came = await raw(hello, "/messages", "gzip, br")
    assert (packed.headers["content-encoding"], "content-encoding" in plain.headers) == ("gzip", False)
    assert gzip.decompress(came) == body
    assert int(packed.headers["content-length"]) == len(came) < len(body) / 2
    assert {answer.headers["etag"] for answer in (plain, packed)} == {f'"{hello.log.head}"'}
    assert {answer.headers["vary"] for answer in (plain, packed)} == {"Accept-Encoding"}
    has = {"Accept-Encoding": "gzip", "If-None-Match": packed.headers["etag"]}
    known = await hello.call("GET", "/messages", headers=has)
    assert (known.status_code, known.content, known.headers["vary"]) == (304, b"", "Accept-Encoding")
    assert "content-encoding" not in known.headers


@pytest.mark.parametrize(
    ("accept", "is_packed"),
    [
        ("gzip", True),
        ("GZIP;q=0.1", True),
        ("*", True),
        ("br, *;q=0.5", True),
        ("", False),
        ("br", False),
        ("identity", False),
        ("gzip;q=0", False),
        ("*;q=0", False),
        ("gzip;q=0, *", False),
        ("gzip;q=x", False),
        ("x-gzip2", False),
    ],
)
async def test_it_is_for_who_accepts_it(shared: Served, accept: str, is_packed: bool) -> None:  # noqa: FBT001 - a column
    answer, _ = await raw(shared, "/agents", accept)
    assert ("content-encoding" in answer.headers, answer.headers["vary"]) == (is_packed, "Accept-Encoding")


async def test_a_small_answer_comes_as_it_is(shared: Served) -> None:
    answer, body = await raw(shared, "/organism", "gzip")
    assert (answer.headers.get("content-encoding"), answer.headers["vary"]) == (None, "Accept-Encoding")
    assert len(body) < 1024


@pytest.mark.parametrize(
    ("path", "body"),
    [("/ws-ticket", None), ("/inject", {"to": "greeter", "payload": LONG, "wait": 10})],
)
async def test_an_act_is_answered_as_it_is(shared: Served, path: str, body: Any) -> None:
    answer = await shared.call("POST", path, json=body, headers={"Accept-Encoding": "gzip"})
    assert answer.status_code == 200
    assert "content-encoding" not in answer.headers


async def test_a_stream_comes_as_it_is(hello: Served) -> None:
    await hello.inject(payload=LONG)
    answer, body = await raw(hello, f"/events?since=0&until={hello.log.head}", "gzip")
    assert ("content-encoding" in answer.headers, len(body) > 5000) == (False, True)


async def test_a_head_says_what_a_read_says(shared: Served) -> None:
    read, _ = await raw(shared, "/agents", "gzip")
    head = await shared.call("HEAD", "/agents", headers={"Accept-Encoding": "gzip"})
    names = ("content-encoding", "content-length", "etag", "vary")
    assert [head.headers[name] for name in names] == [read.headers[name] for name in names]
