"""Sessions and their messages.

A session's row counts its messages, those of a turn at its end; a message's row says where it stands. No text is in
either: a message is read from the log (``pump/history.py``). A run's entries belong to the session if they are of the
turn's own message, which is the root of all that follows from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import asdict

from organism.errors import NotFound, SessionAgentMismatch
from organism.events import vocabulary as events
from organism.events.record import Record
from organism.model.ids import session_of, turn_number
from organism.model.times import iso
from organism.views.views import ReadModel, Row, ViewStore


async def session_row(
    views: ViewStore, session_id: str, user: str | None, agent: str | None = None, *, is_deleted: bool = False
) -> Row:
    """The row of a user's session; of anyone's if ``user`` is None. ``is_deleted``: also if it was deleted.

    Raises ``NotFound``, the same for what is not there, was deleted or is another user's, and ``SessionAgentMismatch``.
    """
    row = await views.private_row(SESSIONS, session_id)
    if row is None or (user is not None and row["user_id"] != user) or (row["_status"] == "deleted" and not is_deleted):
        raise NotFound(f"There is no session {session_id[:80]!r}.", param="/session_id")
    if agent is not None and row["agent"] != agent:
        raise SessionAgentMismatch(f"Session {session_id} belongs to {row['agent']}.", param="/agent")
    return row


# -- sessions


def _fold_sessions(rows: dict[str, Any], records: Sequence[Record[Any]]) -> None:
    for record in records:
        kind, event = type(record.event), record.event
        if kind is events.SessionCreated:
            rows[record.thread or ""] = _created(record)
        elif isinstance(event, events.SessionEvent) and (row := rows[record.thread or ""]) is not None:
            row["position"], row["last_activity"] = record.position, iso(record.at)
            change = _CHANGES.get(kind)
            if change is not None:
                change(row, record)


def _created(record: Record[events.SessionCreated]) -> Row:
    event, now = record.event, iso(record.at)
    return {
        "id": record.thread,
        "agent": event.agent,
        "user_id": event.user,
        "created_at": now,
        "last_activity": now,
        "message_count": 0,
        **asdict(event.settings),
        "parent_session_id": event.parent,
        "successor_session_id": None,
        "archived_at": None,
        "position": record.position,
        "_status": "active",
        "_number": 0,
        "_authors": list(event.authors),
        "_compacted_before": 0,
        "_summary": None,
    }


def _kept(row: Row, _record: Record[events.MessageKept]) -> None:
    row["message_count"] += 1


def _turn_started(row: Row, record: Record[events.TurnStarted]) -> None:
    row["_number"] = turn_number(record.event.turn)
    row["message_count"] += 1


def _turn_ended(row: Row, record: Record[events.TurnEnded]) -> None:
    row["message_count"] += record.event.messages
    row["_authors"] = sorted({*row["_authors"], *record.event.authors})


def _archived(row: Row, record: Record[events.SessionCompacted | events.SessionUncompacted]) -> None:
    event = record.event
    row["successor_session_id"], row["archived_at"], row["_status"] = event.successor, iso(record.at), "archived"
    if isinstance(event, events.SessionCompacted):
        row["_compacted_before"], row["_summary"] = event.before, event.summary


def _deleted(row: Row, _record: Record[events.SessionDeleted]) -> None:
    row["_status"] = "deleted"


_CHANGES: Final[Mapping[type[events.Event], Callable[[Row, Record[Any]], None]]] = {
    events.TurnStarted: _turn_started,
    events.TurnEnded: _turn_ended,
    events.MessageKept: _kept,
    events.SessionCompacted: _archived,
    events.SessionUncompacted: _archived,
    events.SessionDeleted: _deleted,
}

SESSIONS: ReadModel[Row] = ReadModel(
    name="sessions",
    version=1,
    types=events.SessionEvent.__subclasses__(),
    fold=_fold_sessions,
    columns={"agent": "TEXT", "user_id": "TEXT", "status": "TEXT"},
    indexes=(("user_id", "agent"),),
)
"""``status`` is ``active``, ``archived`` or ``deleted``; ``position`` is that of the session's own stream."""

# -- messages: one row each, at the event that begins it; it never changes


def _fold_messages(rows: dict[str, Any], records: Sequence[Record[Any]]) -> None:
    for record in records:
        thread = record.thread
        if thread is not None and thread.startswith("ses-") and (row := _message(record)) is not None:
            rows[row["id"]] = row


def _message(record: Record[Any]) -> Row | None:
    """The row of the message that the event begins in a session; None if it begins none.

    A user's message stands where its handling begins, or where it is taken in or dropped before that.
    """
    event = record.event
    match event:
        case events.MessageStarted(attempt=1) | events.MessageDropped(attempts=0) if _is_of_turn(record):
            return _row(record, event.message, "user")
        case events.TurnAppended():
            return _row(record, event.message, "user", event.source)
        case events.MessageKept():
            return _row(record, event.message, event.role)
        case events.RunEvent() if events.begins_message(event) and _is_of_turn(record):
            role = "tool" if isinstance(event, events.RunToolCall | events.RunToolResult) else "assistant"
            return _row(record, f"{event.message}:{record.position}", role)
    return None


def _is_of_turn(record: Record[Any]) -> bool:
    """Whether the event is of the message that a turn begins with."""
    return record.event.message == record.correlation and turn_number(record.stream) > 0


def _row(record: Record[events.Event], message_id: str, role: str, thread_id: str = "") -> Row:
    """``thread_id`` is its turn; that of a message which a successor begins with is the session itself."""
    stream = record.stream
    return {
        "id": message_id,
        "_session_id": session_of(stream) or stream,
        "role": role,
        "thread_id": thread_id or stream,
        "created_at": iso(record.at),
        "position": record.position,
    }


SESSION_MESSAGES: ReadModel[Row] = ReadModel(
    name="session_messages",
    version=1,
    types=(
        events.MessageStarted,
        events.MessageDropped,
        events.TurnAppended,
        events.MessageKept,
        *events.RUN_ENTRIES.values(),
    ),
    fold=_fold_messages,
    columns={"position": "INTEGER", "session_id": "TEXT"},
    indexes=(("session_id",),),
    with_content=True,
    is_final=True,
)
