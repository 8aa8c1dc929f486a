"""Sessions and their messages.

A session's row counts its messages, those of a turn at its end; a message's row says where it stands. No text is in
either: a message is read from the log (``pump/history.py``). A run's entries belong to the session if they are of the
turn's own message, which is the root of all that follows from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

from msgspec import UNSET, Meta, UnsetType, field

from organism.errors import NotFound, SessionAgentMismatch
from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Record
from organism.model import words
from organism.model.ids import session_of, turn_number
from organism.model.money import plain
from organism.model.times import iso
from organism.views.views import TITLE_CHARS, PrivateFields, ReadModel, Stored, ViewStore

T = TypeVar("T")

# -- sessions


SessionStatus = Annotated[
    Literal["idle", "busy", "archived", "deleted"],
    Meta(title="SessionStatus", description="`busy`: a turn runs or waits.", examples=["idle"]),
]
SHOWN: Final = ("idle", "busy", "archived")
"""The states of a session that was not deleted."""


class Session(Entity, kw_only=True):
    """A user's conversation with an agent; what it was not given is as the tenant's configuration says now."""

    id: words.SessionId
    agent: words.AgentName
    user_id: Annotated[str, Meta(examples=["dan"])]
    created_at: words.Time
    last_activity: words.Time
    message_count: words.Count
    compact_strategy: Annotated[events.CompactStrategy | UnsetType, words.COMPLETED] = UNSET
    compact_keep_last_n: Annotated[Annotated[int, Meta(ge=0, le=200, examples=[10])] | UnsetType, words.COMPLETED] = (
        UNSET
    )
    compact_observation_mask: Annotated[bool | UnsetType, words.COMPLETED] = UNSET
    parent_session_id: words.SessionId | None
    successor_session_id: words.SessionId | None = None
    archived_at: words.Time | None = None
    status: SessionStatus = "idle"
    turns: Annotated[words.Count, Meta(description="How many have begun.")] = 0
    context_tokens: Annotated[
        words.Count | None,
        Meta(description="What its last model call took and gave, with which the next turn begins; null before one."),
    ] = None
    cost_usd: Annotated[str, Meta(description="Of all its turns: a decimal number.", examples=["0"])] = "0"
    title: Annotated[
        Annotated[str, Meta(max_length=TITLE_CHARS, examples=["Which park is the largest?"])] | UnsetType | None,
        Meta(description="Its first message's first text; null before one, and once it was erased."),
        words.COMPLETED,
    ] = UNSET
    context_window: Annotated[
        words.Count | UnsetType | None,
        Meta(description="How many tokens its model takes, if that is known."),
        words.COMPLETED,
    ] = UNSET


class SessionPrivate(PrivateFields):
    """What only the session's decisions need. ``position`` is that of the session's own stream."""

    settings: events.SessionSettings
    position: int
    open_turns: int = 0  # that have not ended
    number: int = 0  # of its last turn
    authors: list[str] = field(default_factory=list)
    compacted_before: int = 0
    summary: str | None = None


SessionRow: TypeAlias = Stored[Session, SessionPrivate]


async def session_row(
    views: ViewStore, session_id: str, user: str | None, agent: str | None = None, *, is_deleted: bool = False
) -> SessionRow:
    """The row of a user's session; of anyone's if ``user`` is None. ``is_deleted``: also if it was deleted.

    Raises ``NotFound``, the same for what is not there, was deleted or is another user's, and ``SessionAgentMismatch``.
    """
    row = await views.private_row(SESSIONS, session_id)
    if (
        row is None
        or (user is not None and row.public.user_id != user)
        or (row.public.status == "deleted" and not is_deleted)
    ):
        raise NotFound(f"There is no session {session_id[:80]!r}.", param="/session_id")
    if agent is not None and row.public.agent != agent:
        raise SessionAgentMismatch(f"Session {session_id} belongs to {row.public.agent}.", param="/agent")
    return row


def _fold_sessions(rows: dict[str, Any], records: Sequence[Record[Any]]) -> None:
    for record in records:
        kind, event = type(record.event), record.event
        if kind is events.SessionCreated:
            rows[record.thread or ""] = _created(record)
        elif isinstance(event, events.SessionEvent) and (row := rows[record.thread or ""]) is not None:
            row.private.position, row.public.last_activity = record.position, iso(record.at)
            change = _CHANGES.get(kind)
            if change is not None:
                change(row, record)
        elif kind in _SPENT and (session := session_of(record.stream)) and (row := rows[session]) is not None:
            _SPENT[kind](row, record)


def _created(record: Record[events.SessionCreated]) -> SessionRow:
    event, now = record.event, iso(record.at)
    settings = event.settings
    session = Session(
        id=record.stream,
        agent=event.agent,
        user_id=event.user,
        created_at=now,
        last_activity=now,
        message_count=0,
        compact_strategy=_own(settings.compact_strategy),
        compact_keep_last_n=_own(settings.compact_keep_last_n),
        compact_observation_mask=_own(settings.compact_observation_mask),
        parent_session_id=event.parent,
    )
    return Stored(session, SessionPrivate(settings, record.position, authors=list(event.authors)))


def _own(setting: T | None) -> T | UnsetType:
    """The session's own setting; without one, the tenant's completes the session when it is shown."""
    return UNSET if setting is None else setting


def _kept(row: SessionRow, _record: Record[events.MessageKept]) -> None:
    row.public.message_count += 1


def _turn_started(row: SessionRow, record: Record[events.TurnStarted]) -> None:
    row.private.number = turn_number(record.event.turn)
    row.private.open_turns += 1
    row.public.status = "busy"
    row.public.turns += 1
    row.public.message_count += 1


def _turn_ended(row: SessionRow, record: Record[events.TurnEnded]) -> None:
    row.private.open_turns -= 1
    if row.private.open_turns == 0 and row.public.status == "busy":
        row.public.status = "idle"
    row.public.message_count += record.event.messages
    row.private.authors = sorted({*row.private.authors, *record.event.authors})


def _archived(row: SessionRow, record: Record[events.SessionCompacted | events.SessionUncompacted]) -> None:
    event = record.event
    row.public.successor_session_id, row.public.archived_at = event.successor, iso(record.at)
    row.public.status = "archived"
    if isinstance(event, events.SessionCompacted):
        row.private.compacted_before, row.private.summary = event.before, event.summary


def _deleted(row: SessionRow, _record: Record[events.SessionDeleted]) -> None:
    row.public.status = "deleted"


def _called(row: SessionRow, record: Record[events.ModelCalled]) -> None:
    event = record.event
    if event.agent == row.public.agent and event.error is None:
        row.public.context_tokens = event.input_tokens + event.output_tokens


def _settled(row: SessionRow, record: Record[events.BudgetSettled]) -> None:
    row.public.cost_usd = plain(Decimal(row.public.cost_usd) + Decimal(record.event.cost_usd))


_SPENT: Final[Mapping[type[events.Event], Callable[[SessionRow, Record[Any]], None]]] = {
    events.ModelCalled: _called,
    events.BudgetSettled: _settled,
}
"""What is in the streams of a session's turns."""
_CHANGES: Final[Mapping[type[events.Event], Callable[[SessionRow, Record[Any]], None]]] = {
    events.TurnStarted: _turn_started,
    events.TurnEnded: _turn_ended,
    events.MessageKept: _kept,
    events.SessionCompacted: _archived,
    events.SessionUncompacted: _archived,
    events.SessionDeleted: _deleted,
}

SESSIONS: ReadModel[SessionRow] = ReadModel(
    name="sessions",
    version=3,
    types=(*events.SessionEvent.__subclasses__(), *_SPENT),
    fold=_fold_sessions,
    row=Session,
    private=SessionPrivate,
    columns={"agent": "TEXT", "user_id": "TEXT", "status": "TEXT"},
    indexes=(("user_id", "agent"),),
)

# -- messages: one row each, at the event that begins it; it never changes


class MessagePlace(Entity):
    """Where a message of a session stands. ``thread_id`` is its turn, or the session itself if it began with it."""

    id: str
    session_id: str
    role: str
    thread_id: str
    created_at: str
    position: int


def _fold_messages(rows: dict[str, Any], records: Sequence[Record[Any]]) -> None:
    for record in records:
        thread = record.thread
        if thread is not None and thread.startswith("ses-") and (row := _message(record)) is not None:
            rows[row.id] = row


def _message(record: Record[Any]) -> MessagePlace | None:
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


def _row(record: Record[events.Event], message_id: str, role: str, thread_id: str = "") -> MessagePlace:
    stream = record.stream
    session_id = session_of(stream) or stream
    return MessagePlace(message_id, session_id, role, thread_id or stream, iso(record.at), record.position)


SESSION_MESSAGES: ReadModel[MessagePlace] = ReadModel(
    name="session_messages",
    version=2,
    types=(
        events.MessageStarted,
        events.MessageDropped,
        events.TurnAppended,
        events.MessageKept,
        *events.RUN_ENTRIES.values(),
    ),
    fold=_fold_messages,
    row=MessagePlace,
    columns={"position": "INTEGER", "session_id": "TEXT"},
    indexes=(("session_id",),),
    with_content=True,
    is_final=True,
)
