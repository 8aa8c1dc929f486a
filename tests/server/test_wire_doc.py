"""The examples of docs/wire.md are run, in their order, and what comes is what they say."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import orjson
import pytest

from organism.server.http.connections import NOT_ALLOWED, NOT_AUTHENTICATED
from organism.server.push.frames import FRAMES
from organism.server.ws.commands import COMMANDS
from organism.server.ws.socket import POLICY, RESTART
from tests.server.served import LISTENERS, Frames, Served

DOC = Path(__file__).parents[2] / "docs" / "wire.md"
EXAMPLE = re.compile(r"^(GET|POST|DELETE) (/\S+)(?: (\{.*\}))?\n(\d{3}) (\{.*\})$", re.MULTILINE)


def fits(said: Any, came: Any) -> bool:
    """Whether it is as the example says: ``…`` is any text or value, and more at the end of a list or an object."""
    if said == "…" or (isinstance(said, str) and isinstance(came, str) and re.fullmatch(pattern(said), came)):
        return True
    if isinstance(said, dict) and isinstance(came, dict):
        named = said.keys() - {"…"}
        return (named == came.keys() or ("…" in said and named < came.keys())) and all(
            fits(said[name], came[name]) for name in named
        )
    if isinstance(said, list) and isinstance(came, list):
        first = said[:-1] if said[-1:] == ["…"] else said
        return (len(first) == len(came) or len(first) < min(len(said), len(came))) and all(map(fits, first, came))
    return bool(said == came)


def pattern(said: str) -> str:
    """The text as a pattern."""
    return ".*".join(map(re.escape, said.split("…")))


def parsed(said: str) -> Any:
    """The example's JSON; a bare ``…`` is a value like any other."""
    return orjson.loads(re.sub(r"(?<=[:\[,])…(?=[,\]}])", '"…"', said))


async def test_each_example_of_the_wire_is_answered_as_it_says(hello: Served) -> None:
    examples = EXAMPLE.findall(DOC.read_text())
    assert len(examples) > 10
    ids = {"THREAD": "THREAD", "MESSAGE": "MESSAGE"}
    for method, path, body, status, said in examples:
        for name, value in ids.items():
            path, body, said = (text.replace(name, value) for text in (path, body, said))  # noqa: PLW2901 - filled in
        answer = await hello.client.request(
            method, path, headers=hello.bearer | {"Content-Type": "application/json"}, content=body or None
        )
        assert (path, answer.status_code) == (path, int(status))
        assert fits(parsed(said), answer.json()), (path, answer.text)
        if ids["THREAD"] == "THREAD":
            ids = {"THREAD": answer.json()["thread_id"], "MESSAGE": answer.json()["message_id"]}
        await hello.organism.tenants["default"].ended(answer.json().get("thread_id", ""), 10)


PAGE = (Path(__file__).parents[2] / "docs" / "wire.md").read_text("utf-8")
SECTION = PAGE.partition("the WebSocket `/ws`\n")[2].partition("\n## ")[0]
WORD = re.compile(r"[a-z_]+")


def rows(heading: str) -> dict[str, str]:
    """A table of the section: what stands in the first column, and in the second."""
    table = SECTION.partition(f"| {heading} |")[2].partition("\n\n")[0]
    cells = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return {name: row[1] for row in cells for name in WORD.findall(row[0]) + re.findall(r"\d{4}", row[0])}


def test_every_frame_is_documented_and_no_other() -> None:
    assert rows("`event`").keys() == FRAMES


def test_every_command_is_documented_with_each_of_its_fields() -> None:
    shown = rows("command")
    assert shown.keys() == COMMANDS.keys()
    for name, kind in COMMANDS.items():
        missing = [field.name for field in dataclasses.fields(kind.body) if f"`{field.name}" not in shown[name]]
        assert [field for field in missing if not re.search(rf"\b{field}\b", shown[name])] == []


def test_every_close_code_is_documented() -> None:
    assert rows("closed with").keys() >= {str(code) for code in (NOT_AUTHENTICATED, NOT_ALLOWED, POLICY, RESTART)}


async def test_frames_have_the_fields_that_are_documented(hello: Served) -> None:
    shown = {name: set(WORD.findall(text)) for name, text in rows("`event`").items()}
    async with hello.socket() as socket:
        frames = Frames(socket)
        await frames.until("connected")
        await hello.inject()
        for frame in await frames.until("thread_updated"):
            assert frame.keys() - {"event", "position"} <= shown[frame["event"]]
            assert frame.get("message", {}).keys() <= shown["message"]


PUSHED = re.compile(r"^/ws\?events=(\S+)\n((?:\{.*\}\n)+)", re.MULTILINE)
INGEST = {"documents": [{"id": "d1", "text": "Der Tiergarten ist der größte Park Berlins."}]}


@pytest.mark.parametrize(("name", "examples"), PUSHED.findall(SECTION))
async def test_frames_that_are_asked_for_come_as_the_example_says(hello: Served, name: str, examples: str) -> None:
    async with hello.socket(f"?events={name}") as socket:
        frames = Frames(socket)
        await frames.until("connected")
        if name == "library":
            user = {"SPASS-User-Id": "dan"}
            path = "//a1/rag/indices/berlin-info/documents?wait=false"
            await hello.call("POST", path, json=INGEST, headers=user)
        else:
            await hello.inject()
        for line in examples.splitlines():
            frame = await frames.next()
            assert fits(parsed(line), frame), frame


TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
PARTICIPANTS = ["console", "greeter", "shouter", "response-handler"]


async def test_objects_have_the_documented_fields_and_values(hello: Served) -> None:
    injected = await hello.inject()
    agent = await hello.get("/agents/greeter")
    thread = await hello.get(f"/threads/{injected['thread_id']}")
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
    assert (message["id"][:4], message["thread_id"]) == ("msg-", injected["thread_id"])
    assert {name: message[name] for name in ("from", "to", "payload_type", "payload")} == {
        "from": "greeter",
        "to": "shouter",
        "payload_type": "GreetingResponse",
        "payload": {"message": "Hello, Dan!", "original_sender": "console"},
    }
    assert {name: thread[name] for name in ("id", "status", "participants", "message_count", "error")} == {
        "id": injected["thread_id"],
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
