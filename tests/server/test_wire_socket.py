"""The WebSocket's page of docs/wire.md against what there is: frames with their fields, commands with theirs."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import orjson

from organism.model.events import Content
from organism.server.commands import BODIES
from organism.server.connections import NOT_ALLOWED, NOT_AUTHENTICATED
from organism.server.frames import FRAMES, Folded
from organism.server.socket import POLICY, RESTART
from organism.server.wire import unframed
from tests.projections.folding import Story
from tests.server.served import Frames, Served

PAGE = (Path(__file__).parents[2] / "docs" / "wire.md").read_text("utf-8")
SECTION = PAGE.partition("the WebSocket `/ws`\n")[2].partition("\n## ")[0]
WORD = re.compile(r"[a-z_]+")


def rows(heading: str) -> dict[str, str]:
    """A table of the section: what stands in the first column, and in the second."""
    table = SECTION.partition(f"| {heading} |")[2].partition("\n\n")[0]
    cells = [line.split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return {name: row[1] for row in cells for name in WORD.findall(row[0]) + re.findall(r"\d{4}", row[0])}


def test_every_frame_is_told_and_no_other() -> None:
    assert rows("`event`").keys() == FRAMES


def test_every_command_is_told_with_each_of_its_fields() -> None:
    told = rows("command")
    assert told.keys() == BODIES.keys()
    for name, body in BODIES.items():
        missing = [field.name for field in dataclasses.fields(body) if f"`{field.name}" not in told[name]]
        assert [field for field in missing if not re.search(rf"\b{field}\b", told[name])] == []


def test_every_close_code_is_told() -> None:
    assert rows("closed with").keys() >= {str(code) for code in (NOT_AUTHENTICATED, NOT_ALLOWED, POLICY, RESTART)}


async def test_frames_have_the_fields_that_are_told(hello: Served) -> None:
    told = {name: set(WORD.findall(text)) for name, text in rows("`event`").items()}
    async with hello.socket() as socket:
        frames = Frames(socket)
        await frames.until("connected")
        await hello.inject()
        for frame in await frames.until("thread_updated"):
            assert frame.keys() - {"event", "position"} <= told[frame["event"]]
            assert frame.get("message", {}).keys() <= told["message"]


def test_a_failed_attempt_has_the_fields_that_are_told() -> None:
    story = Story()
    failed = {"message": "m", "agent": "a", "attempt": 1, "error": "no", "next_at": 0}
    story.tell("message_retried", "t", **failed).content = Content("t", b"{}")
    (frame,) = Folded(0).frames(story.events)
    assert orjson.loads(unframed(frame.wire)).keys() - {"event", "position"} <= set(
        WORD.findall(rows("`event`")["error"])
    )
