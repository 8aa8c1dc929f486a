"""Lists of messages and threads: SQLite finds each by an index that is in its order, however long the log is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import product

import pytest

from organism.log.rows.pages import page_statement
from organism.log.rows.tables import definition, stored
from organism.server.http.lists import MESSAGES
from organism.sqlite.driver import Connection, in_memory, statements
from organism.views import threads
from organism.views.read_models import READ_MODELS
from organism.views.views import CHANGED, KEY, Query, ReadModel, Where

MODELS = {model.name: model for model in READ_MODELS}
THEN = 1000
OF_THREAD = Where("thread_id", "=", "thr-1")
BY, TO = Where("from", "=", "ann"), Where("to", "=", "ann")
OF_AGENT = Where("", "=", "ann", any_of=("from", "to"))
moments = pytest.mark.parametrize("at", [None, THEN], ids=["now", "then"])


@pytest.fixture
def tables() -> Iterator[Connection]:
    """The tables, empty: SQLite plans without knowing how long they are."""
    with closing(in_memory()) as connection:
        for statement in (
            *statements("log", "schema.sql").values(),
            *(s for model in stored(READ_MODELS) for s in definition(model)),
        ):
            connection.execute(statement)
        yield connection


def plan(tables: Connection, model: ReadModel, query: Query) -> list[str]:
    """The steps of a page and its total, but for how SQLite puts them together."""
    sql, values = page_statement(model, query, MODELS)
    steps = [row[3] for row in tables.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
    return [step for step in steps if " kept_" in step or " t " in step or " r " in step or "B-TREE" in step]


def of_messages(*where: Where, at: int | None, text: str = "", order: str = "asc") -> Query:
    return Query(where, *MESSAGES.orders[order], text=text, at=at)


@moments
def test_each_list_is_a_walk_along_an_index_that_counts_it_too(tables: Connection, at: int | None) -> None:
    for where, order in product((OF_THREAD, BY, TO), MESSAGES.orders):
        steps = plan(tables, threads.MESSAGES, of_messages(where, at=at, order=order))
        assert any(step.startswith("SEARCH r USING INDEX rows_messages_") for step in steps), where
        assert any(step.startswith("SEARCH r USING COVERING INDEX rows_messages_") for step in steps), where
        assert not any("B-TREE" in step for step in steps), where
    steps = plan(tables, threads.MESSAGES, of_messages(OF_AGENT, at=at))
    assert not [step for step in steps if step.startswith("SCAN kept")]
    for number, where in enumerate((Where("status", "=", "active"), Where("session_id", "=", "ses-1"))):
        steps = plan(tables, threads.THREADS, Query((where,), CHANGED, descending=True, at=at))
        assert any(f"USING INDEX rows_threads_{number}" in step for step in steps), where
        assert any(f"USING COVERING INDEX rows_threads_{number}" in step for step in steps), where


@moments
def test_lists_of_all_are_counted_without_reading_rows_and_need_no_sorting(tables: Connection, at: int | None) -> None:
    steps = plan(tables, threads.THREADS, Query((), CHANGED, descending=True, at=at))
    assert any(step.startswith("SCAN r USING COVERING INDEX rows_threads_") for step in steps)
    for text in ("", "needle"):
        steps += plan(tables, threads.MESSAGES, of_messages(at=at, text=text))
    assert not any("B-TREE" in step for step in steps)


@moments
def test_what_is_counted_with_a_thread_is_found_by_its_id(tables: Connection, at: int | None) -> None:
    sql, values = page_statement(threads.THREADS, Query((), CHANGED, descending=True, at=at), MODELS)
    steps = [row[3] for row in tables.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
    for table in ("messages", "approvals", "dead_letters", "indeterminate"):
        assert any(f"INDEX rows_{table}_" in step and "f_thread_id=?" in step for step in steps), table


@moments
def test_the_threads_of_a_snapshot_are_found_without_sorting_all_that_ended(tables: Connection, at: int | None) -> None:
    ended = Query((Where("status", "<>", "active"),), CHANGED, descending=True, at=at)
    assert not any("B-TREE" in step for step in plan(tables, threads.THREADS, ended))


@pytest.mark.parametrize("model", [threads.MESSAGES, threads.THREADS], ids=lambda model: str(model.name))
@pytest.mark.parametrize("pattern", ["msg-01*", "*abcdef"], ids=["beginning", "end"])
def test_an_id_is_found_by_a_walk_along_the_keys_alone(tables: Connection, model: ReadModel, pattern: str) -> None:
    query = Query((Where(KEY, "glob", pattern),), descending=True, at=THEN, is_counted=False)
    walk, *more = plan(tables, model, query)
    assert " r USING INDEX " in walk
    assert not [step for step in more if "B-TREE" in step or step.startswith("SCAN r")]
