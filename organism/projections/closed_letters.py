"""The dead letters that are open no more: for whoever acts on one a second time.

A message becomes a dead letter once at most: what is sent again gets an id of its own. So what is closed stays closed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from organism.log.log import Keys, ReadModel, Row, fold_each
from organism.model.events import Event


def replayed_id(event: Event) -> Sequence[str]:
    """The dead letter that was sent again, under a new id."""
    return (event.data["dead"],)


def discarded_id(event: Event) -> Sequence[str]:
    """The dead letter that was discarded."""
    return (event.data["message"],)


def apply(_key: str, _row: Row | None, event: Event) -> Row:
    """How it was closed: ``replayed`` or ``discarded``."""
    return {"status": event.type.removeprefix("message_")}


KEYS: Final[Mapping[str, Keys]] = {"message_replayed": replayed_id, "message_discarded": discarded_id}

MODEL = ReadModel(
    name="closed_letters",
    version=1,
    types=KEYS,
    fold=fold_each(KEYS, apply),
)
