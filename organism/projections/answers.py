"""The answers that were given to calls with an idempotency key, to be given again byte for byte."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from organism.log.log import Keys, ReadModel, Row, fold_each
from organism.model.events import Event


def keys(event: Event) -> Sequence[str]:
    """``METHOD PATH KEY``: neither of the first two has a space in it."""
    data = event.data
    return (f"{data['method']} {data['path']} {data['key']}",)


def apply(_key: str, _row: Row | None, event: Event) -> Row:
    """What the first call was bound to and what it got; ``at`` in µs. After 24 hours the key may be used again.

    The act is in the event's own unit, ``back`` positions before it: so the answer knows its position. ``said_at`` is
    the position of the event whose content is the whole body, if there is one: it follows in a unit of its own.
    """
    data = event.data
    body = {**data["body"], "position": event.position - data["back"]}
    said_at = event.position if "content" in data else None
    return {"digest": data["digest"], "status": data["status"], "body": body, "at": event.at, "said_at": said_at}


KEYS: Final[Mapping[str, Keys]] = {"call_answered": keys}

MODEL = ReadModel(
    name="answers",
    version=2,
    types=KEYS,
    fold=fold_each(KEYS, apply),
)
