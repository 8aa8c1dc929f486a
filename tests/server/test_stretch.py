"""A stretch of the log, played: ``since`` and ``until`` of ``/ws`` and ``GET /events``."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server.served import Frames, Served
from tests.server.test_socket import OWN, closed, logged
from tests.server.test_stream import listening, until_free


async def by_socket(server: Served, query: str) -> list[dict[str, Any]]:
    """All frames that come, of a connection that ends by itself and well."""
    async with server.socket(query) as socket:
        frames = Frames(socket)
        seen = await frames.until("caught_up")
        assert await closed(frames) == 1000
        return seen


async def by_stream(server: Served, query: str) -> list[dict[str, Any]]:
    """The same by Server-Sent Events."""
    async with listening(server, query) as events:
        seen = [said for _, said in await events.until("caught_up")]
        with pytest.raises(EOFError):
            await events.next()
        return seen


WAYS = pytest.mark.parametrize("play", [by_socket, by_stream])


@WAYS
async def test_any_stretch_is_played_as_it_was_pushed_and_then_the_connection_ends(hello: Served, play: Any) -> None:
    async with hello.socket() as socket:
        frames = Frames(socket)
        start = (await frames.next())["position"]
        await hello.inject()
        live = logged(await frames.until("thread_updated"))
    head = hello.log.head
    for since, until in [(start, until) for until in range(start, head + 1)] + [(start + 1, head), (head, head)]:
        seen = await play(hello, f"?since={since}&until={until}")
        assert [frame["event"] for frame in (seen[0], seen[-1])] == ["connected", "caught_up"]
        assert (seen[0]["position"], seen[-1]["position"]) == (since, until)
        assert logged(seen) == [frame for frame in live if since < frame["position"] <= until]
    await hello.inject()
    assert all(frame["position"] <= head for frame in await play(hello, f"?since=0&until={head}"))


@WAYS
async def test_a_stretch_has_what_its_filter_passes_and_nothing_that_is_not_logged(hello: Served, play: Any) -> None:
    await hello.inject()
    other = await hello.inject()
    head = hello.log.head
    played = await play(hello, f"?since=0&until={head}&events=message,agent_state&threads={other['thread_id']}")
    assert [frame["event"] for frame in played if frame["event"] not in OWN] == ["message"] * 4
    assert not [frame for frame in played if frame["event"] == "agent_state"]


BAD = [
    ("?until=1", "missing_field", "query.since"),
    ("?until=x&since=0", "invalid_field", "query.until"),
    ("?until=-1&since=0", "invalid_field", "query.until"),
    ("?until=99999999999999999999&since=0", "bad_position", "query.until"),
]
BAD_POSITIONS = [("?since=1&until=0", "query.until"), ("?since=0&until=99999", "query.until")]


@pytest.mark.parametrize(
    ("query", "code", "param"), [*BAD, *((q, "bad_position", param) for q, param in BAD_POSITIONS)]
)
async def test_a_stretch_that_is_none_is_refused(shared: Served, query: str, code: str, param: str) -> None:
    answer = await shared.call("GET", f"/events{query}")
    refused = answer.json()["error"]
    assert (answer.status_code, refused["code"], refused["param"]) == (400, code, param)
    await until_free(shared)


@pytest.mark.parametrize(("query", "param"), BAD_POSITIONS)
async def test_the_socket_refuses_it_likewise(shared: Served, query: str, param: str) -> None:
    async with shared.socket(query) as socket:
        frames = Frames(socket)
        refused = await frames.next()
        assert (refused["code"], refused["param"]) == ("bad_position", param)
        assert await closed(frames) == 1008


async def test_who_comes_again_goes_on_from_the_last_id_to_the_same_end(shared: Served) -> None:
    await shared.inject()
    head = shared.log.head
    async with listening(shared, f"?until={head}", Last_Event_ID=str(head - 1)) as events:
        seen = [said for _, said in await events.until("caught_up")]
    assert (seen[0]["position"], seen[-1]["position"]) == (head - 1, head)


async def test_a_subscription_takes_no_end(shared: Served) -> None:
    async with shared.socket() as socket:
        frames = Frames(socket)
        await frames.next()
        assert (await frames.ask("subscribe", since=0, until=1))["code"] == "unknown_field"
