"""The values that the key_value tools keep, by key. The text of a value is the content of the event that set it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from organism.log.log import Keys, ReadModel, Row, fold_each
from organism.model.events import Event


def keys(event: Event) -> Sequence[str]:
    return (event.data["key"],)


def apply(key: str, _row: Row | None, event: Event) -> Row | None:
    """Where the value lies, and whose text it and its key may hold; None if it was deleted."""
    if "deleted" in event.data:
        return None
    return {"key": key, "position": event.position, "authors": event.data.get("authors", [])}


KEYS: Final[Mapping[str, Keys]] = {"value_set": keys}

MODEL = ReadModel(
    name="values",
    version=2,
    types=KEYS,
    fold=fold_each(KEYS, apply),
    columns={"key": "TEXT"},
    indexes=(("key",),),
)
