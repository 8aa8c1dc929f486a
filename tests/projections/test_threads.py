"""Threads, messages and marks."""

from __future__ import annotations

import pytest
from hypothesis import given

from organism.log.log import Row
from organism.model.events import APPROVAL, ORGANISM, RUN, THREAD, Event
from organism.model.times import iso
from organism.projections.threads import MARKED, MARKS, MESSAGES, THREADS, message_head
from tests.projections.folding import Story, fold
from tests.projections.moves import lawful_logs

STATUS = {
    "thread_created": "active",
    "thread_reopened": "active",
    "thread_completed": "completed",
    "thread_failed": "error",
    "thread_killed": "killed",
}
COMMON = THREAD | ORGANISM | {"message_sent", "message_started", "message_handled", "step_recorded"}


@pytest.mark.parametrize("cause", ["msg-0", None])
def test_a_message_has_the_fields_of_the_api_in_their_order(cause: str | None) -> None:
    event = Story().sends("msg-1", "greeter")
    event.cause = cause
    assert list(message_head(event).items()) == [
        ("id", "msg-1"),
        ("thread_id", "t"),
        ("from", "console"),
        ("to", "greeter"),
        ("payload_type", "Greeting"),
        ("timestamp", "2026-01-11T21:47:48.000000Z"),
        ("position", 1),
        ("cause", cause),
    ]


@given(lawful_logs)
def test_every_send_and_nothing_else_is_a_message(events: list[Event]) -> None:
    expected = {event.data["message"]: message_head(event) for event in events if event.type == "message_sent"}
    assert fold(MESSAGES, events) == expected


def test_a_thread_has_the_fields_of_the_api_in_their_order() -> None:
    story = Story()
    story.tell("thread_created", "t", session="s")
    for cost in ("0.25", "0.0000001"):
        story.tell("budget_settled", "t", message="m", agent="a", step=1, tokens=15, cost_usd=cost, duration=1)
    assert list(story.rows("threads")["t"].items()) == [
        ("id", "t"),
        ("status", "active"),
        ("paused", False),
        ("participants", []),
        ("message_count", 0),
        ("created_at", "2026-01-11T21:47:48.000000Z"),
        ("last_activity", "2026-01-11T21:47:50.000000Z"),
        ("error", None),
        ("session_id", "s"),
        ("tokens", 30),
        ("cost_usd", "0.2500001"),
        ("position", 3),
    ]


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
def test_the_threads_equal_a_recount_of_the_whole_log(events: list[Event]) -> None:
    names = {event.thread for event in events if event.thread is not None}
    assert fold(THREADS, events) == {name: recount(name, events) for name in names}


def at(position: int, kind: str, thread: str | None, **data: object) -> Event:
    """An event that lies in the log."""
    event = Event(kind, dict(data), thread=thread)
    event.position = position
    return event


def marked(*events: Event) -> dict[str, int]:
    """The position of each mark that is left."""
    return {key: row["position"] for key, row in fold(MARKED, events).items()}


def test_a_mark_is_where_the_last_one_stands() -> None:
    found = marked(
        at(3, "message_dead", "t1"), at(5, "message_dead", "t2"), at(7, "message_retried", "t1"),
        at(9, "message_dead", "t1"), at(11, "step_started", "t1"), at(12, "step_started", "t1", unknown=True),
    )  # fmt: skip
    assert found == {"message_dead t1": 9, "message_dead t2": 5, "message_retried t1": 7, "step_unknown t1": 12}


def test_the_entries_of_a_run_are_one_kind_of_mark() -> None:
    assert marked(*(at(number, kind, "t") for number, kind in enumerate(sorted(RUN), 1))) == {"run t": len(RUN)}


def test_what_every_thread_has_and_what_belongs_to_no_thread_leaves_no_mark() -> None:
    assert COMMON.isdisjoint(MARKS)
    assert marked(*(at(1, kind, None) for kind in sorted(APPROVAL & MARKS.keys()))) == {}
