"""Hostile bodies and texts in every place that takes one: documented refusals, no 5xx, and the organism lives (S14)."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import orjson
import pytest

from organism.server.app import ROUTES
from organism.server.http.call import USER
from organism.server.json import MAX_ELEMENTS
from tests.server.contract import refusal_of
from tests.server.hostile.client import fault_of, faults_of, lives
from tests.server.hostile.texts import BAD_JSON, BAD_XML, HUGE, ODD_JSON, STRANGE, mutations
from tests.server.served import Served

JSON = {"Content-Type": "application/json", USER: "ann"}
XML = {"Content-Type": "application/xml"}
Expected = tuple[set[int], str]
"""The statuses that are right, and the code if it matters."""

TEXTS = [
    "/messages?q={}", "/threads?agent={}", "/threads?status={}", "/messages?agent={}", "/messages?since={}",
    "/messages?limit={}", "/messages?cursor={}", "/log?type={}", "/log?thread={}", "/log?after={}", "/agents/{}",
    "/threads/{}", "/messages/{}/why", "/organism/graph?format={}", "/{}",
]  # fmt: skip


async def judged(server: Served, expected: Expected, asked: str, **more: Any) -> str:
    """What is wrong with the answer to ``METHOD PATH``; nothing: it is the documented one."""
    statuses, code = expected
    answer = await server.call(*asked.split(" ", 1), **more)
    fault = f"came {answer.status_code}" if answer.status_code not in statuses else ""
    if not fault and answer.status_code >= 400:
        body = {"error": refusal_of(answer)}
        fault = fault_of(body, answer.status_code) or ("" if code in {"", body["error"]["code"]} else f"{code}: {body}")
    return f"{asked[:80]} {str(more.get('content', ''))[:120]}: {fault}" if fault else ""


async def test_whatever_is_no_json_is_invalid_json(shared: Served) -> None:
    acting = [f"/{route.address}" for route in ROUTES if route.method == "POST" and not route.takes_files]
    bodies = [("/inject", body) for body in BAD_JSON]
    bodies += [(path.replace("{name}", "greeter"), body) for path in acting for body in (b"{", b'{"a":1,"a":1}')]
    asked = (judged(shared, _expected(body), f"POST {path}", content=body, headers=JSON) for path, body in bodies)
    assert await faults_of(asked) == []
    assert await lives(shared)


def _expected(body: bytes) -> Expected:
    """What has too many values may be refused for that, before it is known to be no JSON."""
    return ({400, 413}, "") if body.count(b",") >= MAX_ELEMENTS else ({400}, "invalid_json")


async def test_json_that_is_no_injection_names_its_fault(shared: Served) -> None:
    before = (await shared.get("/organism"))["total_messages"]
    asked = (judged(shared, ({400, 404, 413}, ""), "POST /inject", content=body, headers=JSON) for body in ODD_JSON)
    assert await faults_of(asked) == []
    assert (await shared.get("/organism"))["total_messages"] == before
    assert await lives(shared)


async def test_a_second_opinion_agrees_about_what_is_json(shared: Served) -> None:
    bodies = list(mutations(600))
    assert 50 < sum(is_json for _, is_json in bodies) < 550

    async def disagreed(body: bytes, *, is_json: bool) -> str:
        answer = await shared.call("POST", "/inject", content=body, headers=JSON)
        is_refused = answer.status_code == 400 and answer.json()["error"]["code"] == "invalid_json"
        return "" if is_refused != is_json and answer.status_code < 500 else f"{body!r}: {answer.text}"

    assert await faults_of(disagreed(body, is_json=is_json) for body, is_json in bodies) == []
    assert await lives(shared)


async def test_whatever_is_no_greeting_is_refused_as_a_document(shared: Served) -> None:
    before = (await shared.get("/organism"))["total_messages"]
    asked = (
        judged(shared, ({400, 413}, ""), "POST /inject?to=greeter", content=document, headers=XML)
        for document in BAD_XML
    )
    assert await faults_of(asked) == []
    assert (await shared.get("/organism"))["total_messages"] == before
    assert await lives(shared)


async def test_a_strange_text_is_sent_back_or_refused(shared: Served) -> None:
    async def mangled(text: str) -> str:
        body = orjson.dumps({"to": "shouter", "payload": {"message": text, "original_sender": "x"}, "wait": 10})
        answer = await shared.call("POST", "/inject", content=body, headers=JSON)
        if answer.status_code == 200:
            found = answer.json()["replies"][0]["payload"]["message"]
            return "" if found == text.upper() else f"{text!r} came back as {found!r}"
        return "" if answer.status_code == 400 else f"{text!r}: {answer.text}"

    assert await faults_of(map(mangled, STRANGE)) == []
    assert await lives(shared)


@pytest.mark.parametrize("text", HUGE)
async def test_a_huge_name_key_or_id_is_refused(shared: Served, text: str) -> None:
    before = (await shared.get("/organism"))["total_messages"]
    bodies = [
        ("/inject", {"to": text, "payload": {}}),
        ("/inject", {"to": "greeter", "payload": {text: 1}}),
        ("/inject", {"to": "greeter", "payload": {"name": "x"}, "thread_id": text}),
        ("/inject", {"to": "greeter", "payload": {"name": "x"}, text: 1}),
        ("//v1/tools/execute", {"name": text}),
        ("//v1/tools/execute", {"name": "calculator", "arguments": {text: 1}}),
        ("/invoke", {"agent": text, "data": {"inputs": {"message": "x"}}}),
        ("/approvals/x/resolve", {"decision": text}),
        ("/indeterminate/x/resolve", {"outcome": text}),
    ]
    asked = (
        judged(shared, ({400, 404, 413}, ""), f"POST {path}", content=orjson.dumps(body), headers=JSON)
        for path, body in bodies
    )
    assert await faults_of(asked) == []
    assert (await shared.get("/organism"))["total_messages"] == before
    assert await lives(shared)


@pytest.mark.parametrize("path", TEXTS)
async def test_a_strange_text_in_an_address_does_no_harm(shared: Served, path: str) -> None:
    asked = (judged(shared, ({200, 400, 404, 406}, ""), f"GET {path}".format(quote(text, safe=""))) for text in STRANGE)
    assert await faults_of(asked) == []
    assert await lives(shared)


@pytest.mark.parametrize("name", ["Idempotency-Key", "If-Match", "If-None-Match", "Accept", "X-Request-Id", "Origin"])
async def test_a_strange_text_in_a_header_does_no_harm(shared: Served, name: str) -> None:
    body = orjson.dumps({"to": "greeter", "payload": {"name": "x"}})
    values = {text.encode()[:200] for text in STRANGE if text.isprintable() and text.strip()}
    asked = (
        judged(shared, ({200, 202, 400, 409}, ""), "POST /inject", content=body, headers={**JSON, name: value})
        for value in values
    )
    assert await faults_of(asked) == []
    assert await lives(shared)
