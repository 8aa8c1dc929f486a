"""The read models' tables: what is read of them is what was folded, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from organism.events.record import Record
from organism.events.vocabulary import MessageSent
from organism.log.batch import Batch
from organism.log.commits import Commits
from organism.model.times import iso
from organism.sqlite.driver import Connection, in_memory, statements
from organism.views.store import SqliteViews
from organism.views.tables import definition, stored
from organism.views.versions import shown_rows
from organism.views.views import ReadModel
from tests.log.engines import MESSAGES, START_US, sent

VIEWS = SqliteViews([MESSAGES])
YEAR_9999_US = 253_402_300_799_999_999
names = st.text(st.characters(exclude_categories=["Cs"]))


def opened(models: Sequence[ReadModel]) -> Connection:
    """A connection to empty tables in memory, set up as those to files are."""
    connection = in_memory()
    for statement in (
        *statements("log", "schema.sql").values(),
        *(s for model in stored(models) for s in definition(model)),
    ):
        connection.execute(statement)
    connection.execute(statements("log", "log.sql")["begin_meta"], ("", b""))
    return connection


@pytest.fixture(scope="module")
def tables() -> Iterator[Connection]:
    with closing(opened([MESSAGES])) as connection:
        yield connection


def message(
    position: int, key: str, to: str = "ann", thread: str | None = "thr-1", at: int = START_US
) -> Record[MessageSent]:
    record = sent(key, to=to)
    record.position, record.thread, record.at = position, thread, at
    return record


messages = st.builds(message, st.integers(1, 1 << 53), names, names, st.none() | names, st.integers(0, YEAR_9999_US))
ODD = "\\\"'/ü\u2028\U0001f600\x7f\x80"


@given(messages)
@example(message(1, "".join(map(chr, range(0x80))), ODD, None, 0))
def test_a_row_composed_by_sqlite_is_that_composed_in_memory(tables: Connection, record: Record[MessageSent]) -> None:
    (row,) = shown_rows(MESSAGES, [record])
    tables.execute("SAVEPOINT before")
    commits = Commits(VIEWS)
    commits.install(tables)
    folding = VIEWS.again(tables, None)
    folding.take(record.position, [record])
    commits.write_again(tables, 0, Batch(), folding)
    found = tables.execute("SELECT public, content_at FROM rows_messages").fetchall()
    tables.execute("ROLLBACK TO before")
    shown = MESSAGES.show(row)
    assert shown["sent_at"] == iso(record.at)
    assert found == [(orjson.dumps(shown), record.position)]
