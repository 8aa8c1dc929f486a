"""What waits for an operator: dead letters, and unsafe effects that may or may not have happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import asdict

from organism.events.record import Record
from organism.events.vocabulary import (
    Event,
    MessageDead,
    MessageDiscarded,
    MessageRefused,
    MessageReplayed,
    StepRecorded,
    StepResolved,
    StepStarted,
)
from organism.model.times import iso
from organism.views.views import Keys, ReadModel, Row, fold_each

# Dead letters: messages whose handling failed for good, and sends that were refused. Each stays until it is replayed
# or discarded.


Closing = MessageReplayed | MessageDiscarded


def _own_id(record: Record[MessageDead | MessageRefused | MessageDiscarded]) -> Sequence[str]:
    """The message that died, was refused or is discarded."""
    return (record.event.message,)


def apply(_key: str, _row: Row | None, record: Record[MessageDead | MessageRefused | Closing]) -> Row | None:
    """The dead letter, or None once it is closed.

    ``agent`` is who was to handle it, or who wanted to send it; ``timestamp`` is when it died. ``position`` is where
    its payload lies: that of the message itself, or of the refusal. ``traceback`` are the handler's own lines, the one
    that raised first. ``root`` is there if the handling failed with an ask: the dead letter that this one hangs on.
    """
    event = record.event
    root, more = "", dict[str, Any]()
    if isinstance(event, MessageDead):
        agent, to, attempts, position, root = event.agent, event.agent, event.attempts, event.sent, event.root
        more = {"traceback": [asdict(line) for line in event.traceback]} if event.traceback else {}
    elif isinstance(event, MessageRefused):
        agent, to, attempts, position = event.sender, event.to, 0, record.position
    else:
        return None
    return {
        "id": event.message,
        "thread_id": record.thread,
        "agent": agent,
        "from": event.sender,
        "to": to,
        "payload_type": event.type,
        "code": event.code,
        "reason": event.reason,
        "attempts": attempts,
        "timestamp": iso(record.at),
        "position": position,
        **({"root": root} if root else {}),
        **more,
        "_died_at": record.at,
        "_hangs_on": root,
    }


_CLOSING: Final[Mapping[type[Event], Keys]] = {
    MessageReplayed: lambda record: (record.event.dead,),
    MessageDiscarded: _own_id,
}
_KEYS: Final[Mapping[type[Event], Keys]] = {MessageDead: _own_id, MessageRefused: _own_id, **_CLOSING}

DEAD_LETTERS: ReadModel[Row] = ReadModel(
    name="dead_letters",
    version=4,
    types=_KEYS,
    fold=fold_each(_KEYS, apply),
    columns={
        "position": "INTEGER",
        "thread_id": "TEXT",
        "agent": "TEXT",
        "code": "TEXT",
        "died_at": "INTEGER",
        "hangs_on": "TEXT",
    },
    indexes=(("died_at",), ("thread_id", "died_at"), ("hangs_on",)),
    with_content=True,
)


def _closed(_key: str, _row: Row | None, record: Record[Closing]) -> Row:
    """How a dead letter was closed: ``replayed`` or ``discarded``, for good: what is sent again gets a new id."""
    return {"status": "replayed" if isinstance(record.event, MessageReplayed) else "discarded"}


CLOSED_LETTERS: ReadModel[Row] = ReadModel(
    name="closed_letters", version=1, types=_CLOSING, fold=fold_each(_CLOSING, _closed)
)

# Indeterminate effects: found started and not finished, after a death or when their handling failed in the middle.
# Whatever finds one writes its ``step_started`` again, with ``unknown``; the first such event counts.


StepEvent = StepStarted | StepRecorded | StepResolved


def _step(event: StepEvent) -> Sequence[str]:
    """``MESSAGE:STEP``."""
    return (f"{event.message}:{event.step}",)


def _in_doubt(key: str, row: Row | None, record: Record[StepEvent]) -> Row | None:
    """The open question, or None once the step has a record or an operator's word."""
    event = record.event
    if not isinstance(event, StepStarted):
        return None
    return row or {
        "id": key,
        "thread_id": record.thread,
        "message_id": event.message,
        "agent": event.agent,
        "step": event.step,
        "key": event.key,
        "since": iso(record.at),
        "position": record.position,
        "_found_at": record.at,
    }


_STEP_KEYS: Final[Mapping[type[Event], Keys]] = {  # an effect under way is not in doubt, nor is a step of another kind
    StepStarted: lambda record: _step(record.event) if record.event.unknown else (),
    StepRecorded: lambda record: _step(record.event) if record.event.kind == "effect" else (),
    StepResolved: lambda record: _step(record.event),
}

INDETERMINATE: ReadModel[Row] = ReadModel(
    name="indeterminate",
    version=2,
    types=_STEP_KEYS,
    fold=fold_each(_STEP_KEYS, _in_doubt),
    columns={"position": "INTEGER", "thread_id": "TEXT", "agent": "TEXT", "found_at": "INTEGER"},
    indexes=(("position",), ("thread_id", "position")),
)
