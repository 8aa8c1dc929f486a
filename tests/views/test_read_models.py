"""What the engine relies on, of every read model."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from organism.events.record import Record
from organism.events.vocabulary import EVENTS, Event
from organism.views.models import READ_MODELS
from organism.views.tables import Changes
from organism.views.versions import LiveRows, RowVersions, Version, folded_row, shown_rows, write
from organism.views.views import ReadModel
from tests.views.folding import kept
from tests.views.moves import lawful_logs

STORED_AS_JSON = [model for model in READ_MODELS if not model.shown]
each_model = pytest.mark.parametrize("model", READ_MODELS, ids=lambda model: model.name)


def test_models_have_names_of_their_own_known_events_and_indexes_of_their_columns() -> None:
    assert len({model.name for model in READ_MODELS}) == len(READ_MODELS)
    for model in READ_MODELS:
        assert set(model.types) <= set(EVENTS.values())
        assert {column for index in model.indexes for column in index} <= set(model.columns)


@pytest.mark.parametrize("model", STORED_AS_JSON, ids=lambda model: model.name)
@given(records=lawful_logs)
def test_every_column_is_a_field_of_the_row_public_or_private(model: ReadModel, records: list[Record[Event]]) -> None:
    for row in kept(model, records).values():
        assert all(column in row or f"_{column}" in row for column in model.columns)


@each_model
@given(records=lawful_logs, portion=st.integers(1, 40))
def test_folding_many_at_once_gives_what_folding_one_by_one_gives(
    model: ReadModel, records: list[Record[Event]], portion: int
) -> None:
    at_once = [records[begin : begin + portion] for begin in range(0, len(records), portion)]
    assert folded(model, at_once) == folded(model, [[record] for record in records])


def folded(model: ReadModel, units: list[list[Record[Event]]]) -> object:
    """The rows that there are in the end."""
    if model.is_live:
        live = LiveRows([model])
        for records in units:
            live.take(records)
        return list(live.rows(model))
    if model.shown:
        return [row for records in units for row in shown_rows(model, records)]
    standing: dict[str, Version] = {}
    for first, records in enumerate(units):
        versions = RowVersions([model], lambda _, key: standing.get(key))
        versions.current[model.name].greatest = "\U0010ffff"
        versions.take(first, records)
        found = versions.changes.get(model.name, Changes())
        ended = dict(found.ended)
        standing.update((key, (number, None)) for key, (number, _) in list(standing.items()) if number in ended)
        standing.update((key, (number, folded_row(*written[:2]))) for number, key, written in found.versions)
    return {key: write(model, row) for key, (_, row) in standing.items() if row is not None}


@each_model
@given(records=lawful_logs)
def test_a_fold_changes_no_event(model: ReadModel, records: list[Record[Event]]) -> None:
    before = copy.deepcopy([record.event for record in records])
    kept(model, records)
    assert [record.event for record in records] == before
