"""What is looked up by a key of its own: the answers to idempotency keys, and the values of the key_value tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from organism.log.log import Keys, ReadModel, Row, fold_each
from organism.model.events import Event


def _call(event: Event) -> Sequence[str]:
    """``METHOD PATH KEY``: neither of the first two has a space in it."""
    data = event.data
    return (f"{data['method']} {data['path']} {data['key']}",)


def _answer(_key: str, _row: Row | None, event: Event) -> Row:
    """What the first call was bound to and what it got; ``at`` in µs. After 24 hours the key may be used again.

    The act is in the event's own unit, ``back`` positions before it: so the answer knows its position. ``said_at`` is
    the position of the event whose content is the whole body, if there is one: it follows in a unit of its own.
    """
    data = event.data
    body = {**data["body"], "position": event.position - data["back"]}
    said_at = event.position if "content" in data else None
    return {"digest": data["digest"], "status": data["status"], "body": body, "at": event.at, "said_at": said_at}


_ANSWER_KEYS: Final[Mapping[str, Keys]] = {"call_answered": _call}

ANSWERS = ReadModel(name="answers", version=2, types=_ANSWER_KEYS, fold=fold_each(_ANSWER_KEYS, _answer))


def _value(key: str, _row: Row | None, event: Event) -> Row | None:
    """Where the value lies, and whose text it and its key may hold; None if it was deleted."""
    if "deleted" in event.data:
        return None
    return {"key": key, "position": event.position, "authors": event.data.get("authors", [])}


_VALUE_KEYS: Final[Mapping[str, Keys]] = {"value_set": lambda event: (event.data["key"],)}

VALUES = ReadModel(
    name="values",
    version=2,
    types=_VALUE_KEYS,
    fold=fold_each(_VALUE_KEYS, _value),
    columns={"key": "TEXT"},
    indexes=(("key",),),
)
