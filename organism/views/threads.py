"""Threads and their messages, and marks: where rare events stand in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from organism.events.record import Record
from organism.events.vocabulary import (
    EVENTS,
    RUN_ENTRIES,
    ApprovalCancelled,
    ApprovalExpired,
    ApprovalRequested,
    ApprovalResolved,
    BudgetSettled,
    Event,
    MessageDead,
    MessageDiscarded,
    MessageFailed,
    MessageRefused,
    MessageReplayed,
    MessageRetried,
    MessageSent,
    ModelCalled,
    SessionEvent,
    StepResolved,
    StepStarted,
    ThreadCompleted,
    ThreadCreated,
    ThreadFailed,
    ThreadKilled,
    ThreadPaused,
    ThreadReopened,
    ThreadResumed,
)
from organism.model.ids import session_of
from organism.model.money import plain
from organism.model.times import iso
from organism.views.views import Keys, ReadModel, Row, fold_each

# Messages: one row each; a message never changes once it is sent.


def message_head(record: Record[MessageSent]) -> Row:
    """The API's Message, all but its payload.

    Lists, single answers and pushed frames all begin with it and add ``payload``: the content of the record.
    """
    sent = record.event
    return {
        "id": sent.message,
        "thread_id": record.thread,
        "from": sent.sender,
        "to": sent.to,
        "payload_type": sent.type,
        "timestamp": iso(record.at),
        "position": record.position,
        "cause": record.cause,
    }


def _fold_messages(rows: dict[str, Row], records: Sequence[Record[Any]]) -> None:
    for record in records:
        if isinstance(record.event, MessageSent):
            rows[record.event.message] = message_head(record)


MESSAGES = ReadModel(
    name="messages",
    version=2,
    types=(MessageSent,),
    fold=_fold_messages,
    columns={"position": "INTEGER", "thread_id": "TEXT", "from": "TEXT", "to": "TEXT", "timestamp": "TEXT"},
    indexes=(("thread_id",), ("from",), ("to",)),
    with_content=True,
    is_final=True,
)

# Threads: status, who takes part, how many messages, what the models' calls used and cost.

ENDS: Final = (ThreadCompleted, ThreadFailed, ThreadKilled)
STATUS: Final[Mapping[type[Event], str]] = {
    ThreadReopened: "active",
    ThreadCompleted: "completed",
    ThreadFailed: "error",
    ThreadKilled: "killed",
}


def apply(key: str, row: Row | None, record: Record[Event]) -> Row | None:
    """The thread after the event."""
    rows = {key: row}
    fold(rows, (record,))
    return rows[key]


def fold(rows: dict[str, Row | None], records: Sequence[Record[Event]]) -> None:
    """The threads after the events.

    Any event is activity: ``position`` is that of the thread's last one, which ``If-Match`` and an ETag compare.
    """
    row: Row | None = None
    last: Record[Event] | None = None
    for record in records:
        key = record.thread
        if last is None or key != last.thread:
            if row is not None and last is not None:
                _reach(row, last)
            row = None if key is None or isinstance(record.event, SessionEvent) else rows[key]
        last = record
        if row is not None:
            change = CHANGES.get(type(record.event))
            if change is not None:
                change(row, record.event)
        elif key is not None and isinstance(record.event, ThreadCreated):
            row = rows[key] = _born(key, record)
    if row is not None and last is not None:
        _reach(row, last)


def _reach(row: Row, record: Record[Event]) -> None:
    """The record is the thread's last one."""
    row["position"] = record.position
    row["last_activity"] = iso(record.at)


def _born(key: str, record: Record[Event]) -> Row:
    now = iso(record.at)
    return {
        "id": key,
        "status": "active",
        "paused": False,
        "participants": [],
        "message_count": 0,
        "created_at": now,
        "last_activity": now,
        "error": None,
        "session_id": session_of(key),
        "tokens": 0,
        "cost_usd": "0",
        "position": record.position,
    }


def _sent(row: Row, event: MessageSent) -> None:
    row["message_count"] += 1
    participants = row["participants"]
    if event.to not in participants or event.sender not in participants:
        participants += [name for name in dict.fromkeys((event.sender, event.to)) if name not in participants]


def _turned(row: Row, event: ThreadReopened | ThreadCompleted | ThreadFailed | ThreadKilled) -> None:
    row["status"] = STATUS[type(event)]
    row["error"] = event.reason if isinstance(event, ThreadFailed) else None
    row["paused"] = row["paused"] and not isinstance(event, ThreadKilled)


def _paused(row: Row, event: ThreadPaused | ThreadResumed) -> None:
    row["paused"] = isinstance(event, ThreadPaused)


def _settled(row: Row, event: BudgetSettled) -> None:
    row["tokens"] += event.tokens
    row["cost_usd"] = plain(Decimal(row["cost_usd"]) + Decimal(event.cost_usd))


CHANGES: Final[Mapping[type[Event], Callable[[Row, Any], None]]] = {
    MessageSent: _sent,
    **dict.fromkeys(STATUS, _turned),
    ThreadPaused: _paused,
    ThreadResumed: _paused,
    BudgetSettled: _settled,
}
"""What each event changes of its thread besides its position."""


THREADS = ReadModel(
    name="threads",
    version=3,
    types=frozenset(kind for kind in EVENTS.values() if not issubclass(kind, SessionEvent)),
    fold=fold,
    columns={
        "status": "TEXT",
        "position": "INTEGER",
        "last_activity": "TEXT",
        "participants": "TEXT",
        "session_id": "TEXT",
    },
    indexes=(("status",), ("session_id",)),
    text_in=("messages", "thread_id"),
)

# Marks: for each kind of rare events and each thread the position of the last one, so that a search for such a kind
# reads no other threads. Events that nearly every thread has leave no mark, so a common hop writes none.

MARKS: Final[Mapping[type[Event], str]] = {
    MessageRetried: "message_retried",
    MessageFailed: "message_failed",
    MessageDead: "message_dead",
    MessageRefused: "message_refused",
    MessageReplayed: "message_replayed",
    MessageDiscarded: "message_discarded",
    ApprovalRequested: "approval_requested",
    ApprovalResolved: "approval_resolved",
    ApprovalExpired: "approval_expired",
    ApprovalCancelled: "approval_cancelled",
    StepStarted: "step_unknown",
    StepResolved: "step_resolved",
    ModelCalled: "model_called",
    **dict.fromkeys(RUN_ENTRIES.values(), "run"),
}
"""The mark of each event type that leaves one. The entries of a run are one kind, since they come together."""


def _mark_key(record: Record[Event]) -> Sequence[str]:
    """``MARK THREAD``; a step that starts leaves a mark only if its outcome is unknown."""
    event = record.event
    is_common = isinstance(event, StepStarted) and not event.unknown
    return (f"{MARKS[type(event)]} {record.thread}",) if record.thread and not is_common else ()


def _mark(_key: str, _row: Row | None, record: Record[Event]) -> Row:
    return {"mark": MARKS[type(record.event)], "thread_id": record.thread, "position": record.position}


_MARK_KEYS: Final[Mapping[type[Event], Keys]] = dict.fromkeys(MARKS, _mark_key)

MARKED = ReadModel(
    name="marks",
    version=1,
    types=_MARK_KEYS,
    fold=fold_each(_MARK_KEYS, _mark),
    columns={"mark": "TEXT", "thread_id": "TEXT", "position": "INTEGER"},
    indexes=(("mark", "position"),),
)
