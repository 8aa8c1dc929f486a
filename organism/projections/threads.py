"""The threads: status, who takes part, how many messages, what its models' calls used and cost.

``position`` is that of the thread's last event of any kind, which is what ``If-Match`` and an ETag compare.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Final

from organism.log.log import ReadModel, Row
from organism.model.events import EVENT_TYPES, Event
from organism.model.money import plain
from organism.model.times import iso


def apply(key: str, row: Row | None, event: Event) -> Row | None:
    rows = {key: row}
    fold(rows, (event,))
    return rows[key]


def fold(rows: dict[str, Row | None], events: Sequence[Event]) -> None:
    """The threads after the events: each one is activity and moves its thread's position."""
    row: Row | None = None
    last: Event | None = None
    for event in events:
        key = event.thread
        if last is None or key != last.thread:
            if row is not None and last is not None:
                _reach(row, last)
            row = None if key is None else rows[key]
        last = event
        kind = event.type
        if row is None:
            if key is not None and kind == "thread_created":
                row = rows[key] = _born(key, event)
        elif kind == "message_sent":
            _message_sent(row, event)
        elif kind in FOLDS:
            FOLDS[kind](row, event)
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


def _message_sent(row: Row, event: Event) -> None:
    row["message_count"] += 1
    data, participants = event.data, row["participants"]
    if data["to"] not in participants or data["from"] not in participants:
        participants += [name for name in dict.fromkeys((data["from"], data["to"])) if name not in participants]


def _reopened(row: Row, _event: Event) -> None:
    row["status"], row["error"] = "active", None


def _completed(row: Row, _event: Event) -> None:
    row["status"], row["error"] = "completed", None


def _failed(row: Row, event: Event) -> None:
    row["status"], row["error"] = "error", event.data["reason"]


def _killed(row: Row, _event: Event) -> None:
    row["status"], row["error"], row["paused"] = "killed", None, False


def _paused(row: Row, _event: Event) -> None:
    row["paused"] = True


def _resumed(row: Row, _event: Event) -> None:
    row["paused"] = False


def _settled(row: Row, event: Event) -> None:
    row["tokens"] += event.data["tokens"]
    row["cost_usd"] = plain(Decimal(row["cost_usd"]) + Decimal(event.data["cost_usd"]))


FOLDS: Final[Mapping[str, Callable[[Row, Event], None]]] = {
    "message_sent": _message_sent,
    "thread_reopened": _reopened,
    "thread_completed": _completed,
    "thread_failed": _failed,
    "thread_killed": _killed,
    "thread_paused": _paused,
    "thread_resumed": _resumed,
    "budget_settled": _settled,
}

MODEL = ReadModel(
    name="threads",
    version=2,
    types=EVENT_TYPES,
    fold=fold,
    columns={"status": "TEXT", "position": "INTEGER", "last_activity": "TEXT", "participants": "TEXT"},
    indexes=(("status",),),
    text_in=("messages", "thread_id"),
)
