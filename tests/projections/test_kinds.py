"""Kinds: one row for each type of event in each span of the log that holds some of it."""

from __future__ import annotations

from organism.log.cache import SPAN_EVENTS as ENGINE_SPAN_EVENTS
from organism.log.folds import Folds
from organism.model.events import Event
from organism.projections.kinds import MODEL, SPAN_EVENTS


def at(position: int, kind: str) -> Event:
    """An event that lies in the log."""
    event = Event(kind, {})
    event.position = position
    return event


def kept(*events: Event) -> list[tuple[str, int]]:
    """The type and the span of each row, in the order of the keys."""
    folds = Folds([MODEL], lambda _model, _key: None, 0)
    folds.owe(events)
    folds.settle()
    cache = folds.caches["kinds"]
    rows = {**cache.pending, **cache.dirty}
    return [(row["type"], row["span"]) for _, row in sorted(rows.items())]


def test_a_span_has_one_row_for_each_type() -> None:
    events = [at(position, "step_recorded") for position in range(1, 10)]
    assert kept(*events, at(10, "value_set"), at(11, "value_set")) == [("step_recorded", 0), ("value_set", 0)]


def test_the_next_span_begins_after_its_last_position() -> None:
    events = [at(position, "step_recorded") for position in range(SPAN_EVENTS - 1, SPAN_EVENTS + 3)]
    assert kept(*events) == [("step_recorded", 0), ("step_recorded", 1)]


def test_spans_end_with_the_engines_so_that_no_row_is_kept_as_it_stood() -> None:
    assert ENGINE_SPAN_EVENTS % SPAN_EVENTS == 0
