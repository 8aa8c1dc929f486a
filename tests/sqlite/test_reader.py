"""Reads in a thread of their own: what a cancelled one leaves, what later ones get, what keeps a process alive."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pysqlite3 import dbapi2

from organism.errors import LogUnavailable
from organism.sqlite.driver import Connection, Pysqlite
from organism.sqlite.reader import Reader
from tests.log.engines import turn

COUNTING = (
    "WITH RECURSIVE n (x) AS (SELECT begun() UNION ALL SELECT x + 1 FROM n WHERE x < {}) SELECT ended(max(x)) FROM n"
)
SLOW, SECONDS_LONG = COUNTING.format(1_000_000), COUNTING.format(20_000_000)


def first_of(connection: Connection, sql: str) -> Any:
    ((found,),) = connection.execute(sql)
    return found


@pytest.fixture
def begun() -> threading.Event:
    """Set by a statement that counts, when it begins."""
    return threading.Event()


@pytest.fixture
def ended() -> threading.Event:
    """The same, when it has counted to the end."""
    return threading.Event()


@pytest.fixture
async def reader(tmp_path: Path, begun: threading.Event, ended: threading.Event) -> AsyncIterator[Reader]:
    (tmp_path / "some.sqlite").touch()

    def begin() -> int:
        begun.set()
        return 1

    def end(count: int) -> int:
        ended.set()
        return count

    def connect() -> Connection:
        connection = dbapi2.connect(str(tmp_path / "some.sqlite"), isolation_level=None, check_same_thread=False)
        connection.create_function("begun", 0, begin)
        connection.create_function("ended", 1, end)
        opened: Connection = connection
        return opened

    made = Reader(connect, Pysqlite(), lambda error: LogUnavailable(str(error)))
    yield made
    await made.close()


async def test_a_cancelled_read_is_interrupted_and_the_next_one_is_answered(
    reader: Reader, begun: threading.Event, ended: threading.Event
) -> None:
    long = asyncio.ensure_future(reader.read(first_of, SECONDS_LONG))
    await asyncio.to_thread(begun.wait)
    waiting = asyncio.ensure_future(reader.read(first_of, "SELECT 7"))
    long.cancel()
    with pytest.raises(asyncio.CancelledError):
        await long
    assert await waiting == 7
    assert not ended.is_set()


async def test_one_that_is_cancelled_before_its_turn_interrupts_no_other(
    reader: Reader, begun: threading.Event
) -> None:
    first = asyncio.ensure_future(reader.read(first_of, SLOW))
    await asyncio.to_thread(begun.wait)
    second = asyncio.ensure_future(reader.read(first_of, "SELECT 7"))
    await turn()
    second.cancel()
    assert await first == 1_000_000
    with pytest.raises(asyncio.CancelledError):
        await second


async def test_a_read_that_takes_the_loop_too_long_is_done_beside_it(reader: Reader) -> None:
    assert await reader.read_quickly(first_of, SLOW) == 1_000_000


async def test_while_all_is_closed_reads_wait_and_what_cannot_wait_is_refused(reader: Reader) -> None:
    assert await reader.read(first_of, "SELECT 7") == 7
    async with reader.closed():
        reading = asyncio.ensure_future(reader.read_quickly(first_of, "SELECT 7"))
        with pytest.raises(LogUnavailable):
            reader.read_now(first_of, "SELECT 7")
        assert not reading.done()
    assert await reading == 7


async def test_what_the_driver_says_is_explained(reader: Reader) -> None:
    with pytest.raises(LogUnavailable, match="no such table"):
        await reader.read(first_of, "SELECT x FROM nowhere")
    with pytest.raises(LogUnavailable, match="no such table"):
        reader.read_now(first_of, "SELECT x FROM nowhere")


async def test_no_reading_thread_keeps_a_process_alive(reader: Reader) -> None:
    before = set(threading.enumerate())
    assert await reader.read(first_of, "SELECT 7") == 7
    assert all(thread.daemon for thread in set(threading.enumerate()) - before)
