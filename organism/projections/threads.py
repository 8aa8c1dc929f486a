"""Threads and their messages, and marks: where rare events stand in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from organism.log.log import KEY, ColumnRow, Keys, ReadModel, Row, Shown, fold_each
from organism.model.events import EVENT_TYPES, RUN, Event
from organism.model.money import plain
from organism.model.times import iso

# Messages: one row each; a message never changes once it is sent.


def message_head(event: Event) -> Row:
    """The API's Message of a ``message_sent``, all but its payload.

    Lists, single answers and pushed frames all begin with it and add ``payload``: the content of the event there.
    """
    return MESSAGES.show(_message_row(event))


def _message_row(event: Event) -> ColumnRow:
    """The message's id, then the columns in their order."""
    data = event.data
    message: str = data["message"]
    return message, event.position, event.thread, data["from"], data["to"], event.at, data["type"], event.cause


def _fold_messages(rows: dict[str, ColumnRow], events: Sequence[Event]) -> None:
    for event in events:
        if event.type == "message_sent":
            rows[event.data["message"]] = _message_row(event)


MESSAGES = ReadModel(
    name="messages",
    version=1,
    types=("message_sent",),
    fold=_fold_messages,
    columns={
        "position": "INTEGER",
        "thread_id": "TEXT",
        "sender": "TEXT",
        "receiver": "TEXT",
        "sent_at": "INTEGER",
        "payload_type": "TEXT",
        "cause": "TEXT",
    },
    indexes=(("thread_id",), ("sender",), ("receiver",)),
    with_content=True,
    shown=(
        Shown("id", KEY),
        Shown("thread_id", "thread_id"),
        Shown("from", "sender"),
        Shown("to", "receiver"),
        Shown("payload_type", "payload_type"),
        Shown("timestamp", "sent_at", is_time=True),
        Shown("position", "position"),
        Shown("cause", "cause"),
    ),
)

# Threads: status, who takes part, how many messages, what the models' calls used and cost.

STATUS: Final[Mapping[str, str]] = {
    "thread_reopened": "active",
    "thread_completed": "completed",
    "thread_failed": "error",
    "thread_killed": "killed",
}


def apply(key: str, row: Row | None, event: Event) -> Row | None:
    """The thread after the event."""
    rows = {key: row}
    fold(rows, (event,))
    return rows[key]


def fold(rows: dict[str, Row | None], events: Sequence[Event]) -> None:
    """The threads after the events.

    Any event is activity: ``position`` is that of the thread's last one, which ``If-Match`` and an ETag compare.
    """
    row: Row | None = None
    last: Event | None = None
    for event in events:
        key = event.thread
        if last is None or key != last.thread:
            if row is not None and last is not None:
                _reach(row, last)
            row = None if key is None else rows[key]
        last = event
        if row is not None:
            _change(row, event)
        elif key is not None and event.type == "thread_created":
            row = rows[key] = _born(key, event)
    if row is not None and last is not None:
        _reach(row, last)


def _reach(row: Row, event: Event) -> None:
    """The event is the thread's last one."""
    row["position"] = event.position
    row["last_activity"] = iso(event.at)


def _born(key: str, event: Event) -> Row:
    now = iso(event.at)
    return {
        "id": key,
        "status": "active",
        "paused": False,
        "participants": [],
        "message_count": 0,
        "created_at": now,
        "last_activity": now,
        "error": None,
        "session_id": event.data.get("session"),
        "tokens": 0,
        "cost_usd": "0",
        "position": event.position,
    }


def _change(row: Row, event: Event) -> None:
    kind, data = event.type, event.data
    if kind == "message_sent":
        row["message_count"] += 1
        participants = row["participants"]
        if data["to"] not in participants or data["from"] not in participants:
            participants += [name for name in dict.fromkeys((data["from"], data["to"])) if name not in participants]
    elif kind in STATUS:
        row["status"] = STATUS[kind]
        row["error"] = data["reason"] if kind == "thread_failed" else None
        row["paused"] = row["paused"] and kind != "thread_killed"
    elif kind in {"thread_paused", "thread_resumed"}:
        row["paused"] = kind == "thread_paused"
    elif kind == "budget_settled":
        row["tokens"] += data["tokens"]
        row["cost_usd"] = plain(Decimal(row["cost_usd"]) + Decimal(data["cost_usd"]))


THREADS = ReadModel(
    name="threads",
    version=2,
    types=EVENT_TYPES,
    fold=fold,
    columns={"status": "TEXT", "position": "INTEGER", "last_activity": "TEXT", "participants": "TEXT"},
    indexes=(("status",),),
    text_in=("messages", "thread_id"),
)

# Marks: for each kind of rare events and each thread the position of the last one. Who looks for such a kind in a
# million events looks through no other threads. What nearly every thread has is no mark, so a common hop leaves none.

MARKS: Final[Mapping[str, str]] = {
    "message_retried": "message_retried",
    "message_failed": "message_failed",
    "message_dead": "message_dead",
    "message_refused": "message_refused",
    "message_replayed": "message_replayed",
    "message_discarded": "message_discarded",
    "approval_requested": "approval_requested",
    "approval_resolved": "approval_resolved",
    "approval_expired": "approval_expired",
    "approval_cancelled": "approval_cancelled",
    "step_started": "step_unknown",
    "step_resolved": "step_resolved",
    "model_called": "model_called",
    **dict.fromkeys(sorted(RUN), "run"),
}
"""The mark of each event type that leaves one. The entries of a run are one kind, since they come together."""


def _mark_key(event: Event) -> Sequence[str]:
    """``MARK THREAD``; a step that starts leaves a mark only if its outcome is unknown."""
    is_common = event.type == "step_started" and "unknown" not in event.data
    return (f"{MARKS[event.type]} {event.thread}",) if event.thread and not is_common else ()


def _mark(_key: str, _row: Row | None, event: Event) -> Row:
    return {"mark": MARKS[event.type], "thread_id": event.thread, "position": event.position}


_MARK_KEYS: Final[Mapping[str, Keys]] = dict.fromkeys(MARKS, _mark_key)

MARKED = ReadModel(
    name="marks",
    version=1,
    types=_MARK_KEYS,
    fold=fold_each(_MARK_KEYS, _mark),
    columns={"mark": "TEXT", "thread_id": "TEXT", "position": "INTEGER"},
    indexes=(("mark", "position"),),
)
