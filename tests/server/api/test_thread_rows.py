"""A thread's row: what it is called, when it ended, who paused it, and what of it waits for a person."""

from __future__ import annotations

from typing import Any

import pytest

from organism.views.threads import title
from tests.flows.world import MakeWorld
from tests.server.acting import asker
from tests.server.served import Frames, Served, served

NOTHING = {"approvals": 0, "dead_letters": 0, "indeterminate": 0}


@pytest.mark.parametrize(
    ("payload", "called"),
    [
        (b'{"name":"Dan","text":"later"}', "Dan"),
        (b'{"count":3,"empty":"","blank":" \\n","inner":[{"key": "said \\"hi\\""}]}', 'said "hi"'),
        (b'{"text":"%b"}' % (b"x" * 200), "x" * 120),
        (b'{"text":"%b"}' % ("ü" * 200).encode(), "ü" * 120),
        (b'{"count":3}', None),
        (b'["first","second"]', "first"),
        (b'{"a:b":{"c":1}}', None),
        (b"", None),
        (None, None),
    ],
)
def test_a_thread_is_called_by_its_first_text_that_is_not_blank(payload: bytes | None, called: str | None) -> None:
    assert title(payload) == called


async def test_a_thread_has_a_title_until_its_contents_are_erased(hello: Served) -> None:
    async with hello.socket() as socket:
        frames = Frames(socket)
        thread = (await hello.inject())["thread_id"]
        created = (await frames.until("thread_created"))[-1]["thread"]
        assert (created["title"], created["waiting_for_people"], created["forked_from"]) == ("Dan", NOTHING, None)
    (listed,) = (await hello.get("/threads"))["threads"]
    assert listed["title"] == "Dan"
    before = hello.log.head
    await hello.log.erase(thread, hello.log.last_at)
    for at in ("", f"?at={before}"):
        assert (await hello.get(f"/threads/{thread}{at}"))["title"] is None
    async with hello.socket("?since=0") as socket:
        (*_, created) = await Frames(socket).until("thread_created")
        assert created["thread"]["title"] is None


async def test_a_thread_says_when_it_ended_while_it_has_ended(hello: Served) -> None:
    await hello.call("POST", "/agents/shouter/pause")
    thread = (await hello.inject(wait=None))["thread_id"]
    active = hello.log.head
    assert (await hello.get(f"/threads/{thread}"))["ended_at"] is None
    killed = (await hello.call("POST", f"/threads/{thread}/kill")).json()
    assert killed["ended_at"] == killed["last_activity"]
    assert (await hello.get(f"/threads/{thread}?at={active}"))["ended_at"] is None


async def test_an_ended_thread_that_is_killed_or_goes_on(hello: Served) -> None:
    thread = (await hello.inject())["thread_id"]
    ended = (await hello.get(f"/threads/{thread}"))["ended_at"]
    await hello.call("POST", "/agents/shouter/pause")
    await hello.inject(thread_id=thread, wait=None)
    assert (await hello.get(f"/threads/{thread}"))["ended_at"] is None
    await hello.call("POST", "/agents/shouter/resume")
    assert await hello.organism.tenants["default"].ended(thread, 10)
    again = (await hello.get(f"/threads/{thread}"))["ended_at"]
    assert again > ended
    assert (await hello.call("POST", f"/threads/{thread}/kill")).json()["ended_at"] == again


async def test_a_paused_thread_says_who_paused_it_and_when(hello: Served) -> None:
    await hello.call("POST", "/agents/shouter/pause")
    thread = (await hello.inject(wait=None))["thread_id"]
    paused = (await hello.call("POST", f"/threads/{thread}/pause")).json()
    assert paused["paused_by"] == {"principal": "operator", "user": None, "reason": None}
    assert paused["paused_at"] == paused["last_activity"]
    for act in ("resume", "pause", "kill"):
        after = (await hello.call("POST", f"/threads/{thread}/{act}")).json()
        assert (after["paused_by"] is not None, after["paused_at"] is not None) == (act == "pause", act == "pause")
    then = await hello.get(f"/threads/{thread}?at={paused['position']}")
    assert (then["paused_by"], then["paused_at"]) == (paused["paused_by"], paused["paused_at"])


async def listed(server: Served, query: str) -> dict[str, dict[str, Any]]:
    """The threads that a query finds, by what they are called."""
    found = await server.get(f"/threads?{query}")
    assert found["count"] == found["total"] == len(found["threads"])
    return {row["title"]: row for row in found["threads"]}


async def test_a_thread_counts_what_of_it_waits_for_a_person(world: MakeWorld) -> None:
    async with served(asker(world).config) as server, server.socket() as socket:
        frames = Frames(socket)
        for text, opened in (("bad", "dead_letter"), ("ask", "approval"), ("pay", "indeterminate"), ("fine", "")):
            await server.inject("asker", {"text": text}, wait=None if opened else 10)
            if opened:
                await frames.until(opened)
        all_open = server.log.head
        waiting = await listed(server, "waiting=true")
        assert {name: row["waiting_for_people"] for name, row in waiting.items()} == {
            "bad": NOTHING | {"dead_letters": 1},
            "ask": NOTHING | {"approvals": 1},
            "pay": NOTHING | {"indeterminate": 1},
        }
        assert (await listed(server, "waiting=false"))["fine"]["waiting_for_people"] == NOTHING
        assert list(await listed(server, "waiting=true&status=error")) == ["bad"]
        approval = (await server.get("/approvals"))["approvals"][0]["id"]
        (effect,) = (await server.get("/indeterminate"))["indeterminate"]
        await server.call("POST", f"/approvals/{approval}/resolve", json={"decision": "approve"})
        await server.call("POST", f"/indeterminate/{effect['id']}/resolve", json={"outcome": "fail"})
        thread = waiting["bad"]["id"]
        discarded = (await server.call("POST", f"/threads/{thread}/dead-letters/discard")).json()
        assert discarded["waiting_for_people"] == NOTHING
        assert (await server.get(f"/threads/{thread}?at={all_open}"))["waiting_for_people"]["dead_letters"] == 1
        assert await listed(server, f"waiting=true&at={all_open}") == waiting


@pytest.mark.parametrize("value", ["", "maybe", "1"])
async def test_what_waits_is_true_or_false(hello: Served, value: str) -> None:
    answer = await hello.call("GET", f"/threads?waiting={value}")
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "query.waiting")
