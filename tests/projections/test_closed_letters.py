"""The dead letters that are open no more."""

from __future__ import annotations

from hypothesis import given

from organism.model.events import Event
from organism.projections import dead_letters
from tests.projections.folding import fold
from tests.projections.moves import lawful_logs


@given(lawful_logs)
def test_each_dead_letter_is_either_open_or_closed_and_says_how(events: list[Event]) -> None:
    made = {event.data["message"] for event in events if event.type in {"message_dead", "message_refused"}}
    replayed = {event.data["dead"]: {"status": "replayed"} for event in events if event.type == "message_replayed"}
    discarded = {
        event.data["message"]: {"status": "discarded"} for event in events if event.type == "message_discarded"
    }
    closed = fold(dead_letters.CLOSED_MODEL, events)
    assert closed == replayed | discarded
    assert set(closed) == made - set(fold(dead_letters.MODEL, events))
