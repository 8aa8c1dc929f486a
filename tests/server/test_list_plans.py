"""Lists of messages: SQLite finds each by an index that is in its order, however long the log is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from organism.log.driver import Connection, Pysqlite
from organism.log.log import Query, Where
from organism.log.pages import AS_WRITTEN, Moment, page_statement
from organism.log.tables import definition
from organism.projections import messages
from organism.server.routes.messages import MESSAGES

THEN = Moment({}, position=1000, milestone=0)
OF_THREAD = Where("thread_id", "=", "thr-1")
BY, TO = Where("sender", "=", "ann"), Where("receiver", "=", "ann")
OF_AGENT = MESSAGES.filters["agent"]("ann")
SINCE = Where("sent_at", ">=", 1)
moments = pytest.mark.parametrize("moment", [AS_WRITTEN, THEN], ids=["now", "then"])


@pytest.fixture
def tables() -> Iterator[Connection]:
    """The tables, empty: SQLite plans without knowing how long they are."""
    with closing(Pysqlite().connect(":memory:")) as connection:
        for statement in definition(messages.MODEL):
            connection.execute(statement)
        connection.execute("CREATE TABLE content (position INTEGER PRIMARY KEY, salt BLOB, json BLOB)")
        yield connection


def plan(tables: Connection, moment: Moment, *where: Where, text: str = "") -> list[str]:
    """The steps of a page and its total, but for how SQLite puts them together."""
    query = Query(where, MESSAGES.order_by, MESSAGES.descending, text=text)
    sql, values = page_statement(messages.MODEL, query, moment)
    steps = [row[3] for row in tables.execute(f"EXPLAIN QUERY PLAN {sql}", values)]
    return [step for step in steps if " kept_" in step or "B-TREE" in step]


@moments
@pytest.mark.parametrize("where", [OF_THREAD, BY, TO], ids=lambda where: where.column)
def test_a_list_by_one_field_is_a_walk_along_its_index(tables: Connection, moment: Moment, where: Where) -> None:
    page, total = plan(tables, moment, where)
    assert page.startswith("SEARCH kept_messages USING INDEX kept_messages_")
    assert total.startswith("SEARCH kept_messages USING COVERING INDEX kept_messages_")
    assert ("rowid<?" in page) == (moment is THEN)


@pytest.mark.parametrize("where", [OF_THREAD, BY, TO], ids=lambda where: where.column)
def test_rows_laid_over_a_list_are_not_looked_for_in_its_table(tables: Connection, where: Where) -> None:
    laid = Moment({"msg-1": (b"{}", b"", 7, 0, (7, "thr-1", "ann", "ann", 1, "Greeting", None))})
    totals = [step for step in plan(tables, laid, where) if "COVERING" in step]
    assert len(totals) == 1
    assert totals[0].startswith("SEARCH kept_messages USING COVERING INDEX")


@moments
def test_a_list_of_an_agent_looks_into_two_indexes(tables: Connection, moment: Moment) -> None:
    steps = plan(tables, moment, OF_AGENT)
    assert not [step for step in steps if step.startswith("SCAN")]
    assert {step.split()[4] for step in steps if step.startswith("SEARCH")} == {"kept_messages_2", "kept_messages_3"}


@moments
@pytest.mark.parametrize("text", ["", "needle"])
def test_a_list_of_all_is_the_table_in_its_own_order(tables: Connection, moment: Moment, text: str) -> None:
    page = plan(tables, moment, text=text)[0]
    assert page == (
        "SEARCH kept_messages USING INTEGER PRIMARY KEY (rowid<?)" if moment is THEN else "SCAN kept_messages"
    )
    assert not [step for step in plan(tables, moment, SINCE) if "B-TREE" in step]


def test_the_total_since_a_time_is_counted_in_an_index(tables: Connection) -> None:
    assert (
        plan(tables, AS_WRITTEN, SINCE)[-1] == "SEARCH kept_messages USING COVERING INDEX kept_messages_4 (f_sent_at>?)"
    )
