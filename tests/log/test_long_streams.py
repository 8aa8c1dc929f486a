"""A page of a long stream costs as much as one of a short stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from organism.events.record import Content, Record, Unit
from organism.events.stored import StoredUnit
from organism.events.vocabulary import MessageSent, ThreadCreated
from organism.log import units
from organism.log.encode import parse
from organism.log.log import EventFilter
from organism.sqlite.driver import Connection, in_memory, statements
from tests.log.engines import START_US
from tests.server.random_logs import on_disk

SHORT, LONG = 100, 20_000
PAGE = 10
SQL = statements("log", "log.sql")


@pytest.fixture
def tables() -> Iterator[Connection]:
    """The tables, with a short and a long stream of units, all next to each other."""
    with closing(in_memory()) as connection:
        for statement in statements("log", "schema.sql").values():
            connection.execute(statement)
        for stream, length in (("short", SHORT), ("long", LONG)):
            firsts = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?) SELECT ?, n FROM n"
            connection.execute(f"INSERT INTO streams {firsts}", (length, stream))
        yield connection


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_page_of_a_long_stream_takes_no_more_steps_of_sqlite(tables: Connection, direction: str) -> None:
    def steps(stream: str) -> int:
        count = [0]

        def note() -> bool:
            count[0] += 1
            return False

        tables.set_progress_handler(note, 1)
        tables.execute(SQL[f"streams_{direction}"], (f'[["{stream}",{LONG}]]', 1, LONG, PAGE)).fetchall()
        tables.set_progress_handler(None, 1)
        return count[0]

    assert steps("long") < 1.1 * steps("short")


def message(number: int, thread: str) -> Record[MessageSent]:
    sent = MessageSent(f"msg-{number:016x}", "greeter", "shouter", "Greeting", depth=1, token="c")
    return Record(sent, Content(thread, b"{}", b""))


@pytest.mark.parametrize("reverse", [False, True])
async def test_no_more_units_are_decoded_than_the_page_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, reverse: bool
) -> None:
    log = await on_disk(tmp_path / "log")
    thread = "thr-0000000000000001"
    log.append(Unit(thread, [Record(ThreadCreated())], START_US, {}))
    for number in range(SHORT):
        log.append(Unit(thread, [message(number, thread)], START_US, {}))
    await log.commit(Unit(thread, [message(SHORT, thread)], START_US, {}))
    decoded = []

    def noted(*arguments: Any) -> StoredUnit:
        decoded.append(arguments[0])
        return parse(*arguments)

    monkeypatch.setattr(units, "parse", noted)
    found = await log.read(0, None, EventFilter((thread,), (MessageSent,)), PAGE, reverse=reverse)
    assert len(found) == PAGE
    assert len(decoded) <= PAGE + 1
    await log.close()
