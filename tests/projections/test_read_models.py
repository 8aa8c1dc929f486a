"""What the engine relies on, of every read model."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from organism.log.log import ReadModel
from organism.log.snapshots import LiveRows
from organism.log.versions import Changes, RowVersions, Version, folded_row, shown_rows, write
from organism.model.events import EVENT_TYPES, Event
from organism.projections import READ_MODELS
from tests.projections.folding import Rows
from tests.projections.moves import lawful_logs

STORED_AS_JSON = [model for model in READ_MODELS if not model.shown]
each_model = pytest.mark.parametrize("model", READ_MODELS, ids=lambda model: model.name)


def test_models_have_names_of_their_own_known_events_and_indexes_of_their_columns() -> None:
    assert len({model.name for model in READ_MODELS}) == len(READ_MODELS)
    for model in READ_MODELS:
        assert set(model.types) <= EVENT_TYPES
        assert {column for index in model.indexes for column in index} <= set(model.columns)


@pytest.mark.parametrize("model", STORED_AS_JSON, ids=lambda model: model.name)
@given(events=lawful_logs)
def test_every_column_is_a_field_of_the_row_public_or_private(model: ReadModel, events: list[Event]) -> None:
    rows = Rows(model)
    for event in events:
        rows.take(event)
    for row in rows.rows.values():
        assert all(column in row or f"_{column}" in row for column in model.columns)


@each_model
@given(events=lawful_logs, portion=st.integers(1, 40))
def test_folding_many_at_once_gives_what_folding_one_by_one_gives(
    model: ReadModel, events: list[Event], portion: int
) -> None:
    at_once = [events[begin : begin + portion] for begin in range(0, len(events), portion)]
    assert folded(model, at_once) == folded(model, [[event] for event in events])


def folded(model: ReadModel, units: list[list[Event]]) -> object:
    """The rows that there are in the end."""
    if model.is_live:
        live = LiveRows([model])
        for events in units:
            live.take(events)
        return list(live.rows(model))
    if model.shown:
        return [row for events in units for row in shown_rows(model, events)]
    standing: dict[str, Version] = {}
    for first, events in enumerate(units):
        versions = RowVersions([model], lambda _, key: standing.get(key))
        versions.current[model.name].greatest = "\U0010ffff"
        changes: dict[str, Changes] = {}
        versions.take(first, events, changes)
        found = changes.get(model.name, Changes())
        ended = dict(found.ended)
        standing.update((key, (number, None)) for key, (number, _) in list(standing.items()) if number in ended)
        standing.update((key, (number, folded_row(*written[:2]))) for number, key, written in found.versions)
    return {key: write(model, row) for key, (_, row) in standing.items() if row is not None}


@each_model
@given(events=lawful_logs)
def test_a_fold_changes_no_event(model: ReadModel, events: list[Event]) -> None:
    before = copy.deepcopy([event.data for event in events])
    rows = Rows(model)
    for event in events:
        rows.take(event)
    assert [event.data for event in events] == before
