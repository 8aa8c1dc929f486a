"""``?handlings=true``: what has become of a message, attempt by attempt, now and at any position."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from organism.views.handlings import ATTEMPT_EVENTS
from tests.flows.world import MakeWorld, World
from tests.server.served import Frames, Served, served

SOURCE = """
FAILED = set()

async def flaky(payload: Ask, metadata: HandlerMetadata):
    if payload.text not in FAILED:
        FAILED.add(payload.text)
        raise ValueError("not yet")
    return HandlerResponse.respond(Told("done"))

async def bad(payload: Ask, metadata: HandlerMetadata):
    raise KeyError(payload.text)

async def slow(payload: Ask, metadata: HandlerMetadata):
    await gate("slow")
"""
NOTHING = {"ended_at": None, "duration_ms": None, "outcome": None, "error": None, "line": None}


def failing(world: MakeWorld) -> World:
    """Listeners that fail once, that fail always, and one that waits."""
    return world(
        SOURCE, {"flaky": {}, "bad": {}, "slow": {"max_concurrent": 1}}, retry={"attempts": 2, "base_delay_s": 0}
    )


async def handling(server: Served, sent: dict[str, Any], at: int | None = None) -> dict[str, Any]:
    """What has become of the message that was injected."""
    then = "" if at is None else f"&at={at}"
    found: dict[str, Any] = (await server.get(f"/messages/{sent['message_id']}?handlings=true{then}"))["handling"]
    return found


async def test_each_attempt_says_how_it_ended_and_where_it_failed(world: MakeWorld) -> None:
    async with served(failing(world).config) as server:
        sent = await server.inject("flaky", {"text": "x"})
        done = await handling(server, sent)
        assert done["state"] == "done"
        first, second = done["attempts"]
        assert (first["attempt"], first["outcome"], first["error"]) == (1, "retried", "ValueError: not yet")
        assert first["line"]["code"] == 'raise ValueError("not yet")'
        assert (second["attempt"], second["outcome"], second["error"], second["line"]) == (2, "done", None, None)
        for attempt in done["attempts"]:
            assert attempt["started_at"] <= attempt["ended_at"] <= (second["ended_at"])
            assert attempt["duration_ms"] >= 0
        failed = await handling(server, await server.inject("bad", {"text": "x"}))
        assert (failed["state"], [each["outcome"] for each in failed["attempts"]]) == ("failed", ["retried", "failed"])


async def test_what_has_become_of_a_message_at_any_position(world: MakeWorld) -> None:
    async with served(failing(world).config) as server:
        await server.call("POST", "/agents/flaky/pause")
        sent = await server.inject("flaky", {"text": "x"}, wait=None)
        assert await handling(server, sent) == {"state": "queued", "attempts": []}
        await server.call("POST", "/agents/flaky/resume")
        assert await server.organism.tenants["default"].ended(sent["thread_id"], 10)
        log = (await server.get(f"/log?thread={sent['thread_id']}&limit=500"))["events"]
        mine = {kind.event_type for kind in ATTEMPT_EVENTS}
        steps = [e for e in log if e["type"] in mine and e["data"]["message"] == sent["message_id"]]
        states = [await handling(server, sent, event["position"]) for event in steps]
        assert [state["state"] for state in states] == ["running", "retrying", "running", "done"]
        started = {"attempt": 1, "started_at": steps[0]["at"], **NOTHING}
        assert (states[0]["attempts"], len(states[2]["attempts"])) == ([started], 2)


async def test_what_was_killed_or_runs_still(world: MakeWorld) -> None:
    async with served(failing(world).config) as server, server.socket() as socket:
        sent = [await server.inject("slow", {"text": "x"}, wait=None) for _ in range(2)]
        await Frames(socket).until("agent_state", agent="slow", open_handlings=1, queue_depth=1)
        assert [(await handling(server, each))["state"] for each in sent] == ["running", "queued"]
        for each in sent:
            await server.call("POST", f"/threads/{each['thread_id']}/kill")
        assert [(await handling(server, each))["state"] for each in sent] == ["killed", "killed"]
        assert [each["outcome"] for each in (await handling(server, sent[0]))["attempts"]] == ["killed"]


def messages_in(answer: Any) -> Iterator[dict[str, Any]]:
    """The messages of any answer."""
    yield from answer.get("messages", [answer])


async def test_wherever_messages_are_shown_they_say_what_has_become_of_them(hello: Served) -> None:
    sent = await hello.inject()
    thread, message = sent["thread_id"], sent["message_id"]
    paths = ("/messages", f"/threads/{thread}/messages", f"/threads/{thread}", f"/messages/{message}/why")
    for path in (*paths, f"/messages/{message}"):
        for row in messages_in(await hello.get(f"{path}?handlings=true&xml=true&payloads=0")):
            assert (row["handling"]["state"], row["payload"], "<" in row["xml"]) == ("done", None, True), path
            assert len(row["handling"]["attempts"]) == (row["to"] != "console")
        assert not any("handling" in row for row in messages_in(await hello.get(path)))


@pytest.mark.parametrize("query", ["handlings=maybe", "at=then", "at=99999999"])
async def test_what_is_wrong_is_named(hello: Served, query: str) -> None:
    message = (await hello.inject())["message_id"]
    answer = await hello.call("GET", f"/messages/{message}?{query}")
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, f"query.{query.partition('=')[0]}")
