"""Each example of the seed's API specification (002), against a running server: its names, its shapes, its values.

What the seed shows is there to the letter; what came later stands beside it, never in its place.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.flows.world import MakeWorld
from tests.server.served import LISTENERS, Frames, Served, served

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
PARTICIPANTS = ["console", "greeter", "shouter", "response-handler"]


def begins_with(shown: dict[str, Any], *names: str) -> bool:
    """Whether the seed's fields are there, in the seed's order, before what came later."""
    return tuple(shown)[: len(names)] == names


async def test_an_agent_has_the_fields_of_the_seed(hello: Served) -> None:
    await hello.inject()
    agent = await hello.get("/agents/greeter")
    assert begins_with(
        agent, "name", "description", "is_agent", "peers", "payload_class", "state", "current_thread", "queue_depth",
        "last_activity",
    )  # fmt: skip
    assert TIME.fullmatch(agent["last_activity"])
    assert {name: agent[name] for name in tuple(agent)[:8]} == {
        "name": "greeter",
        "description": "Greeting agent - forwards to shouter",
        "is_agent": True,
        "peers": ["shouter"],
        "payload_class": "handlers.hello.Greeting",
        "state": "idle",
        "current_thread": None,
        "queue_depth": 0,
    }


async def test_a_message_has_the_fields_of_the_seed(hello: Served) -> None:
    said = await hello.inject()
    message = (await hello.get(f"/threads/{said['thread_id']}/messages"))["messages"][1]
    assert TIME.fullmatch(message.pop("timestamp"))
    assert (message.pop("id")[:4], message.pop("thread_id")) == ("msg-", said["thread_id"])
    assert {name: message[name] for name in ("from", "to", "payload_type", "payload")} == {
        "from": "greeter",
        "to": "shouter",
        "payload_type": "GreetingResponse",
        "payload": {"message": "Hello, Dan!", "original_sender": "console"},
    }


async def test_a_thread_has_the_fields_of_the_seed(hello: Served) -> None:
    said = await hello.inject()
    thread = await hello.get(f"/threads/{said['thread_id']}")
    assert TIME.fullmatch(thread["created_at"])
    assert TIME.fullmatch(thread["last_activity"])
    assert {name: thread[name] for name in ("id", "status", "participants", "message_count", "error")} == {
        "id": said["thread_id"],
        "status": "completed",
        "participants": PARTICIPANTS,
        "message_count": 4,
        "error": None,
    }
    assert [message["from"] for message in thread["messages"]] == PARTICIPANTS


async def test_the_organism_has_the_fields_of_the_seed(hello: Served) -> None:
    await hello.inject()
    organism = await hello.get("/organism")
    assert isinstance(organism["uptime_seconds"], int)
    assert {name: organism[name] for name in ("name", "status", "agent_count", "active_threads", "total_messages")} == {
        "name": "hello-world",
        "status": "running",
        "agent_count": len(LISTENERS),
        "active_threads": 0,
        "total_messages": 4,
    }


QUERIES = [
    "/organism",
    "/organism/config",
    "/agents",
    "/agents/greeter",
    "/agents/greeter/config",
    "/agents/greeter/schema",
    "/threads",
    "/threads/{thread}",
    "/threads/{thread}/messages",
    "/messages",
]


@pytest.mark.parametrize("path", QUERIES)
async def test_each_query_is_answered(hello: Served, path: str) -> None:
    thread = (await hello.inject())["thread_id"]
    answer = await hello.call("GET", path.format(thread=thread))
    assert answer.status_code == 200
    assert answer.content


@pytest.mark.parametrize(
    ("path", "total"),
    [
        ("/threads?limit=50", 2),
        ("/threads?offset=0", 2),
        ("/threads?status=active", 1),
        ("/threads?agent=greeter", 2),
        ("/threads?since=2024-01-15T10:00:00Z", 2),
        ("/messages?agent=greeter", 3),
        ("/messages?since=2024-01-15T10:00:00Z", 5),
        ("/agents?limit=50", len(LISTENERS)),
    ],
)
async def test_each_parameter_of_lists(hello: Served, path: str, total: int) -> None:
    await hello.inject()
    await hello.call("POST", "/organism/pause")
    await hello.inject(wait=None)
    assert (await hello.get(path))["total"] == total


async def test_each_control_is_carried_out(hello: Served) -> None:
    thread = (await hello.inject())["thread_id"]
    for path in (
        f"/threads/{thread}/kill",
        "/agents/greeter/pause",
        "/agents/greeter/resume",
        "/organism/reload",
    ):
        assert (path, (await hello.call("POST", path)).status_code) == (path, 200)
    assert (await hello.call("POST", "/organism/stop")).status_code == 202


async def test_an_injection_is_answered_with_its_ids(hello: Served) -> None:
    first = await hello.call("POST", "/inject", json={"to": "greeter", "payload": {"name": "Dan"}})
    assert tuple(first.json())[:2] == ("thread_id", "message_id")
    into = {"to": "greeter", "payload": {"name": "Dan"}, "thread_id": first.json()["thread_id"]}
    second = await hello.call("POST", "/inject", json=into)
    assert second.json()["thread_id"] == first.json()["thread_id"]
    assert second.json()["message_id"] != first.json()["message_id"]


async def test_the_socket_first_says_how_everything_stands(hello: Served) -> None:
    async with hello.socket() as socket:
        connected = await Frames(socket).next()
    assert connected["event"] == "connected"
    assert connected["organism"]["name"] == "hello-world"
    assert [agent["name"] for agent in connected["agents"]] == LISTENERS
    assert connected["threads"] == []


async def test_each_event_of_a_hop(hello: Served) -> None:
    async with hello.socket() as socket:
        frames = Frames(socket)
        await frames.next()
        thread = (await hello.inject())["thread_id"]
        seen = await frames.until("thread_updated", status="completed")
        await hello.call("POST", "/agents/greeter/pause")
        seen += await frames.until("agent_state", agent="greeter", state="paused")
    by_name = {frame["event"]: frame for frame in reversed(seen)}
    created = by_name["thread_created"]["thread"]
    assert {name: created[name] for name in ("id", "status", "participants")} == {
        "id": thread,
        "status": "active",
        "participants": ["console", "greeter"],
    }
    assert TIME.fullmatch(created["created_at"])
    first = by_name["message"]["message"]
    assert {"id", "thread_id", "from", "to", "payload_type", "payload", "timestamp"} <= set(first)
    updated = next(frame for frame in seen if frame.get("status") == "completed")
    assert (updated["thread_id"], updated["status"], updated["message_count"]) == (thread, "completed", 4)
    assert {"agent", "state", "current_thread"} <= set(by_name["agent_state"])


async def test_an_error_event(world: MakeWorld) -> None:
    made = world("async def fails(payload: Ask, metadata):\n    raise ValueError('no')\n", {"fails": {}})
    async with served(made.config) as server, server.socket() as socket:
        thread = (await server.inject("fails", {"text": ""}, wait=None))["thread_id"]
        (*_, error) = await Frames(socket).until("error")
    assert (error["thread_id"], error["agent"], error["error"]) == (thread, "fails", "ValueError: no")
    assert TIME.fullmatch(error["timestamp"])


async def test_the_commands_of_a_client(hello: Served) -> None:
    async with hello.socket() as socket:
        frames = Frames(socket)
        listed = {"threads": ["thread-uuid"], "agents": ["greeter", "shouter"], "events": ["message", "agent_state"]}
        subscribed = await frames.ask("subscribe", **listed)
        injected = await frames.ask("inject", to="greeter", payload={"name": "Dan"})
    assert subscribed["event"] == "subscribed"
    assert injected["event"] == "injected"
    assert {"thread_id", "message_id"} <= set(injected)


@pytest.mark.parametrize("header", [{"X-API-Key": "org_for_tests"}, {"Authorization": "Bearer org_for_tests"}])
async def test_each_way_to_authenticate(hello: Served, header: dict[str, str]) -> None:
    answer = await hello.client.get("/api/v1/organism", headers=header)
    assert answer.status_code == 200
    async with hello.socket(headers=header) as socket:
        assert (await Frames(socket).next())["event"] == "connected"


async def test_a_socket_authenticates_by_its_first_message(hello: Served) -> None:
    async with hello.socket(headers={}) as socket:
        await socket.send('{"cmd":"auth","token":"org_for_tests"}')
        await Frames(socket).until("connected")
