"""Read models kept as an engine keeps them, but in dicts: each row goes through JSON and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from organism import JsonObject
from organism.events.record import Record
from organism.events.vocabulary import (
    Declared,
    Event,
    MessageHandled,
    MessageSent,
    MessageStarted,
    OrganismStarted,
    Outcome,
)
from organism.log.rows.versions import folded_row, write
from organism.views.read_models import READ_MODELS
from organism.views.views import ReadModel

E = TypeVar("E", bound=Event)
FOLDED = tuple(model for model in READ_MODELS if not model.span)
"""The models that fold units as they come; those of spans fold whole spans (``tests/log/test_spans.py``)."""
AT = 1_768_168_067_000_000
"""2026-01-11T21:47:47Z."""


class Touched(dict[str, Any]):
    """The rows that a unit touches."""

    def __init__(self, rows: dict[str, Any]) -> None:
        super().__init__()
        self.before = dict(rows)

    def __missing__(self, key: str) -> Any:
        row = self[key] = self.before.get(key)
        return row


class Rows:
    """The rows of one read model."""

    def __init__(self, model: ReadModel) -> None:
        self.model = model
        self.rows: dict[str, JsonObject] = {}
        self._current: dict[str, Any] = {}

    def take(self, records: Sequence[Record[Event]]) -> list[tuple[str, JsonObject | None]]:
        """Fold a unit. Gives what it did: (key, public row or None)."""
        if not any(type(record.event) in self.model.types for record in records):
            return []
        touched = Touched(self._current)
        self.model.fold(touched, records)
        for key, row in touched.items():
            self.rows.pop(key, None)
            self._current.pop(key, None)
            if row is not None:
                shown, private, *_ = write(self.model, row)
                self._current[key] = folded_row(self.model, shown, private)
                self.rows[key] = {**json.loads(shown), **json.loads(private or b"{}")}
        left = {key: self.rows.get(key) for key in touched}
        return [(key, row and public(row)) for key, row in left.items() if row is not None or key in touched.before]


def public(row: JsonObject) -> JsonObject:
    """What leaves the engine."""
    return {field: value for field, value in row.items() if not field.startswith("_")}


def kept(model: ReadModel, records: Iterable[Record[Event]]) -> dict[str, JsonObject]:
    """The rows after the records, with the fold's own fields."""
    rows = Rows(model)
    for record in records:
        rows.take([record])
    return rows.rows


def fold(model: ReadModel, records: Iterable[Record[Event]]) -> dict[str, JsonObject]:
    """The public rows after the records."""
    return {key: public(row) for key, row in kept(model, records).items()}


def model_named(name: str) -> ReadModel:
    """The read model of this name."""
    return next(model for model in READ_MODELS if model.name == name)


class Scenario:
    """Events one after the other, each a second after the one before."""

    def __init__(self) -> None:
        self.records: list[Record[Any]] = []

    def add(self, event: E, thread: str | None = None, digest: str = "") -> Record[E]:
        """Add an event; ``digest`` is that of its content."""
        position = len(self.records) + 1
        record = Record(event, thread=thread, at=AT + position * 1_000_000, position=position, digest=digest)
        self.records.append(record)
        return record

    def starts(self, *names: str, removed: tuple[str, ...] = ()) -> Record[OrganismStarted]:
        """The organism starts with these listeners."""
        listeners = tuple(listener(name) for name in names)
        return self.add(OrganismStarted("hello", "0.1.0", "digest", listeners, life=1, clean=True, removed=removed))

    def sends(self, message: str, to: str, sender: str = "console") -> Record[MessageSent]:
        """A message in thread ``t``."""
        return self.add(MessageSent(message, sender, to, "Greeting", depth=1, token="call-1"), "t")

    def begins(self, message: str, agent: str, thread: str = "t") -> Record[MessageStarted]:
        """A handling starts."""
        return self.add(MessageStarted(message, agent, attempt=1, deadline=0, version="1"), thread)

    def ends(self, message: str, agent: str, outcome: Outcome = "done", thread: str = "t") -> Record[MessageHandled]:
        """A handling ends well."""
        return self.add(MessageHandled(message, agent, outcome, duration=1), thread)

    def rows(self, name: str) -> dict[str, JsonObject]:
        """The public rows of one read model after all events."""
        return {key: public(row) for key, row in self.kept(name).items()}

    def kept(self, name: str) -> dict[str, JsonObject]:
        """The same with their private fields."""
        return kept(model_named(name), self.records)


def listener(name: str, version: str = "1", peers: tuple[str, ...] = ()) -> Declared:
    """A listener as the configuration declares it."""
    return Declared(
        name=name,
        description=f"The {name}",
        is_agent=True,
        peers=peers,
        payload_class="handlers.hello.Greeting",
        model=None,
        version=version,
    )
