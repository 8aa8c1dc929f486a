"""The organism in one row. ``position`` is that of the log's last event, so it moves with every one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from organism.log.log import ReadModel, Row
from organism.model.events import EVENT_TYPES, Event

KEY: Final = "organism"


def fold(rows: dict[str, Row | None], events: Sequence[Event]) -> None:
    """The organism after the events; there is none before its first start.

    ``status`` is ``running`` or ``paused``: that it is starting or stopping only the process itself knows.
    ``started_at`` is in µs, for the server to count ``uptime_seconds`` from.
    """
    row = rows[KEY]
    for event in events:
        kind = event.type
        if kind == "organism_started":
            row = _started(row, event)
        elif row is not None and kind in FOLDS:
            FOLDS[kind](row, event)
    if row is not None:
        row["position"] = events[-1].position
    rows[KEY] = row


def _started(row: Row | None, event: Event) -> Row:
    """Counts and a pause outlive the process; name, version and agents are those of the new life."""
    data, before = event.data, row or {}
    return {
        "name": data["name"],
        "status": before.get("status", "running"),
        "agent_count": len(data["listeners"]),
        "active_threads": before.get("active_threads", 0),
        "total_messages": before.get("total_messages", 0),
        "version": data["version"],
        "position": event.position,
        "started_at": event.at,
    }


def _message_sent(row: Row, _event: Event) -> None:
    row["total_messages"] += 1


def _thread_began(row: Row, _event: Event) -> None:
    row["active_threads"] += 1


def _thread_ended(row: Row, _event: Event) -> None:
    row["active_threads"] -= 1


def _thread_killed(row: Row, event: Event) -> None:
    """``ended`` says that the thread was active no more, and so was counted already."""
    if "ended" not in event.data:
        row["active_threads"] -= 1


def _reloaded(row: Row, event: Event) -> None:
    row["agent_count"] = len(event.data["listeners"])


def _paused(row: Row, _event: Event) -> None:
    row["status"] = "paused"


def _resumed(row: Row, _event: Event) -> None:
    row["status"] = "running"


FOLDS: Final[Mapping[str, Callable[[Row, Event], None]]] = {
    "message_sent": _message_sent,
    "thread_created": _thread_began,
    "thread_reopened": _thread_began,
    "thread_completed": _thread_ended,
    "thread_failed": _thread_ended,
    "thread_killed": _thread_killed,
    "organism_reloaded": _reloaded,
    "organism_paused": _paused,
    "organism_resumed": _resumed,
}

MODEL = ReadModel(
    name="organism",
    version=1,
    types=EVENT_TYPES,
    fold=fold,
    is_live=True,
)
