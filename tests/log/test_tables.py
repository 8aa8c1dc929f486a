"""The read models' tables: what is read of them is what was folded, byte for byte."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from hashlib import sha256

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from organism.log.connect import SETTINGS
from organism.log.driver import Connection, Pysqlite
from organism.log.folds import Folds
from organism.log.log import ReadModel
from organism.log.queries import statements
from organism.log.tables import LAYOUT, definition, flush_parameters
from organism.log.views import Views
from organism.model.events import Event
from tests.log.engines import MESSAGES, MODELS, START_US, sent

YEAR_9999_US = 253_402_300_799_999_999
names = st.text(st.characters(exclude_categories=["Cs"]))


def opened(models: Sequence[ReadModel]) -> Connection:
    """A connection to empty tables in memory, set up as those to files are."""
    connection = Pysqlite().connect(":memory:")
    views = statements("views.sql")
    for setting in SETTINGS:
        connection.execute(setting).fetchall()
    for statement in (views["views_meta"], views["streams"], *(s for model in models for s in definition(model))):
        connection.execute(statement)
    connection.execute(views["begin_state"], ("", 0))
    return connection


@pytest.fixture(scope="module")
def tables() -> Iterator[Connection]:
    with closing(opened(MODELS)) as connection:
        yield connection


def folded(events: Sequence[Event], models: Sequence[ReadModel] = MODELS) -> Folds:
    folds = Folds(models, lambda _model, _key: None, 0)
    folds.owe(events)
    folds.settle()
    return folds


def message(position: int, key: str, to: str = "ann", thread: str | None = "thr-1", at: int = START_US) -> Event:
    event = sent(key, to=to)
    event.position, event.thread, event.at = position, thread, at
    return event


messages = st.builds(message, st.integers(1, 1 << 53), names, names, st.none() | names, st.integers(0, YEAR_9999_US))
ODD = "\\\"'/ü\u2028\U0001f600\x7f\x80"


@given(messages)
@example(message(1, "".join(map(chr, range(0x80))), ODD, None, 0))
def test_a_row_composed_by_sqlite_is_that_composed_in_memory(tables: Connection, event: Event) -> None:
    folds = folded([event])
    in_memory = folds.caches["messages"].written(event.data["message"])
    assert in_memory is not None
    tables.execute("SAVEPOINT before")
    views = Views(MODELS, "main")
    views.use(tables)
    views.flush(flush_parameters(folds, []))
    found = tables.execute("SELECT public, private, content_at FROM rows_messages").fetchall()
    tables.execute("ROLLBACK TO before")
    assert found == [in_memory[:3]]


def test_rows_that_are_written_twice_are_there_once() -> None:
    folds = folded([message(n, f"msg-{n}") for n in (1, 2)])
    with closing(opened(MODELS)) as connection:
        views = Views(MODELS, "main")
        views.use(connection)
        owed = flush_parameters(folds, [])
        views.flush(owed)
        views.flush(owed)
        assert connection.execute("SELECT content_at, key FROM rows_messages").fetchall() == [
            (1, "msg-1"),
            (2, "msg-2"),
        ]


def test_a_row_has_one_place() -> None:
    """Were a key ever used twice, the last row would stand, as in memory."""
    with closing(opened(MODELS)) as connection:
        views = Views(MODELS, "main")
        views.use(connection)
        for position in (1, 2):
            views.flush(flush_parameters(folded([message(position, "msg-1")]), []))
        assert connection.execute("SELECT content_at FROM rows_messages").fetchall() == [(2,)]


def test_rows_without_json_count_for_the_wal() -> None:
    """Else it would grow on while nothing but messages is written."""
    with closing(opened([MESSAGES])) as connection:
        views = Views([MESSAGES], "main")
        views.use(connection)
        folds = folded([message(n, f"msg-{n}") for n in range(1, 1000)], [MESSAGES])
        views.flush(flush_parameters(folds, []))
        assert views._wal_bytes > 100 * 1000  # noqa: SLF001 - seen from outside only after 32 MiB


def test_a_table_by_position_keeps_no_json() -> None:
    with closing(opened([MESSAGES])) as connection:
        columns = [row[1] for row in connection.execute("PRAGMA table_xinfo(kept_messages)")]
        indexes = [row[1] for row in connection.execute("PRAGMA index_list(kept_messages)")]
    assert columns == ["content_at", "key", "f_to", "f_names", "f_thread", "f_at"]
    assert sorted(indexes) == ["kept_messages_1", "sqlite_autoindex_kept_messages_1"]


def test_who_changes_what_is_made_of_a_model_changes_the_layout() -> None:
    """Else a file of before would be taken for one of now."""
    made = [statement for model in MODELS for statement in definition(model)]
    assert (LAYOUT, sha256("\n".join(made).encode()).hexdigest()[:16]) == (6, "fde97ef6f615b112")
