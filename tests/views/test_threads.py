"""Threads and messages."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given

from organism import JsonObject
from organism.events.record import Record
from organism.events.vocabulary import (
    BudgetSettled,
    Event,
    MessageHandled,
    MessageSent,
    MessageStarted,
    OrganismPaused,
    OrganismReloaded,
    OrganismResumed,
    OrganismStarted,
    OrganismStopped,
    StepRecorded,
    ThreadCompleted,
    ThreadCreated,
    ThreadFailed,
    ThreadKilled,
    ThreadPaused,
    ThreadReopened,
    ThreadResumed,
)
from organism.model.times import iso
from organism.views.threads import MESSAGES, THREADS, sent
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
    assert list(msgspec.to_builtins(sent(record)).items()) == [
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
    messages = [record for record in records if isinstance(record.event, MessageSent)]
    assert fold(MESSAGES, records) == {record.event.message: msgspec.to_builtins(sent(record)) for record in messages}


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
        ("ended_at", None),
        ("paused_by", None),
        ("paused_at", None),
        ("forked_from", None),
    ]


def recount(thread: str, records: list[Record[Event]]) -> JsonObject:
    mine = [record for record in records if record.thread == thread]
    events = [record.event for record in mine]
    sends = [event for event in events if isinstance(event, MessageSent)]
    last = [event for event in events if type(event) in STATUS][-1]
    pauses = [record for record in mine if isinstance(record.event, ThreadPaused | ThreadResumed | ThreadKilled)]
    paused = next((each for each in pauses[-1:] if isinstance(each.event, ThreadPaused)), None)
    turns = [record for record in mine if type(record.event) in {*STATUS} - {ThreadCreated}]
    ended = None
    for record in turns:
        ended = None if isinstance(record.event, ThreadReopened) else ended or iso(record.at)
    return {
        "id": thread,
        "status": STATUS[type(last)],
        "paused": paused is not None,
        "participants": list(dict.fromkeys(name for event in sends for name in (event.sender, event.to))),
        "message_count": len(sends),
        "created_at": iso(mine[0].at),
        "last_activity": iso(mine[-1].at),
        "error": last.reason if isinstance(last, ThreadFailed) else None,
        "session_id": None,
        "tokens": 0,
        "cost_usd": "0",
        "position": mine[-1].position,
        "ended_at": ended,
        "paused_by": None,
        "paused_at": iso(paused.at) if paused is not None else None,
        "forked_from": None,
    }


@given(lawful_logs)
def test_the_threads_equal_a_recount_of_the_whole_log(records: list[Record[Event]]) -> None:
    names = {record.thread for record in records if record.thread is not None}
    assert fold(THREADS, records) == {name: recount(name, records) for name in names}
