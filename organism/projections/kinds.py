"""Where each type of event stands: one row for each type and each span of a thousand positions that holds some of it.

Who looks for a type that is seldom or never there, in a million events, reads the spans that have it and no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from organism.log.log import ReadModel, Row
from organism.model.events import EVENT_TYPES, Event

SPAN_EVENTS: Final = 1024
"""Wherever the engine keeps rows as they stood a span ends, so that no row of it is kept twice."""


def span_of(position: int) -> int:
    """The span that holds the position; span ``n`` begins after position ``n * SPAN_EVENTS``."""
    return (position - 1) // SPAN_EVENTS


def keys(event: Event) -> Sequence[str]:
    """``SPAN TYPE``, rising with time."""
    return (_key(span_of(event.position), event.type),)


def _key(span: int, kind: str) -> str:
    return f"{span:016x} {kind}"


def apply(_key: str, row: Row | None, event: Event) -> Row:
    """The first one in a span says all."""
    return row or {"type": event.type, "span": span_of(event.position)}


def fold(rows: dict[str, Row | None], events: Sequence[Event]) -> None:
    """``apply`` for each event."""
    for span in range(span_of(events[0].position), span_of(events[-1].position) + 1):
        last = (span + 1) * SPAN_EVENTS
        is_whole = events[0].position > span * SPAN_EVENTS and events[-1].position <= last
        inside = events if is_whole else [event for event in events if span_of(event.position) == span]
        for kind in {event.type for event in inside}:
            key = _key(span, kind)
            if rows[key] is None:
                rows[key] = {"type": kind, "span": span}


MODEL = ReadModel(
    name="kinds",
    version=1,
    keys=dict.fromkeys(sorted(EVENT_TYPES), keys),
    apply=apply,
    columns={"type": "TEXT", "span": "INTEGER"},
    indexes=(("type", "span"),),
    fold=fold,
)
