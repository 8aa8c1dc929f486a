"""What waits for an operator: dead letters, and unsafe effects that may or may not have happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, UnsetType, field

from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Record
from organism.model import words
from organism.model.times import iso
from organism.views.handlings import CodeLine, code_line
from organism.views.hits import ShownHit
from organism.views.views import Cut, Keys, PrivateFields, ReadModel, Stored, fold_each
from organism.views.who import By, by

# Dead letters: messages whose handling failed for good, and sends that were refused. Each stays until it is replayed
# or discarded.


Closing = events.MessageReplayed | events.MessageDiscarded


def _own_id(record: Record[events.MessageDead | events.MessageRefused | events.MessageDiscarded]) -> Sequence[str]:
    """The message that died, was refused or is discarded."""
    return (record.event.message,)


class DeadLetterHead(Entity, kw_only=True):
    """A message that failed for good, or a send that was refused."""

    id: words.MessageId
    thread_id: words.ThreadId
    agent: Annotated[words.AgentName, Meta(description="Who was to handle it, or wanted to send it.")]
    sender: words.AgentName = field(name="from")
    to: Annotated[str, Meta(examples=["greeter"])]  # as its sender wrote it: perhaps no listener's name, or empty
    payload_type: words.PayloadType
    code: Annotated[str, Meta(examples=["handler_error"])]
    reason: words.Reason
    attempts: words.Count
    timestamp: Annotated[words.Time, Meta(description="When it died. UTC, ISO 8601.")]
    position: words.Position
    root: Annotated[
        words.MessageId | UnsetType, Meta(description="The dead letter that it failed with, and is closed with.")
    ] = UNSET
    traceback: Annotated[
        list[CodeLine] | UnsetType, Meta(description="The handler's own lines, the one that raised first.")
    ] = UNSET


class DeadLetter(DeadLetterHead, kw_only=True):
    """A message that failed for good, or a send that was refused, with its payload."""

    payload: words.Payload
    payload_cut: Cut = UNSET
    hit: ShownHit = UNSET


class _Died(PrivateFields):
    """``death`` is the position of the event, ``alike`` the group of its failure; empty if it failed with another."""

    died_at: int
    hangs_on: str
    death: int
    alike: str


def died(record: Record[events.MessageDead | events.MessageRefused]) -> DeadLetterHead:
    """A new dead letter. ``position`` is where its payload is: that of the message itself, or of the refusal."""
    event = record.event
    if isinstance(event, events.MessageDead):
        agent, to, attempts, position, root = event.agent, event.agent, event.attempts, event.sent, event.root
        traceback = [code_line(line) for line in event.traceback]
    else:
        agent, to, attempts, position, root = event.sender, event.to, 0, record.position, ""
        traceback = []
    return DeadLetterHead(
        id=event.message,
        thread_id=record.stream,
        agent=agent,
        sender=event.sender,
        to=to,
        payload_type=event.type,
        code=event.code,
        reason=event.reason,
        attempts=attempts,
        timestamp=iso(record.at),
        position=position,
        root=root or UNSET,
        traceback=traceback or UNSET,
    )


def _after(_key: str, _row: object, record: Record[Any]) -> Stored[DeadLetterHead, _Died] | None:
    """The dead letter, or None once it is closed."""
    if not isinstance(record.event, events.MessageDead | events.MessageRefused):
        return None
    letter = died(record)
    hangs_on = letter.root or ""
    return Stored(letter, _Died(record.at, hangs_on, record.position, "" if hangs_on else _group(letter)))


def _group(letter: DeadLetterHead) -> str:
    """The id of the failures that are alike: of one agent, with one code, at one line; refused sends: for one reason.

    The text of the line does not count, which was loaded later or is unknown in another place.
    """
    line = letter.traceback[0] if letter.traceback else None
    where = [line.file, str(line.line), line.function] if line is not None else []
    reason = [letter.reason] if not letter.attempts else []
    alike = "\0".join([letter.agent, letter.code, *where, *reason])
    return f"grp-{sha256(alike.encode()).hexdigest()[:16]}"


_CLOSING: Final[Mapping[type[events.Event], Keys]] = {
    events.MessageReplayed: lambda record: (record.event.dead,),
    events.MessageDiscarded: _own_id,
}
_KEYS: Final[Mapping[type[events.Event], Keys]] = {
    events.MessageDead: _own_id,
    events.MessageRefused: _own_id,
    **_CLOSING,
}

DEAD_LETTERS: ReadModel[Stored[DeadLetterHead, _Died]] = ReadModel(
    name="dead_letters",
    version=5,
    types=_KEYS,
    fold=fold_each(_KEYS, _after),
    row=DeadLetterHead,
    private=_Died,
    columns={
        "position": "INTEGER",
        "thread_id": "TEXT",
        "agent": "TEXT",
        "code": "TEXT",
        "died_at": "INTEGER",
        "hangs_on": "TEXT",
        "death": "INTEGER",
        "alike": "TEXT",
    },
    indexes=(("died_at",), ("thread_id", "died_at"), ("hangs_on", "thread_id"), ("alike", "death")),
    totals=(("min", "death"), ("max", "death")),
    with_content=True,
)


class ClosedLetter(Entity):
    """How a dead letter was closed, for good: what is sent again gets a new id."""

    status: Literal["replayed", "discarded"]
    by: By | None
    at: words.Time


def _closed(_key: str, _row: object, record: Record[Closing]) -> ClosedLetter:
    status: Literal["replayed", "discarded"] = (
        "replayed" if isinstance(record.event, events.MessageReplayed) else "discarded"
    )
    return ClosedLetter(status, by(record), iso(record.at))


CLOSED_LETTERS: ReadModel[ClosedLetter] = ReadModel(
    name="closed_letters", version=2, types=_CLOSING, fold=fold_each(_CLOSING, _closed), row=ClosedLetter
)

# Indeterminate effects: found started and not finished, after a death or when their handling failed in the middle.
# Whatever finds one writes its ``step_started`` again, with ``unknown``; the first such event counts.


StepEvent = events.StepStarted | events.StepRecorded | events.StepResolved


def _step(event: StepEvent) -> Sequence[str]:
    """``MESSAGE:STEP``."""
    return (f"{event.message}:{event.step}",)


class Indeterminate(Entity):
    """An unsafe effect that may or may not have happened."""

    id: Annotated[str, Meta(description="`MESSAGE:STEP`.", examples=["msg-01a2b3c4:1"])]
    thread_id: words.ThreadId
    message_id: words.MessageId
    agent: words.AgentName
    step: words.Count
    key: Annotated[str, Meta(description="The key that the effect got.", examples=["msg-01a2b3c4/pay"])]
    since: Annotated[words.Time, Meta(description="When it was found open. UTC, ISO 8601.")]
    position: words.Position
    started_at: Annotated[words.Time | None, Meta(description="When it began; null in older logs.")] = None


class _Found(PrivateFields):
    found_at: int


def _in_doubt(
    key: str, row: Stored[Indeterminate, _Found] | None, record: Record[StepEvent]
) -> Stored[Indeterminate, _Found] | None:
    """The open question, or None once the step has a record or an operator's word."""
    event = record.event
    if not isinstance(event, events.StepStarted):
        return None
    if row is not None:
        return row
    found = Indeterminate(
        id=key,
        thread_id=record.stream,
        message_id=event.message,
        agent=event.agent,
        step=event.step,
        key=event.key,
        since=iso(record.at),
        position=record.position,
        started_at=iso(event.began) if event.began else None,
    )
    return Stored(found, _Found(record.at))


_STEP_KEYS: Final[
    Mapping[type[events.Event], Keys]
] = {  # an effect under way is not in doubt, nor is a step of another kind
    events.StepStarted: lambda record: _step(record.event) if record.event.unknown else (),
    events.StepRecorded: lambda record: _step(record.event) if record.event.kind == "effect" else (),
    events.StepResolved: lambda record: _step(record.event),
}

INDETERMINATE: ReadModel[Stored[Indeterminate, _Found]] = ReadModel(
    name="indeterminate",
    version=3,
    types=_STEP_KEYS,
    fold=fold_each(_STEP_KEYS, _in_doubt),
    row=Indeterminate,
    private=_Found,
    columns={"position": "INTEGER", "thread_id": "TEXT", "agent": "TEXT", "found_at": "INTEGER"},
    indexes=(("position",), ("thread_id", "position")),
)
