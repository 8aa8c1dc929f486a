"""Read models kept as an engine keeps them, but in dicts: fed event by event, each row through JSON and back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from organism.log.log import ReadModel, Row
from organism.model.events import Event
from organism.projections import READ_MODELS

AT = 1_768_168_067_000_000
"""2026-01-11T21:47:47Z."""


class Touched(dict[str, Any]):
    """The rows that an event touches."""

    def __init__(self, rows: dict[str, Row]) -> None:
        super().__init__()
        self.before = dict(rows)

    def __missing__(self, key: str) -> Row | None:
        row = self[key] = self.before.get(key)
        return row


class Rows:
    """The rows of one read model. ``changes`` gives what each event did: (key, public row or None)."""

    def __init__(self, model: ReadModel) -> None:
        self.model = model
        self.rows: dict[str, Row] = {}

    def take(self, event: Event) -> list[tuple[str, Row | None]]:
        """Fold one event."""
        if event.type not in self.model.types:
            return []
        touched = Touched(self.rows)
        self.model.fold(touched, (event,))
        changes = [(key, self.model.show(row) if self.model.shown else row) for key, row in touched.items()]
        for key, row in changes:
            self.rows.pop(key, None)
            if row is not None:
                self.rows[key] = json.loads(json.dumps(row))
        return [(key, row and public(row)) for key, row in changes if row is not None or key in touched.before]


def public(row: Row) -> Row:
    """What leaves the engine."""
    return {field: value for field, value in row.items() if not field.startswith("_")}


def kept(model: ReadModel, events: Iterable[Event]) -> dict[str, Row]:
    """The rows after the events, with the fold's own fields."""
    rows = Rows(model)
    for event in events:
        rows.take(event)
    return rows.rows


def fold(model: ReadModel, events: Iterable[Event]) -> dict[str, Row]:
    """The public rows after the events."""
    return {key: public(row) for key, row in kept(model, events).items()}


def model_named(name: str) -> ReadModel:
    """The read model of this name."""
    return next(model for model in READ_MODELS if model.name == name)


class Story:
    """Events told one after the other, each a second after the one before, for tests that show one thing."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def tell(self, kind: str, thread: str | None = None, /, **data: Any) -> Event:
        """Add an event; ``sender`` stands for the field ``from``."""
        if "sender" in data:
            data["from"] = data.pop("sender")
        event = Event(kind, data, None, thread)
        event.position = len(self.events) + 1
        event.at = AT + event.position * 1_000_000
        self.events.append(event)
        return event

    def starts(self, *names: str, removed: tuple[str, ...] = ()) -> Event:
        """The organism starts with these listeners."""
        extra: dict[str, Any] = {"removed": list(removed)} if removed else {}
        listeners = [listener(name) for name in names]
        return self.tell(
            "organism_started", name="hello", version="0.1.0", life=1, clean=True, listeners=listeners, **extra
        )

    def sends(self, message: str, to: str, sender: str = "console", **more: Any) -> Event:
        """A message in thread ``t``."""
        return self.tell("message_sent", "t", message=message, sender=sender, to=to, type="Greeting", depth=1, **more)

    def begins(self, message: str, agent: str, thread: str = "t") -> Event:
        """A handling starts."""
        return self.tell("message_started", thread, message=message, agent=agent, attempt=1)

    def ends(self, message: str, agent: str, outcome: str = "done", thread: str = "t") -> Event:
        """A handling ends well."""
        return self.tell("message_handled", thread, message=message, agent=agent, outcome=outcome, duration=1)

    def rows(self, name: str) -> dict[str, Row]:
        """The public rows of one read model after all that was told."""
        return {key: public(row) for key, row in self.kept(name).items()}

    def kept(self, name: str) -> dict[str, Row]:
        """The same with their private fields."""
        rows = Rows(model_named(name))
        for event in self.events:
            rows.take(event)
        return rows.rows


def listener(name: str, **more: Any) -> dict[str, Any]:
    """A listener as ``organism_started`` names it."""
    return {
        "name": name,
        "description": f"The {name}",
        "is_agent": True,
        "peers": [],
        "payload_class": "handlers.hello.Greeting",
        "model": None,
        "version": "1",
        **more,
    }
