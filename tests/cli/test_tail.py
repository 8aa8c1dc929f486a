"""Frames as lines for people."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from organism.cli.client import Server
from organism.cli.options import Tail
from organism.cli.tail import Watch, shown

MESSAGE = {"from": "a", "to": "b", "payload_type": "Told", "payload": {"text": "[bold]x"}}
HANDLING = {"event": "handling", "position": 8, "agent": "a", "message_id": "m", "attempt": 1, "after": ""}
STEP = {"event": "step", "position": 9, "agent": "a", "message_id": "m", "step": 2, "error": None}
OPERATOR = {"principal": "operator", "user": None, "reason": None}
ASKED = {"id": "q", "status": "pending", "preview": {"a": "\u202e"}, "expires_at": "2026-01-11T22:47:57.000042Z"}


@pytest.mark.parametrize(
    ("frame", "line"),
    [
        ({"event": "message", "position": 7, "message": MESSAGE}, '       7 a → b Told {"text":"[bold]x"}'),
        (
            {"event": "thread_created", "position": 1, "thread": {"id": "t", "status": "active"}},
            "       1 thread t active",
        ),
        (
            {"event": "thread_updated", "position": 2, "thread_id": "t", "status": "active", "paused": True},
            "       2 thread t active (paused)",
        ),
        ({"event": "agent_state", "agent": "a", "state": "idle"}, "         agent a idle"),
        ({"event": "error", "position": 3, "agent": "a", "error": "no"}, "       3 a failed: no"),
        ({"event": "error", "position": 3, "agent": "a", "error": "no\n  4 b"}, "       3 a failed: no   4 b"),
        (
            {"event": "dead_letter", "position": 4, "status": "discarded", "dead_letter": {"id": "m"}},
            "       4 dead letter discarded m",
        ),
        (
            {"event": "organism_state", "position": 5, "status": "paused", "by": OPERATOR},
            "       5 organism paused by operator",
        ),
        (
            {
                "event": "thread_updated",
                "position": 5,
                "thread_id": "t",
                "status": "active",
                "paused": True,
                "by": {"principal": None, "user": None, "reason": "failures"},
            },
            "       5 thread t active (paused): failures",
        ),
        ({**HANDLING, "phase": "started"}, "       8 a started m"),
        (
            {**HANDLING, "phase": "started", "attempt": 2, "after": "death"},
            "       8 a started, attempt 2 after a death m",
        ),
        ({**HANDLING, "phase": "ended", "outcome": "done", "duration_ms": 85.25}, "       8 a done in 85.2 ms m"),
        ({**HANDLING, "phase": "ended", "outcome": "killed", "duration_ms": 15_189}, "       8 a killed in 15.2 s m"),
        ({**STEP, "kind": "ask", "to": "b", "phase": "started"}, "       9 a ask b started m:2"),
        (
            {**STEP, "kind": "ask", "to": "b", "phase": "ended", "error": {"code": "timeout", "message": "Late."}},
            "       9 a ask b ended timeout: Late. m:2",
        ),
        (
            {**STEP, "kind": "effect", "key": "pay", "effect": "unsafe", "phase": "ended"},
            "       9 a effect pay ended m:2",
        ),
        ({**STEP, "kind": "approve", "approval": None, "phase": "started"}, "       9 a approve started m:2"),
        (
            {
                "event": "usage",
                "position": 9,
                "agent": "a",
                "model": "x",
                "input_tokens": 3,
                "output_tokens": 4,
                "cost_usd": "0.1",
                "error": None,
                "duration_ms": 1,
            },
            "       9 a called x in 1.0 ms: 3 tokens in, 4 out, 0.1 USD",
        ),
        (
            {"event": "rates", "seconds": 1, "agents": {"a": {"handled": 3, "failed": 0}}, "edges": []},
            '         rates {"seconds":1,"agents":{"a":{"handled":3,"failed":0}},"edges":[]}',
        ),
        ({"event": "approval", "position": 5, "approval": ASKED}, '       5 approval q pending {"a":"⟨U+202E⟩"}'),
        (
            {"event": "approval", "position": 5, "approval": {"id": "q", "status": "approved"}},
            "       5 approval q approved",
        ),
        (
            {"event": "indeterminate", "position": 5, "indeterminate": {"id": "m:1", "status": "open"}},
            "       5 effect in doubt m:1 open",
        ),
        ({**HANDLING, "phase": "ended", "outcome": "unread", "duration_ms": None}, "       8 a unread m"),
        (
            {"event": "agent_updated", "position": 6, "agent": "a", "paused": False, "by": OPERATOR},
            "       6 agent a resumed by operator",
        ),
        (
            {
                "event": "reload",
                "position": 6,
                "added": ["a", "b"],
                "removed": [],
                "updated": ["c"],
                "agents": [{"name": "a", "description": "A"}],
            },
            "       6 reload added: a, b; updated: c",
        ),
        ({"event": "caught_up", "position": 6}, "       6 up to date"),
        (
            {"event": "run", "position": 7, "agent": "a", "type": "message", "data": {"text": "\x1b[2Jx"}},
            '       7 a message {"text":"\\u001b[2Jx"}',
        ),
    ],
)
def test_a_frame_is_one_line(frame: dict[str, Any], line: str) -> None:
    text = shown(frame)
    assert text is not None
    assert text.plain == line


@pytest.mark.parametrize(
    "frame",
    [
        {"event": "checkpoint", "position": 9},
        {"event": "run", "agent": "a", "type": "message_delta", "data": {"id": "m", "delta": "x"}},
    ],
)
def test_frames_without_news_for_people_are_not_shown(frame: dict[str, Any]) -> None:
    assert shown(frame) is None


def test_a_reconnection_resumes_by_position_and_log() -> None:
    watch = Watch(Tail(), Server("https://host:9000", "", Path("data"), None), None)
    assert watch.url == "wss://host:9000/ws"
    watch.position = 7
    assert watch.url == "wss://host:9000/ws?since=7"
    watch.log = "9f"
    assert watch.url == "wss://host:9000/ws?since=7&log=9f"
