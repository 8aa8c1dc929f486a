"""Marks: one for each rare kind of event in each thread, none for what every thread has."""

from __future__ import annotations

import pytest

from organism.model.events import APPROVAL, ORGANISM, RUN, THREAD, Event
from organism.projections.marks import MARKS, MODEL
from tests.projections.folding import Rows

COMMON = THREAD | ORGANISM | {"message_sent", "message_started", "message_handled", "step_recorded"}


def at(position: int, kind: str, thread: str | None, **data: object) -> Event:
    """An event that lies in the log."""
    event = Event(kind, dict(data), thread=thread)
    event.position = position
    return event


def marked(*events: Event) -> dict[str, int]:
    """The position of each mark that is left."""
    rows = Rows(MODEL)
    for event in events:
        rows.take(event)
    return {key: row["position"] for key, row in rows.rows.items()}


def test_a_mark_is_where_the_last_one_stands() -> None:
    found = marked(
        at(3, "message_dead", "t1"), at(5, "message_dead", "t2"), at(7, "message_retried", "t1"),
        at(9, "message_dead", "t1"),
    )  # fmt: skip
    assert found == {"message_dead t1": 9, "message_dead t2": 5, "message_retried t1": 7}


def test_the_entries_of_a_run_are_one_kind() -> None:
    assert marked(*(at(number, kind, "t") for number, kind in enumerate(sorted(RUN), 1))) == {"run t": len(RUN)}


def test_a_step_is_marked_once_nobody_knows_of_it() -> None:
    assert marked(at(1, "step_started", "t")) == {}
    assert marked(at(2, "step_started", "t", unknown=True)) == {"step_unknown t": 2}


@pytest.mark.parametrize("kind", sorted(COMMON))
def test_what_every_thread_has_leaves_no_mark(kind: str) -> None:
    assert kind not in MARKS


def test_what_belongs_to_no_thread_leaves_none() -> None:
    assert [marked(at(1, kind, None)) for kind in sorted(APPROVAL & MARKS.keys())] == [{}] * 4
