"""Lists of messages and threads: SQLite finds each by an index that is in its order, however long the log is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from organism.log.driver import Connection, Pysqlite, statements
from organism.log.log import CHANGED, Query, ReadModel, Where
from organism.log.pages import page_statement
from organism.log.tables import definition
from organism.projections import messages, threads
from organism.server.lists import MESSAGES

THEN = 1000
OF_THREAD = Where("thread_id", "=", "thr-1")
BY, TO = Where("sender", "=", "ann"), Where("receiver", "=", "ann")
OF_AGENT = Where("", "=", "ann", any_of=("sender", "receiver"))
moments = pytest.mark.parametrize("at", [None, THEN], ids=["now", "then"])


@pytest.fixture
def tables() -> Iterator[Connection]:
    """The tables, empty: SQLite plans without knowing how long they are."""
    with closing(Pysqlite().connect(":memory:")) as connection:
        models = (messages.MODEL, threads.MODEL)
        for statement in (*statements("schema.sql").values(), *(s for model in models for s in definition(model))):
            connection.execute(statement)
        yield connection


def plan(tables: Connection, model: ReadModel, query: Query) -> list[str]:
    """The steps of a page and its total, but for how SQLite puts them together."""
    sql, values = page_statement(model, query, {})
    steps = [row[3] for row in tables.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
    return [step for step in steps if " kept_" in step or " t " in step or " r " in step or "B-TREE" in step]


def of_messages(*where: Where, at: int | None, text: str = "") -> Query:
    return Query(where, MESSAGES.order_by, MESSAGES.descending, text=text, at=at)


@moments
@pytest.mark.parametrize("where", [OF_THREAD, BY, TO], ids=lambda where: where.column)
def test_a_list_by_one_field_is_a_walk_along_its_index(tables: Connection, at: int | None, where: Where) -> None:
    steps = plan(tables, messages.MODEL, of_messages(where, at=at))
    assert any(step.startswith("SEARCH kept_messages USING INDEX kept_messages_") for step in steps)
    assert any(step.startswith("SEARCH kept_messages USING COVERING INDEX kept_messages_") for step in steps)
    assert not any("B-TREE" in step for step in steps)


@moments
def test_a_list_of_an_agent_looks_into_two_indexes(tables: Connection, at: int | None) -> None:
    steps = plan(tables, messages.MODEL, of_messages(OF_AGENT, at=at))
    assert not [step for step in steps if step.startswith("SCAN kept")]


@moments
def test_threads_of_a_status_are_found_and_counted_by_its_index(tables: Connection, at: int | None) -> None:
    steps = plan(tables, threads.MODEL, Query((Where("status", "=", "active"),), CHANGED, descending=True, at=at))
    assert any("USING INDEX rows_threads_0" in step for step in steps)
    assert any("USING COVERING INDEX rows_threads_0" in step for step in steps)


@moments
def test_all_threads_are_counted_without_reading_their_rows(tables: Connection, at: int | None) -> None:
    steps = plan(tables, threads.MODEL, Query((), CHANGED, descending=True, at=at))
    assert any(step.startswith("SCAN r USING COVERING INDEX rows_threads_0") for step in steps)
    assert not any("B-TREE" in step for step in steps)


@moments
@pytest.mark.parametrize("text", ["", "needle"])
def test_a_list_of_all_is_the_table_in_its_own_order(tables: Connection, at: int | None, text: str) -> None:
    assert not any("B-TREE" in step for step in plan(tables, messages.MODEL, of_messages(at=at, text=text)))
