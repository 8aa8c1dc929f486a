"""The threads."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from organism.log.log import Row
from organism.model.events import Event
from organism.model.times import iso
from organism.projections import threads
from tests.projections.folding import Story, fold
from tests.projections.moves import lawful_logs

STATUS = {
    "thread_created": "active",
    "thread_reopened": "active",
    "thread_completed": "completed",
    "thread_failed": "error",
    "thread_killed": "killed",
}


def after(*kinds: str, **more: Any) -> Row:
    story = Story()
    story.tell("thread_created", "t")
    for kind in kinds:
        story.tell(kind, "t", **more)
    return story.rows("threads")["t"]


def test_a_thread_has_the_fields_of_the_api_in_their_order() -> None:
    assert list(after().items()) == [
        ("id", "t"),
        ("status", "active"),
        ("paused", False),
        ("participants", []),
        ("message_count", 0),
        ("created_at", "2026-01-11T21:47:48.000000Z"),
        ("last_activity", "2026-01-11T21:47:48.000000Z"),
        ("error", None),
        ("session_id", None),
        ("tokens", 0),
        ("cost_usd", "0"),
        ("position", 1),
    ]


def test_a_thread_of_a_session_names_it() -> None:
    story = Story()
    story.tell("thread_created", "t", session="s")
    assert story.rows("threads")["t"]["session_id"] == "s"


def test_participants_stand_in_the_order_of_their_first_message_the_sender_first() -> None:
    story = Story()
    story.tell("thread_created", "t")
    story.sends("m1", "b", "console")
    story.sends("m2", "a", "b")
    story.sends("m3", "a", "a")
    story.sends("m4", "c", "d")
    story.sends("m5", "a", "e")
    row = story.rows("threads")["t"]
    assert (row["participants"], row["message_count"]) == (["console", "b", "a", "d", "c", "e"], 5)


def test_a_failed_thread_says_why_until_it_is_reopened() -> None:
    failed = after("thread_failed", reason="greeter: boom")
    reopened = after("thread_failed", "thread_reopened", reason="greeter: boom")
    assert (failed["status"], failed["error"]) == ("error", "greeter: boom")
    assert (reopened["status"], reopened["error"]) == ("active", None)


def test_a_kill_ends_as_killed_whatever_the_thread_was() -> None:
    for before in ((), ("thread_paused",), ("thread_completed",), ("thread_failed",)):
        row = after(*before, "thread_killed", reason="boom")
        assert (row["status"], row["error"], row["paused"]) == ("killed", None, False)


def recount(thread: str, events: list[Event]) -> Row:
    mine = [event for event in events if event.thread == thread]
    sends = [event for event in mine if event.type == "message_sent"]
    statuses = [event for event in mine if event.type in STATUS]
    pauses = [event.type for event in mine if event.type in {"thread_paused", "thread_resumed", "thread_killed"}]
    return {
        "id": thread,
        "status": STATUS[statuses[-1].type],
        "paused": bool(pauses) and pauses[-1] == "thread_paused",
        "participants": list(dict.fromkeys(name for event in sends for name in (event.data["from"], event.data["to"]))),
        "message_count": len(sends),
        "created_at": iso(mine[0].at),
        "last_activity": iso(mine[-1].at),
        "error": statuses[-1].data.get("reason"),
        "session_id": None,
        "tokens": 0,
        "cost_usd": "0",
        "position": mine[-1].position,
    }


@given(lawful_logs)
def test_the_fold_equals_a_recount_of_the_whole_log(events: list[Event]) -> None:
    names = {event.thread for event in events if event.thread is not None}
    assert fold(threads.MODEL, events) == {name: recount(name, events) for name in names}


def test_a_thread_has_what_its_models_calls_used_and_cost() -> None:
    story = Story()
    story.tell("thread_created", "t")
    for cost in ("0.25", "0.0000001"):
        story.tell("budget_settled", "t", message="m", agent="a", step=1, tokens=15, cost_usd=cost, duration=1)
    assert (story.rows("threads")["t"]["tokens"], story.rows("threads")["t"]["cost_usd"]) == (30, "0.2500001")
