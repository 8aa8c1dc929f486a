"""``GET /organism/snapshot`` and ``connected``: everything at a position, or what of it passes a filter."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.flows.world import MakeWorld
from tests.server.acting import asker
from tests.server.served import Frames, Served, lines_of, served

LISTS = ("agents", "threads", "approvals", "dead_letters", "indeterminate")


async def connected(server: Served, query: str = "") -> dict[str, Any]:
    """The first frame of a socket, without what time alone changes."""
    async with server.socket(query) as socket:
        return timeless(await Frames(socket).next())


async def snapshot(server: Served, query: str = "") -> dict[str, Any]:
    """The same by REST."""
    return timeless(await server.get(f"/organism/snapshot{query}"))


def timeless(state: dict[str, Any]) -> dict[str, Any]:
    del state["organism"]["uptime_seconds"]
    return state


async def with_questions(server: Served) -> dict[str, str]:
    """Let something of each kind wait for a person; gives the thread of each."""
    threads = {}
    async with server.socket() as socket:
        frames = Frames(socket)
        for text, opened in (("bad", "dead_letter"), ("ask", "approval"), ("pay", "indeterminate")):
            threads[text] = (await server.inject("asker", {"text": text}, wait=None))["thread_id"]
            await frames.until(opened)
        threads["fine"] = (await server.inject("asker", {"text": "fine"}))["thread_id"]
    return threads


async def test_the_snapshot_at_a_position_is_what_a_viewer_was_shown_there(world: MakeWorld) -> None:
    async with served(asker(world).config) as server:
        shown = [await connected(server)]
        threads = await with_questions(server)
        shown.append(await connected(server))
        assert await snapshot(server) == shown[-1]
        await server.call("POST", f"/threads/{threads['ask']}/kill")
        await server.call("POST", "/agents/asker/pause")
        shown.append(await connected(server))
        await server.inject("asker", {"text": "later"}, wait=None)
        for state in shown:
            assert await snapshot(server, f"?at={state['position']}") == state
        assert [len(state["approvals"]) for state in shown] == [0, 1, 0]


async def test_what_waits_for_people_is_shown_as_its_lists_show_it(world: MakeWorld) -> None:
    async with served(asker(world).config) as server:
        await with_questions(server)
        state = await connected(server)
        for name, path in (
            ("approvals", "/approvals?status=pending"),
            ("dead_letters", "/dead-letters"),
            ("indeterminate", "/indeterminate"),
        ):
            listed = (await server.get(path))[name]
            assert (len(listed), state[name]) == (1, listed)


async def test_the_first_frame_shows_what_passes_the_filter(world: MakeWorld) -> None:
    async with served(asker(world).config) as server:
        threads = await with_questions(server)
        state = await connected(server, f"?threads={threads['bad']},{threads['fine']}&events=message")
        assert {row["id"] for row in state["threads"]} == {threads["bad"], threads["fine"]}
        assert (state["threads_total"], len(state["dead_letters"]), state["approvals"]) == (2, 1, [])
        assert state["agents"] == (await connected(server))["agents"]
        of_nobody = await connected(server, "?agents=nobody")
        assert [of_nobody[name] for name in (*LISTS, "threads_total")] == [[], [], [], [], [], 0]
        of_asker = await connected(server, "?agents=asker,nobody")
        assert [row["name"] for row in of_asker["agents"]] == ["asker"]
        assert (of_asker["threads_total"], len(of_asker["approvals"])) == (4, 1)
        for query in (f"?threads={threads['ask']}", "?agents=nobody", f"?threads={threads['pay']}&agents=asker"):
            assert await snapshot(server, query) == await connected(server, query)
        async with server.client.stream(
            "GET", f"/api/v1/events?threads={threads['ask']}", headers=server.bearer
        ) as answer:
            async for line in lines_of(answer):
                if line.startswith("data: "):
                    break
        assert timeless(orjson.loads(line[6:])) == await connected(server, f"?threads={threads['ask']}")


LONG = """
async def asker(payload: Ask, metadata: HandlerMetadata):
    if payload.text.startswith("bad"):
        raise ValueError("bad")
    await metadata.approve({"text": payload.text})
"""


async def test_long_payloads_and_previews_are_cut(world: MakeWorld) -> None:
    async with served(world(LONG, {"asker": {}}, retry={"attempts": 1}).config) as server, server.socket() as socket:
        frames = Frames(socket)
        for text, opened in (("bad", "dead_letter"), ("ask", "approval")):
            await server.inject("asker", {"text": text + "x" * 5000}, wait=None)
            await frames.until(opened)
        for state in (await connected(server), await snapshot(server)):
            (letter,), (approval,) = state["dead_letters"], state["approvals"]
            assert (letter["payload"], approval["preview"]) == (None, None)
            for row, text in ((letter, "bad"), (approval, "ask")):
                cut = row["payload_cut"]
                assert (cut["bytes"], len(cut["text"])) == (5014, 4096)
                assert cut["text"].startswith('{"text":"' + text)
        whole = await snapshot(server, "?payloads=65536")
        assert whole["dead_letters"][0]["payload"]["text"] == "bad" + "x" * 5000
        assert (await connected(server, "?payloads=10"))["approvals"][0]["payload_cut"]["text"] == '{"text":"a'


@pytest.mark.parametrize(
    ("query", "code", "param"),
    [
        ("?event=message", "unknown_field", "query.event"),
        ("?payloads=65537", "invalid_field", "query.payloads"),
        ("?payloads=-1", "invalid_field", "query.payloads"),
        ("?threads=" + ",".join(["t"] * 1001), "invalid_field", "query.threads"),
        ("?agents=" + "a" * 201, "invalid_field", "query.agents"),
        ("?at=999999", "bad_position", "query.at"),
        ("?at=then", "invalid_field", "query.at"),
    ],
)
async def test_what_is_wrong_in_the_query_is_named(shared: Served, query: str, code: str, param: str) -> None:
    answer = await shared.call("GET", f"/organism/snapshot{query}")
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, code, param)


async def test_a_moment_that_is_neither_position_nor_time_says_that_it_may_be_both(shared: Served) -> None:
    error = (await shared.call("GET", "/organism/activity?after=then")).json()["error"]
    assert error["message"] == "Expected a position, or a time as 2024-01-15T10:00:00Z (with its offset); came 'then'."


async def test_an_unchanged_log_is_not_sent_again(hello: Served) -> None:
    tag = (await hello.call("GET", "/organism/snapshot")).headers["etag"]
    again = await hello.call("GET", "/organism/snapshot", headers={"If-None-Match": tag})
    assert again.status_code == 304
    before = await hello.call("GET", "/organism/snapshot?at=0")
    assert before.status_code == 404
