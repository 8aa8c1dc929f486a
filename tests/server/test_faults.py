"""Every field that is wrong is named, all of them at once, by where it stands in the request."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from websockets import InvalidStatus

from tests.flows.world import MakeWorld
from tests.server.served import Frames, Served, served

XML = {"Content-Type": "application/xml"}
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
        ("/threads?odd=1&even=2&limit=0&status=x", ["odd", "even", "status", "limit"]),
        ("/messages?since=y&offset=-1&at=z&xml=maybe", ["since", "offset", "at", "xml"]),
        (
            "/log?after=x&until=y&limit=0&type=odd&content=5&odd=1",
            ["odd", "limit", "after", "until", "type", "content"],
        ),
        ("/threads/none?xml=maybe&at=z&odd=1", ["odd", "xml", "at"]),
        ("/events?odd=1&since=x&events=odd", ["odd", "since", "events"]),
        ("/threads?limit=0", ["limit"]),
    ],
)
async def test_all_parameters_that_are_wrong_are_named_at_once(hello: Served, asked: str, params: list[str]) -> None:
    assert named(await hello.call("GET", asked)) == [f"query.{name}" for name in params]


async def test_all_that_is_wrong_in_a_socket_s_address_is_named_at_once(hello: Served) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with hello.socket("?odd=1&since=x&batch=maybe"):
            pass
    said = refused.value.response.body.decode()
    assert [name for name in ("odd", "since", "batch") if f'"param":"query.{name}"' in said] == [
        "odd",
        "since",
        "batch",
    ]


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
    hello: Served, query: str, status: int, params: list[str]
) -> None:
    answer = await hello.call("POST", "/inject" + query, headers=XML, content=GREETING)
    assert named(answer, status) == params


@pytest.mark.parametrize("wait", ["nan", "inf", "-1", "0", "1_0", "%2010", "%D9%A1"])
async def test_a_wait_in_the_address_is_a_plain_number(hello: Served, wait: str) -> None:
    answer = await hello.call("POST", f"/inject?to=greeter&wait={wait}", headers=XML, content=GREETING)
    assert named(answer) == ["query.wait"]


@pytest.mark.parametrize(
    "path",
    ["/threads/none/kill", "/threads/none/pause", "/agents/nobody/pause", "/agents/nobody/invoke"],
)
async def test_what_stands_in_the_path_is_no_field(hello: Served, path: str) -> None:
    body = {"data": {"inputs": {"message": "Hi"}}} if path.endswith("invoke") else {}
    answer = await hello.call("POST", path, json=body)
    assert (answer.status_code, answer.json()["error"]["param"]) == (404, None)


@pytest.mark.parametrize(
    ("command", "param"),
    [
        ({"cmd": "pause", "agent": "nobody"}, "/agent"),
        ({"cmd": "resume", "thread_id": "none"}, "/thread_id"),
        ({"cmd": "resolve", "approval": "none", "decision": "approve"}, "/approval"),
        ({"cmd": "auth", "token": "none"}, "/token"),
        ({"cmd": "subscribe", "since": 1 << 40}, "/since"),
        ({"cmd": "subscribe", "since": 1, "log": "another"}, "/log"),
        ({"cmd": "inject", "to": "nobody", "payload": {}}, "/to"),
    ],
)
async def test_a_command_s_wrong_field_is_named(hello: Served, command: dict[str, Any], param: str) -> None:
    async with hello.socket("?events=reload") as socket:
        refused = await Frames(socket).ask(**command)
    assert (refused["event"], refused["param"]) == ("error", param)


@pytest.mark.parametrize("since", ["99999", "9223372036854775808", "9" * 40])
async def test_a_position_ahead_of_any_log_is_a_bad_one(hello: Served, since: str) -> None:
    answer = await hello.call("GET", f"/events?since={since}")
    assert (answer.json()["error"]["code"], answer.json()["error"]["param"]) == ("bad_position", "query.since")
    again = await hello.call("GET", "/events?since=1", headers={"Last-Event-ID": since})
    assert (again.json()["error"]["code"], named(again)) == ("bad_position", ["headers.last-event-id"])


async def test_who_has_no_room_is_named_where_the_call_names_it(world: MakeWorld) -> None:
    source = """
async def idler(payload: Ask, metadata: HandlerMetadata):
    return None
"""
    made = world(source, {"idler": {}}, limits={"max_queue_per_agent": 1})
    asked = {"data": {"inputs": {"payload": {"text": ""}}}}
    async with served(made.config) as server:
        await server.call("POST", "/agents/idler/pause")
        await server.inject("idler", {"text": ""}, wait=None)
        sent = await server.call("POST", "/inject", json={"to": "idler", "payload": {"text": ""}})
        invoked = await server.call("POST", "//invoke", json={"agent": "idler", **asked})
        by_path = await server.call("POST", "/agents/idler/invoke", json=asked)
    assert [named(answer, 503) for answer in (sent, invoked, by_path)] == [["/to"], ["/agent"], [None]]
