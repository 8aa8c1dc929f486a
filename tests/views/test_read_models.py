"""What the engine relies on, of every read model."""

from __future__ import annotations

import copy

from hypothesis import given
from hypothesis import strategies as st

from organism.events.record import Record
from organism.events.vocabulary import EVENTS, Event
from organism.views.read_models import READ_MODELS
from tests.views.folding import FOLDED, Rows, kept
from tests.views.moves import lawful_logs


def test_models_have_names_of_their_own_known_events_and_indexes_of_their_columns() -> None:
    assert len({model.name for model in READ_MODELS}) == len(READ_MODELS)
    for model in READ_MODELS:
        assert set(model.types) <= set(EVENTS.values())
        assert {column for index in model.indexes for column in index} <= set(model.columns)


@given(lawful_logs)
def test_every_column_is_a_field_of_the_row_public_or_private(records: list[Record[Event]]) -> None:
    for model in FOLDED:
        for row in kept(model, records).values():
            assert all(column in row or f"_{column}" in row for column in model.columns), model.name


@given(lawful_logs, st.integers(2, 40))
def test_folding_many_at_once_gives_what_folding_one_by_one_gives(records: list[Record[Event]], portion: int) -> None:
    for model in FOLDED:
        at_once = Rows(model)
        for begin in range(0, len(records), portion):
            at_once.take(records[begin : begin + portion])
        assert at_once.rows == kept(model, records), model.name


@given(lawful_logs)
def test_a_fold_changes_no_event(records: list[Record[Event]]) -> None:
    before = copy.deepcopy([record.event for record in records])
    for model in FOLDED:
        kept(model, records)
        assert [record.event for record in records] == before, model.name
