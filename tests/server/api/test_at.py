"""``?at=``: each answer as it stood when the log ended at a position (V4)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.served import Served, served

LISTS = ("/agents", "/threads", "/messages", "/dead-letters", "/approvals", "/threads?status=active", "/messages?q=Dan")
EVERY_TICK = "uptime_seconds"


@pytest.fixture(params=["memory", "disk"])
async def hello(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Served]:
    """The hello organism in memory and on a disk, each with a past of its own making."""
    async with served(data=None if request.param == "memory" else tmp_path / "data") as server:
        yield server


def with_at(path: str, at: object) -> str:
    """The path with one parameter more."""
    return f"{path}{'&' if '?' in path else '?'}at={at}"


async def everything(hello: Served, thread: str, at: object = "") -> dict[str, Any]:
    """What every route answers that can look back."""
    paths = (*LISTS, "/organism", "/usage", "/agents/greeter", f"/threads/{thread}", f"/threads/{thread}/messages")
    found: dict[str, Any] = {}
    for path in paths:
        answer = await hello.call("GET", with_at(path, at) if at != "" else path)
        body = answer.json()
        body.pop(EVERY_TICK, None)
        body.pop("error", None)  # it has the request's own id
        found[path] = (answer.status_code, body)
    return found


async def test_every_route_answers_as_it_did_when_the_log_ended_there(hello: Served) -> None:
    first = (await hello.inject())["thread_id"]
    kept = {hello.log.head: await everything(hello, first)}
    for act in ("/agents/shouter/pause", "/organism/pause", "/organism/resume", "/agents/shouter/resume"):
        await hello.call("POST", act)
        kept[hello.log.head] = await everything(hello, first)
    await hello.inject()
    kept[hello.log.head] = await everything(hello, first)
    await hello.call("POST", f"/threads/{first}/kill")
    for position, then in kept.items():
        assert await everything(hello, first, position) == then


async def test_a_position_between_two_acts_shows_what_was_under_way(hello: Served) -> None:
    injected = await hello.inject()
    sent = injected["position"]
    thread = await hello.get(f"/threads/{injected['thread_id']}?at={sent}")
    assert (thread["status"], thread["message_count"], len(thread["messages"])) == ("active", 1, 1)
    assert (await hello.get(f"/agents/greeter?at={sent}"))["queue_depth"] == 1
    assert (await hello.get(f"/agents/greeter?at={sent + 1}"))["state"] == "processing"


async def test_a_time_means_the_last_position_not_after_it(hello: Served) -> None:
    injected = await hello.inject()
    sent = (await hello.get(f"/messages/{injected['message_id']}"))["timestamp"]
    await hello.inject()
    assert (await hello.get(f"/messages?at={sent}"))["total"] == 1
    assert (await hello.get("/messages?at=2001-01-01T00:00:00Z"))["total"] == 0
    assert (await hello.get("/messages?at=2999-01-01T00:00:00Z"))["total"] == 8


async def test_what_was_not_there_yet_is_not_found(hello: Served) -> None:
    before = hello.log.head
    injected = await hello.inject()
    answer = await hello.call("GET", f"/threads/{injected['thread_id']}?at={before}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")
    assert (await hello.call("GET", f"/threads/{injected['thread_id']}/messages?at={before}")).status_code == 404


async def test_the_next_page_is_of_the_same_moment(hello: Served) -> None:
    await hello.inject()
    position = hello.log.head
    page = await hello.get(f"/messages?limit=3&at={position}")
    await hello.inject()
    rest = await hello.get(f"/messages?limit=3&at={position}&cursor={page['next']}")
    assert (rest["count"], rest["total"], rest["next"]) == (1, 4, None)
    other = await hello.call("GET", f"/messages?limit=3&cursor={page['next']}")
    assert other.status_code == 400


@pytest.mark.parametrize(
    ("at", "code"),
    [
        ("99999", "bad_position"),
        ("9" * 30, "bad_position"),
        ("-1", "invalid_field"),
        ("yesterday", "invalid_field"),
        ("2024-01-15T10:00:00", "invalid_field"),
        ("", "invalid_field"),
    ],
)
async def test_what_is_no_position_and_no_time_is_named(hello: Served, at: str, code: str) -> None:
    for path in ("/organism", "/agents", "/agents/greeter", "/threads", "/messages"):
        answer = await hello.call("GET", f"{path}?at={at}")
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["param"]) == (400, code, "query.at"), path


async def test_nothing_can_be_done_in_the_past(hello: Served) -> None:
    answer = await hello.call("POST", "/agents/greeter/pause?at=1")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "unknown_field")
