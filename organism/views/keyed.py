"""What is looked up by a key of its own: the answers to idempotency keys, and the values of the key_value tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Record
from organism.views.views import Keys, ReadModel, fold_each


def _call(record: Record[events.CallAnswered]) -> Sequence[str]:
    """``METHOD PATH KEY``: neither of the first two has a space in it."""
    event = record.event
    return (f"{event.method} {event.path} {event.key}",)


class Answer(Entity):
    """What the first call was bound to and what it got; ``at`` in µs. After 24 hours the key may be used again.

    The act is in the event's own unit, ``back`` positions before it: so the answer knows its position.
    ``body_position`` is that of the event whose content is the whole body, if there is one; it has a unit of its own.
    """

    key: str
    digest: str
    status: int
    body: dict[str, Any]
    at: int
    body_position: int | None


def _answer(_key: str, _row: object, record: Record[events.CallAnswered]) -> Answer:
    event = record.event
    body = {**event.body, "position": record.position - event.back}
    return Answer(event.key, event.digest, event.status, body, record.at, record.position if record.digest else None)


_ANSWER_KEYS: Final[Mapping[type[events.Event], Keys]] = {events.CallAnswered: _call}

ANSWERS: ReadModel[Answer] = ReadModel(
    name="answers", version=4, types=_ANSWER_KEYS, fold=fold_each(_ANSWER_KEYS, _answer), row=Answer
)


class Value(Entity):
    """Where a value lies, whose text it and its key may hold, and who stored it (principal, user)."""

    key: str
    position: int
    authors: list[str]
    owner: list[str | None]


def _value(key: str, _row: object, record: Record[events.ValueSet]) -> Value | None:
    """The value; None if it was deleted."""
    event = record.event
    if event.deleted:
        return None
    return Value(key, record.position, list(event.authors), [event.principal, event.user])


_VALUE_KEYS: Final[Mapping[type[events.Event], Keys]] = {events.ValueSet: lambda record: (record.event.key,)}

VALUES: ReadModel[Value] = ReadModel(
    name="values",
    version=3,
    types=_VALUE_KEYS,
    fold=fold_each(_VALUE_KEYS, _value),
    row=Value,
    columns={"key": "TEXT"},
    indexes=(("key",),),
)
