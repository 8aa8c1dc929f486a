"""The objects and events of the API have the documented fields and values."""

from __future__ import annotations

import re

from tests.flows.world import MakeWorld
from tests.server.served import LISTENERS, Frames, Served, served

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
PARTICIPANTS = ["console", "greeter", "shouter", "response-handler"]


async def test_objects_have_the_documented_fields_and_values(hello: Served) -> None:
    said = await hello.inject()
    agent = await hello.get("/agents/greeter")
    thread = await hello.get(f"/threads/{said['thread_id']}")
    message = thread["messages"][1]
    organism = await hello.get("/organism")
    assert all(TIME.fullmatch(time) for time in (agent["last_activity"], message["timestamp"], thread["created_at"]))
    assert list(agent.items())[:8] == [
        ("name", "greeter"),
        ("description", "Greeting agent - forwards to shouter"),
        ("is_agent", True),
        ("peers", ["shouter"]),
        ("payload_class", "handlers.hello.Greeting"),
        ("state", "idle"),
        ("current_thread", None),
        ("queue_depth", 0),
    ]
    assert (message["id"][:4], message["thread_id"]) == ("msg-", said["thread_id"])
    assert {name: message[name] for name in ("from", "to", "payload_type", "payload")} == {
        "from": "greeter",
        "to": "shouter",
        "payload_type": "GreetingResponse",
        "payload": {"message": "Hello, Dan!", "original_sender": "console"},
    }
    assert {name: thread[name] for name in ("id", "status", "participants", "message_count", "error")} == {
        "id": said["thread_id"],
        "status": "completed",
        "participants": PARTICIPANTS,
        "message_count": 4,
        "error": None,
    }
    assert {name: organism[name] for name in ("name", "status", "agent_count", "active_threads", "total_messages")} == {
        "name": "hello-world",
        "status": "running",
        "agent_count": len(LISTENERS),
        "active_threads": 0,
        "total_messages": 4,
    }


async def test_events_have_the_documented_fields(hello: Served) -> None:
    async with hello.socket() as socket:
        frames = Frames(socket)
        connected = await frames.next()
        thread = (await hello.inject())["thread_id"]
        seen = await frames.until("thread_updated", status="completed")
        await hello.call("POST", "/agents/greeter/pause")
        seen += await frames.until("agent_state", agent="greeter", state="paused")
    assert (connected["event"], connected["organism"]["name"], connected["threads"]) == ("connected", "hello-world", [])
    assert [agent["name"] for agent in connected["agents"]] == LISTENERS
    by_name = {frame["event"]: frame for frame in reversed(seen)}
    created = by_name["thread_created"]["thread"]
    assert TIME.fullmatch(created["created_at"])
    assert {name: created[name] for name in ("id", "status", "participants")} == {
        "id": thread,
        "status": "active",
        "participants": ["console", "greeter"],
    }
    first = by_name["message"]["message"]
    assert {"id", "thread_id", "from", "to", "payload_type", "payload", "timestamp"} <= set(first)
    updated = next(frame for frame in seen if frame.get("status") == "completed")
    assert (updated["thread_id"], updated["status"], updated["message_count"]) == (thread, "completed", 4)
    assert {"agent", "state", "current_thread"} <= set(by_name["agent_state"])


async def test_an_error_event_has_the_documented_fields(world: MakeWorld) -> None:
    made = world("async def fails(payload: Ask, metadata):\n    raise ValueError('no')\n", {"fails": {}})
    async with served(made.config) as server, server.socket() as socket:
        thread = (await server.inject("fails", {"text": ""}, wait=None))["thread_id"]
        (*_, error) = await Frames(socket).until("error")
    assert (error["thread_id"], error["agent"], error["error"]) == (thread, "fails", "ValueError: no")
    assert TIME.fullmatch(error["timestamp"])
