"""The dead letters: messages whose handling failed for good, and sends that were refused.

Each stays until it is replayed or discarded. ``position`` is where its payload lies: that of the message itself, or of
the refusal; ``timestamp`` is when it died.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from organism.log.log import Keys, ReadModel, Row, fold_each
from organism.model.events import Event
from organism.model.times import iso


def own_id(event: Event) -> Sequence[str]:
    """The message that died, was refused or is discarded."""
    return (event.data["message"],)


def replayed_id(event: Event) -> Sequence[str]:
    """The dead letter that was sent again, under a new id."""
    return (event.data["dead"],)


def apply(_key: str, _row: Row | None, event: Event) -> Row | None:
    """The dead letter, or None once it is closed."""
    if event.type == "message_dead":
        return _died(event)
    if event.type == "message_refused":
        return _refused(event)
    return None


def _died(event: Event) -> Row:
    """``agent`` is who was to handle it; ``sent`` is the position at which it was sent."""
    data = event.data
    return {
        "id": data["message"],
        "thread_id": event.thread,
        "agent": data["agent"],
        "from": data["from"],
        "to": data["agent"],
        "payload_type": data["type"],
        "code": data["code"],
        "reason": data["reason"],
        "attempts": data["attempts"],
        "timestamp": iso(event.at),
        "position": data["sent"],
        "_died_at": event.at,
    }


def _refused(event: Event) -> Row:
    """``agent`` is who wanted to send it; no handling was attempted."""
    data = event.data
    return {
        "id": data["message"],
        "thread_id": event.thread,
        "agent": data["from"],
        "from": data["from"],
        "to": data["to"],
        "payload_type": data["type"],
        "code": data["code"],
        "reason": data["reason"],
        "attempts": 0,
        "timestamp": iso(event.at),
        "position": event.position,
        "_died_at": event.at,
    }


KEYS: Final[Mapping[str, Keys]] = {
    "message_dead": own_id,
    "message_refused": own_id,
    "message_replayed": replayed_id,
    "message_discarded": own_id,
}

MODEL = ReadModel(
    name="dead_letters",
    version=2,
    types=KEYS,
    fold=fold_each(KEYS, apply),
    columns={"position": "INTEGER", "thread_id": "TEXT", "agent": "TEXT", "died_at": "INTEGER"},
    indexes=(("died_at",), ("thread_id", "died_at")),
    with_content=True,
)


def closed(_key: str, _row: Row | None, event: Event) -> Row:
    """How a dead letter was closed: ``replayed`` or ``discarded``, for good: what is sent again gets a new id."""
    return {"status": event.type.removeprefix("message_")}


CLOSED_KEYS: Final[Mapping[str, Keys]] = {"message_replayed": replayed_id, "message_discarded": own_id}

CLOSED_MODEL = ReadModel(name="closed_letters", version=1, types=CLOSED_KEYS, fold=fold_each(CLOSED_KEYS, closed))
