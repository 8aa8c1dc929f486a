"""What the engine relies on, of every read model."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from organism.log.folds import Folds
from organism.log.log import ReadModel, Row
from organism.model.events import EVENT_TYPES, Event
from organism.projections import READ_MODELS
from tests.projections.folding import Rows
from tests.projections.moves import lawful_logs

each_model = pytest.mark.parametrize("model", READ_MODELS, ids=lambda model: model.name)


def test_every_read_model_of_the_design_is_there_once() -> None:
    assert [model.name for model in READ_MODELS] == [
        "messages",
        "threads",
        "agents",
        "organism",
        "dead_letters",
        "closed_letters",
        "approvals",
        "indeterminate",
        "answers",
        "values",
        "usage",
        "marks",
        "kinds",
    ]


@each_model
def test_a_model_listens_to_known_events_only(model: ReadModel) -> None:
    assert set(model.keys) <= EVENT_TYPES


@each_model
def test_an_index_is_made_of_columns(model: ReadModel) -> None:
    assert {column for index in model.indexes for column in index} <= set(model.columns)


@each_model
@given(events=lawful_logs)
def test_every_column_is_a_field_of_the_row_public_or_private(model: ReadModel, events: list[Event]) -> None:
    rows = Rows(model)
    for event in events:
        rows.take(event)
    for row in rows.rows.values():
        assert all(column in row or f"_{column}" in row for column in model.columns)


@each_model
@given(events=lawful_logs)
def test_a_row_that_went_to_the_disk_and_back_folds_on_to_the_same_bytes(model: ReadModel, events: list[Event]) -> None:
    kept: dict[str, Row | None] = {}
    through_json = Rows(model)
    for event in events:
        through_json.take(event)
        for key in model.keys[event.type](event) if event.type in model.keys else ():
            kept[key] = model.apply(key, kept.get(key), event)
    live = {key: json.dumps(row) for key, row in kept.items() if row is not None}
    assert live == {key: json.dumps(row) for key, row in through_json.rows.items()}


@each_model
@given(events=lawful_logs, portion=st.integers(1, 40))
def test_folding_many_at_once_gives_what_folding_one_by_one_gives(
    model: ReadModel, events: list[Event], portion: int
) -> None:
    at_once = Folds([model], lambda _model, _key: None, 0)
    one_by_one = Folds([replace(model, fold=None)], lambda _model, _key: None, 0)
    for begin in range(0, len(events), portion):
        at_once.owe(events[begin : begin + portion])
        at_once.settle()
    for event in events:
        one_by_one.owe([event])
        one_by_one.settle()
    assert written(at_once) == written(one_by_one)


def written(folds: Folds) -> dict[str, tuple[object, ...]]:
    """The rows there are, as they would be kept."""
    (cache,) = folds.caches.values()
    return {
        key: (*kept[:4], *kept[4])
        for key, row in cache.dirty.items()
        if row is not None
        for kept in (cache.write(row),)
    }


@each_model
@given(events=lawful_logs)
def test_a_fold_changes_no_event(model: ReadModel, events: list[Event]) -> None:
    before = copy.deepcopy([event.data for event in events])
    rows = Rows(model)
    for event in events:
        rows.take(event)
    assert [event.data for event in events] == before
