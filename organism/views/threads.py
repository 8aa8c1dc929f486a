"""Threads and their messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Final

import orjson
from msgspec import UNSET, Meta, UnsetType, field

from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Record
from organism.model import words
from organism.model.ids import session_of
from organism.model.money import plain
from organism.model.times import iso
from organism.views.handlings import MessageHandling
from organism.views.hits import ShownHit
from organism.views.views import TITLE_CHARS, Cut, ReadModel
from organism.views.waiting import OF_A_THREAD
from organism.views.who import By, by

# Messages: one row each; a message never changes once it is sent.


class Message(Entity, kw_only=True):
    """A message."""

    id: words.MessageId
    thread_id: words.ThreadId
    sender: Annotated[words.AgentName, Meta(description="Who sent it; `console` is the outside.")] = field(name="from")
    to: words.AgentName
    payload_type: words.PayloadType
    payload: words.Content = UNSET
    payload_cut: Cut = UNSET
    timestamp: words.Time
    position: words.Position
    cause: Annotated[words.MessageId | None, Meta(description="The message whose handling led to it.")]
    handling: Annotated[
        MessageHandling | UnsetType, Meta(description="With `?handlings=true`: what has become of it.")
    ] = UNSET
    xml: Annotated[
        Annotated[str, Meta(examples=["<message/>"])] | UnsetType | None,
        Meta(description="With `?xml=true`: the recorded envelope, byte for byte; null once it was erased."),
    ] = UNSET
    hit: ShownHit = UNSET


def sent(record: Record[events.MessageSent]) -> Message:
    """The message. Lists, single answers and pushed frames add its payload: the content of the record."""
    event = record.event
    return Message(
        id=event.message,
        thread_id=record.stream,
        sender=event.sender,
        to=event.to,
        payload_type=event.type,
        timestamp=iso(record.at),
        position=record.position,
        cause=record.cause,
    )


def _fold_messages(rows: dict[str, Message], records: Sequence[Record[Any]]) -> None:
    for record in records:
        if isinstance(record.event, events.MessageSent):
            rows[record.event.message] = sent(record)


MESSAGES: ReadModel[Message] = ReadModel(
    name="messages",
    version=2,
    types=(events.MessageSent,),
    fold=_fold_messages,
    row=Message,
    columns={
        "position": "INTEGER",
        "thread_id": "TEXT",
        "from": "TEXT",
        "to": "TEXT",
        "timestamp": "TEXT",
        "payload_type": "TEXT",
        "cause": "TEXT",
    },
    indexes=(("thread_id",), ("from",), ("to",)),
    with_content=True,
    is_final=True,
)

# Threads: status, who takes part, how many messages, what the models' calls used and cost.

ENDS: Final = (events.ThreadCompleted, events.ThreadFailed, events.ThreadKilled)
STATUS: Final[Mapping[type[events.Event], words.ThreadStatus]] = {
    events.ThreadReopened: "active",
    events.ThreadCompleted: "completed",
    events.ThreadFailed: "error",
    events.ThreadKilled: "killed",
}


_TEXT: Final = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")(\s*+:)?')
"""A string in JSON, and what follows it if it is a field's name."""


class ThreadQuestions(Entity):
    """How much of the thread waits for a person."""

    approvals: words.Count = 0
    dead_letters: words.Count = 0
    indeterminate: words.Count = 0


class Thread(Entity, kw_only=True):
    """A thread."""

    id: words.ThreadId
    status: words.ThreadStatus
    paused: bool
    participants: Annotated[list[words.AgentName], Meta(description="Who takes part, in the order in which they came.")]
    message_count: words.Count
    created_at: words.Time
    last_activity: words.Time
    error: Annotated[words.Reason | None, Meta(description="Why it failed, if it did.")]
    session_id: str | None
    tokens: words.Count
    cost_usd: Annotated[str, Meta(description="A decimal number.", examples=["0"])]
    position: Annotated[words.Position, Meta(description="That of its last event: its ETag, what `If-Match` compares.")]
    ended_at: Annotated[words.Time | None, Meta(description="When it ended, if it has.")] = None
    paused_by: Annotated[By | None, Meta(description="Who paused it, if it is paused and that is known.")] = None
    paused_at: words.Time | None = None
    forked_from: Annotated[words.ThreadId | None, Meta(description="The thread whose past it shares.")] = None
    title: Annotated[
        Annotated[str, Meta(max_length=TITLE_CHARS, examples=["Dan"])] | UnsetType | None,
        Meta(description="The first text of its first payload; null once erased."),
        words.COMPLETED,
    ] = UNSET
    waiting_for_people: Annotated[ThreadQuestions | UnsetType, words.COMPLETED] = UNSET
    hit: ShownHit = UNSET


def title(payload: bytes | None) -> str | None:
    """What a thread is called that begins with this payload, which is JSON: its first text that is not blank."""
    for found in _TEXT.finditer(payload or b""):
        if found[2] is None and (text := orjson.loads(found[1])).strip():
            return str(text[:TITLE_CHARS])
    return None


def _with_title(public: bytes, payload: bytes | None) -> bytes:
    return b'%b,"title":%b}' % (public[:-1], orjson.dumps(title(payload)))


def apply(key: str, row: Thread | None, record: Record[events.Event]) -> Thread | None:
    """The thread after the event."""
    rows: dict[str, Thread | None] = {key: row}
    fold(rows, (record,))
    return rows[key]


def fold(rows: dict[str, Thread | None], records: Sequence[Record[events.Event]]) -> None:
    """The threads after the events.

    Any event is activity: ``position`` is that of the thread's last one, which ``If-Match`` and an ETag compare.
    """
    row: Thread | None = None
    last: Record[events.Event] | None = None
    for record in records:
        key = record.thread
        if last is None or key != last.thread:
            if row is not None and last is not None:
                _reach(row, last)
            row = None if key is None or isinstance(record.event, events.SessionEvent) else rows[key]
        last = record
        if row is not None:
            change = CHANGES.get(type(record.event))
            if change is not None:
                change(row, record)
        elif key is not None and isinstance(record.event, events.ThreadCreated):
            row = rows[key] = _born(key, record)
    if row is not None and last is not None:
        _reach(row, last)


def _reach(row: Thread, record: Record[events.Event]) -> None:
    """The record is the thread's last one."""
    row.position = record.position
    row.last_activity = iso(record.at)


def _born(key: str, record: Record[events.Event]) -> Thread:
    now = iso(record.at)
    return Thread(
        id=key,
        status="active",
        paused=False,
        participants=[],
        message_count=0,
        created_at=now,
        last_activity=now,
        error=None,
        session_id=session_of(key),
        tokens=0,
        cost_usd="0",
        position=record.position,
    )


def _sent(row: Thread, record: Record[events.MessageSent]) -> None:
    event = record.event
    row.message_count += 1
    participants = row.participants
    if event.to not in participants or event.sender not in participants:
        participants += [name for name in dict.fromkeys((event.sender, event.to)) if name not in participants]


def _turned(
    row: Thread,
    record: Record[events.ThreadReopened | events.ThreadCompleted | events.ThreadFailed | events.ThreadKilled],
) -> None:
    event = record.event
    row.status = STATUS[type(event)]
    row.error = event.reason if isinstance(event, events.ThreadFailed) else None
    if isinstance(event, events.ThreadReopened):
        row.ended_at = None
    elif row.ended_at is None:  # one that is killed later has ended before
        row.ended_at = iso(record.at)
    if isinstance(event, events.ThreadKilled):
        row.paused, row.paused_by, row.paused_at = False, None, None


def _paused(row: Thread, record: Record[events.ThreadPaused]) -> None:
    row.paused, row.paused_by, row.paused_at = True, by(record), iso(record.at)


def _resumed(row: Thread, _record: Record[events.ThreadResumed]) -> None:
    row.paused, row.paused_by, row.paused_at = False, None, None


def _settled(row: Thread, record: Record[events.BudgetSettled]) -> None:
    event = record.event
    row.tokens += event.tokens
    row.cost_usd = plain(Decimal(row.cost_usd) + Decimal(event.cost_usd))


CHANGES: Final[Mapping[type[events.Event], Callable[[Thread, Record[Any]], None]]] = {
    events.MessageSent: _sent,
    **dict.fromkeys(STATUS, _turned),
    events.ThreadPaused: _paused,
    events.ThreadResumed: _resumed,
    events.BudgetSettled: _settled,
}
"""What each event changes of its thread besides its position."""


THREADS: ReadModel[Thread] = ReadModel(
    name="threads",
    version=4,
    types=frozenset(kind for kind in events.EVENTS.values() if not issubclass(kind, events.SessionEvent)),
    fold=fold,
    row=Thread,
    columns={
        "status": "TEXT",
        "position": "INTEGER",
        "created_at": "TEXT",
        "last_activity": "TEXT",
        "ended_at": "TEXT",
        "cost_usd": "TEXT",
        "participants": "TEXT",
        "session_id": "TEXT",
    },
    indexes=(("status",), ("session_id",)),
    text_in=(MESSAGES.name, "thread_id"),
    with_first=_with_title,
    counted_as="waiting_for_people",
    counted=OF_A_THREAD,
)
