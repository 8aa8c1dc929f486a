"""Threads, messages and marks."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from msgspec.structs import replace

from organism.events.record import Record
from organism.events.vocabulary import (
    RUN_ENTRIES,
    ApprovalCancelled,
    ApprovalExpired,
    ApprovalRequested,
    ApprovalResolved,
    BudgetSettled,
    Event,
    MessageDead,
    MessageHandled,
    MessageRetried,
    MessageSent,
    MessageStarted,
    OrganismPaused,
    OrganismReloaded,
    OrganismResumed,
    OrganismStarted,
    OrganismStopped,
    StepRecorded,
    StepStarted,
    ThreadCompleted,
    ThreadCreated,
    ThreadFailed,
    ThreadKilled,
    ThreadPaused,
    ThreadReopened,
    ThreadResumed,
)
from organism.model.times import iso
from organism.views.threads import MARKED, MARKS, MESSAGES, THREADS, message_head
from organism.views.views import Row
from tests.views.folding import Scenario, fold
from tests.views.moves import lawful_logs

STATUS: dict[type[Event], str] = {
    ThreadCreated: "active",
    ThreadReopened: "active",
    ThreadCompleted: "completed",
    ThreadFailed: "error",
    ThreadKilled: "killed",
}
COMMON = {
    *(OrganismStarted, OrganismStopped, OrganismPaused, OrganismResumed, OrganismReloaded),
    *(*STATUS, ThreadPaused, ThreadResumed),
    *(MessageSent, MessageStarted, MessageHandled, StepRecorded),
}


@pytest.mark.parametrize("cause", ["msg-0", None])
def test_a_message_has_the_fields_of_the_api_in_their_order(cause: str | None) -> None:
    record = Scenario().sends("msg-1", "greeter")
    record.cause = cause
    assert list(message_head(record).items()) == [
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
def test_every_send_and_nothing_else_is_a_message(records: list[Record[Any]]) -> None:
    sent = [record for record in records if isinstance(record.event, MessageSent)]
    assert fold(MESSAGES, records) == {record.event.message: message_head(record) for record in sent}


def test_a_thread_has_the_fields_of_the_api_in_their_order() -> None:
    scenario = Scenario()
    scenario.add(ThreadCreated(), "t")
    for cost in ("0.25", "0.0000001"):
        scenario.add(BudgetSettled("m", "a", 1, tokens=15, cost_usd=cost, duration=1), "t")
    assert list(scenario.rows("threads")["t"].items()) == [
        ("id", "t"),
        ("status", "active"),
        ("paused", False),
        ("participants", []),
        ("message_count", 0),
        ("created_at", "2026-01-11T21:47:48.000000Z"),
        ("last_activity", "2026-01-11T21:47:50.000000Z"),
        ("error", None),
        ("session_id", None),
        ("tokens", 30),
        ("cost_usd", "0.2500001"),
        ("position", 3),
    ]


def recount(thread: str, records: list[Record[Event]]) -> Row:
    mine = [record for record in records if record.thread == thread]
    events = [record.event for record in mine]
    sends = [event for event in events if isinstance(event, MessageSent)]
    last = [event for event in events if type(event) in STATUS][-1]
    pauses = [type(event) for event in events if isinstance(event, ThreadPaused | ThreadResumed | ThreadKilled)]
    return {
        "id": thread,
        "status": STATUS[type(last)],
        "paused": pauses[-1:] == [ThreadPaused],
        "participants": list(dict.fromkeys(name for event in sends for name in (event.sender, event.to))),
        "message_count": len(sends),
        "created_at": iso(mine[0].at),
        "last_activity": iso(mine[-1].at),
        "error": last.reason if isinstance(last, ThreadFailed) else None,
        "session_id": None,
        "tokens": 0,
        "cost_usd": "0",
        "position": mine[-1].position,
    }


@given(lawful_logs)
def test_the_threads_equal_a_recount_of_the_whole_log(records: list[Record[Event]]) -> None:
    names = {record.thread for record in records if record.thread is not None}
    assert fold(THREADS, records) == {name: recount(name, records) for name in names}


def marked(*told: tuple[int, Event, str | None]) -> dict[str, int]:
    """The position of each mark that these events, each with its position and thread, leave."""
    records = [Record(event, thread=thread, position=position) for position, event, thread in told]
    return {key: row["position"] for key, row in fold(MARKED, records).items()}


def test_a_mark_is_where_the_last_one_stands() -> None:
    dead = MessageDead("m", "a", "console", "Note", 1, "handler_error", "boom", attempts=1)
    retried = MessageRetried("m", "a", 1, "boom", next_at=1)
    step = StepStarted("m", "a", 1, "effect", "d")
    found = marked(
        (3, dead, "t1"), (5, dead, "t2"), (7, retried, "t1"), (9, dead, "t1"), (11, step, "t1"),
        (12, replace(step, unknown=True), "t1"),
    )  # fmt: skip
    assert found == {"message_dead t1": 9, "message_dead t2": 5, "message_retried t1": 7, "step_unknown t1": 12}


def test_the_entries_of_a_run_are_one_kind_of_mark() -> None:
    said = {"message": "m", "agent": "a", "offset": 0, "length": 1, "stopReason": "stop"}
    entries = [msgspec.convert({"event": kind.event_type, **said}, kind) for kind in RUN_ENTRIES.values()]
    assert marked(*((number, entry, "t") for number, entry in enumerate(entries, 1))) == {"run t": len(RUN_ENTRIES)}


def test_what_every_thread_has_and_what_belongs_to_no_thread_leaves_no_mark() -> None:
    assert COMMON.isdisjoint(MARKS)
    asked = ApprovalRequested("apr", "m", "a", 1, "d", expires_at=1)
    resolved = ApprovalResolved("apr", "approve", comment="", by="me")
    approvals = (asked, resolved, ApprovalExpired("apr"), ApprovalCancelled("apr"))
    assert {type(event) for event in approvals} <= MARKS.keys()
    assert marked(*((1, event, None) for event in approvals)) == {}
