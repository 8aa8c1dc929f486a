"""Invoke by a real client: both surfaces, every flag, every form, and what cannot be had."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import product
from typing import Any

import httpx2
import orjson
import pytest

from tests.flows.world import MakeWorld
from tests.server.served import Served, served

SURFACES = ("/api/v1/invoke", "/invoke", "/api/v1/agents/greeter/invoke", "/agents/greeter/invoke")
STREAMS = ("application/x-ndjson", "application/jsonl", "text/event-stream")
DAN = {"data": {"inputs": {"payload": {"name": "Dan"}}}}
SAYS: tuple[bool | None, ...] = (None, False, True)

SOURCE = """
@dataclass
class Name:
    name: str

async def greeter(payload: Name, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told(f"Hello, {payload.name}"))

teller = greeter

async def broken(payload: Name, metadata: HandlerMetadata):
    raise ValueError(payload.name)
"""
NAMED = {"payload_class": "Name"}
LISTENERS = {"greeter": NAMED, "teller": {**NAMED, "invoke": ["stream"]}, "broken": NAMED}


@pytest.fixture
async def plain_server(world: MakeWorld) -> AsyncIterator[Served]:
    """One who answers, one who streams alone, and one who fails."""
    async with served(world(SOURCE, LISTENERS, retry={"attempts": 1}).config) as server:
        yield server


async def invoke(server: Served, path: str, body: Any, **headers: str) -> httpx2.Response:
    given = body if "agents/" in path else {"agent": "greeter", **body}
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return await server.client.post(server.url + path, json=given, headers={**server.bearer, **names})


def outputs(answer: httpx2.Response) -> Any:
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]["outputs"]


def lines(answer: httpx2.Response) -> list[Any]:
    """The entries of a stream, whatever its form, without its cost."""
    assert answer.status_code == 200, answer.text
    entries, _, _ = answer.text.partition("event: spass.cost\n")
    return [orjson.loads(line.removeprefix("data: ")) for line in entries.split("\n") if line]


async def test_a_plain_handler_answers_a_batch_by_every_surface_alike(hello: Served) -> None:
    answers = [await invoke(hello, path, DAN) for path in SURFACES]
    assert len({orjson.dumps(outputs(answer)) for answer in answers}) == 1
    body = answers[0].json()
    assert set(body) == {"data", "session_id", "thread_id"}
    assert set(body["data"]["outputs"]) == {"messages", "stop_reason"}
    assert body["data"]["outputs"]["stop_reason"] == "stop"
    assert "DAN" in body["data"]["outputs"]["messages"][0]["content"]
    assert (await hello.get(f"/threads/{body['thread_id']}"))["message_count"] == 4


@pytest.mark.parametrize(
    ("body", "headers", "param"),
    [
        ({}, {"accept": "text/event-stream"}, "headers.accept"),
        ({"flags": {"stream": True}}, {}, "/flags/stream"),
        ({"flags": {"stream": True}}, {"accept": "text/event-stream"}, "/flags/stream"),
        ({}, {"x_ag_session_control": "force"}, "headers.x-ag-session-control"),
        ({"flags": {"force": True}}, {}, "/flags/force"),
        ({}, {"x_ag_session_id": "none", "spass_user_id": "dan"}, "headers.x-ag-session-id"),
        ({"session_id": "none"}, {"spass_user_id": "dan"}, "/session_id"),
        ({"session_id": "none"}, {}, "headers.spass-user-id"),
        ({"data": {"inputs": {"payload": {"name": 7}}}}, {}, "/data/inputs/payload/name"),
        ({"session_id": "none"}, {"x_ag_session_id": "other", "spass_user_id": "dan"}, "/session_id"),
    ],
)
async def test_what_cannot_be_had_is_named_where_it_was_asked_for(
    plain_server: Served, body: dict[str, Any], headers: dict[str, str], param: str
) -> None:
    answer = await invoke(plain_server, "/agents/greeter/invoke", {**DAN, **body}, **headers)
    assert answer.json()["error"]["param"] == param


@pytest.mark.parametrize("path", SURFACES)
async def test_every_flag_is_delivered_or_refused_by_every_surface(plain_server: Served, path: str) -> None:
    for stream, trim, force in product(SAYS, repeat=3):
        answer = await invoke(plain_server, path, {**DAN, "flags": {"stream": stream, "trim": trim, "force": force}})
        if force or stream:
            error = answer.json()["error"]
            wanted = ("force_not_supported", "force") if force else ("not_acceptable", "stream")
            assert (answer.status_code, error["code"], error["requested"]) == (406, *wanted)
            assert error["supported"] == ["batch"]
        else:
            assert outputs(answer)["messages"] == [{"role": "assistant", "content": '{"text":"Hello, Dan"}'}]


@pytest.mark.parametrize("kind", STREAMS)
async def test_a_handler_that_streams_alone_streams_and_refuses_a_batch(plain_server: Served, kind: str) -> None:
    path = "/agents/teller/invoke"
    shown = await invoke(plain_server, path, DAN, accept=kind)
    assert shown.headers["content-type"] == kind
    assert [entry["type"] for entry in lines(shown)] == ["message", "done"]
    assert lines(await invoke(plain_server, path, DAN)) == lines(shown)
    refused = await invoke(plain_server, path, DAN, accept="application/json")
    assert (refused.status_code, refused.json()["error"]["supported"]) == (406, ["stream"])


async def test_the_ui_stream_is_events_whatever_is_accepted(plain_server: Served) -> None:
    shown = await invoke(plain_server, "/agents/teller/invoke", DAN, accept=STREAMS[0], x_ag_messages_format="vercel")
    assert (shown.headers["content-type"], shown.headers["x-ag-messages-format"]) == ("text/event-stream", "vercel")
    assert shown.text.endswith('data: {"type":"finish","messageMetadata":{"stopReason":"stop"}}\n\ndata: [DONE]\n\n')


async def test_a_ui_batch_has_parts(plain_server: Served) -> None:
    answer = await invoke(plain_server, "/invoke", DAN, x_ag_messages_format="vercel")
    parts = [{"type": "text", "text": '{"text":"Hello, Dan"}'}]
    assert outputs(answer)["messages"] == [{"role": "assistant", "parts": parts}]
    assert answer.headers["x-ag-messages-format"] == "vercel"


@pytest.mark.parametrize("accept", ["application/json", *STREAMS])
async def test_an_error_before_the_first_byte_is_json_with_its_own_status(plain_server: Served, accept: str) -> None:
    cases = [
        ("/agents/nobody/invoke", DAN, 404, "not_found"),
        ("/agents/system.compaction/invoke", DAN, 404, "not_found"),
        (
            "/agents/greeter/invoke",
            {"data": {"inputs": {"payload": {"nam": "Dan"}}}, "flags": {"stream": False}},
            400,
            "invalid_payload",
        ),
        (
            "/agents/greeter/invoke",
            {"data": {"inputs": {"message": "hi"}}, "flags": {"stream": False}},
            400,
            "invalid_field",
        ),
        ("/agents/greeter/invoke", {**DAN, "session_id": "none", "flags": {"stream": False}}, 404, "not_found"),
        ("/agents/broken/invoke", {**DAN, "flags": {"stream": False}}, 500, "handling_failed"),
    ]
    for path, body, status, code in cases:
        answer = await invoke(plain_server, path, body, accept=accept, spass_user_id="dan")
        error = (answer.status_code, answer.headers["content-type"], answer.json()["error"]["code"])
        assert error == (status, "application/json", code), path


async def test_the_same_key_gives_the_same_answer_and_sends_nothing_twice(plain_server: Served) -> None:
    first = await invoke(plain_server, "/invoke", DAN, idempotency_key="one")
    again = await invoke(plain_server, "/invoke", DAN, idempotency_key="one")
    assert again.content == first.content
    other = await invoke(
        plain_server, "/invoke", {"data": {"inputs": {"payload": {"name": "Eve"}}}}, idempotency_key="one"
    )
    assert (other.status_code, other.json()["error"]["code"]) == (422, "idempotency_key_reused")
    assert (await plain_server.get("/threads"))["total"] == 1


async def test_a_stream_under_the_same_key_is_sent_again_from_the_log(plain_server: Served) -> None:
    path = "/agents/teller/invoke"
    first = await invoke(plain_server, path, DAN, idempotency_key="two")
    assert (await invoke(plain_server, path, DAN, idempotency_key="two")).content == first.content
