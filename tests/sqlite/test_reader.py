"""Reads beside the loop: what a cancelled one leaves, what those after it get, what keeps a process alive."""

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
from organism.sqlite.reader import Readers, Reading
from tests.log.engines import turn

COUNTING = "WITH RECURSIVE n (x) AS (SELECT begun() UNION ALL SELECT x + 1 FROM n{}) SELECT max(x) FROM n"
ENDLESS, SLOW = COUNTING.format(""), COUNTING.format(" WHERE x < 1000000")


def first_of(sql: str) -> Reading[Any]:
    ((found,),) = yield sql, ()
    return found


@pytest.fixture
def begun() -> threading.Event:
    """Set by a statement that calls ``begun()``."""
    return threading.Event()


@pytest.fixture
async def readers(tmp_path: Path, begun: threading.Event) -> AsyncIterator[Readers]:
    (tmp_path / "some.sqlite").touch()

    def note() -> int:
        begun.set()
        return 1

    def connect() -> Connection:
        connection = dbapi2.connect(str(tmp_path / "some.sqlite"), isolation_level=None, check_same_thread=False)
        connection.create_function("begun", 0, note)
        opened: Connection = connection
        return opened

    made = Readers(connect, Pysqlite(), lambda error: LogUnavailable(str(error)))
    yield made
    await made.close()


async def test_a_cancelled_read_is_interrupted_and_the_next_one_is_answered(
    readers: Readers, begun: threading.Event
) -> None:
    endless = asyncio.ensure_future(readers.read(first_of, ENDLESS))
    await asyncio.to_thread(begun.wait)
    waiting = asyncio.ensure_future(readers.read(first_of, "SELECT 7"))
    endless.cancel()
    with pytest.raises(asyncio.CancelledError):
        await endless
    assert await waiting == 7


async def test_one_that_is_cancelled_before_its_turn_interrupts_no_other(
    readers: Readers, begun: threading.Event
) -> None:
    first = asyncio.ensure_future(readers.read(first_of, SLOW))
    await asyncio.to_thread(begun.wait)
    second = asyncio.ensure_future(readers.read(first_of, "SELECT 7"))
    await turn()
    second.cancel()
    assert await first == 1_000_000
    with pytest.raises(asyncio.CancelledError):
        await second


async def test_a_read_that_takes_the_loop_too_long_is_done_beside_it(readers: Readers) -> None:
    assert await readers.read_quickly(first_of, SLOW) == 1_000_000


async def test_while_all_is_closed_reads_wait_and_what_cannot_wait_is_refused(readers: Readers) -> None:
    assert await readers.read(first_of, "SELECT 7") == 7
    async with readers.closed():
        reading = asyncio.ensure_future(readers.read_quickly(first_of, "SELECT 7"))
        with pytest.raises(LogUnavailable):
            readers.read_now(first_of, "SELECT 7")
        assert not reading.done()
    assert await reading == 7


async def test_what_the_driver_says_is_explained(readers: Readers) -> None:
    with pytest.raises(LogUnavailable, match="no such table"):
        await readers.read(first_of, "SELECT x FROM nowhere")
    with pytest.raises(LogUnavailable, match="no such table"):
        readers.read_now(first_of, "SELECT x FROM nowhere")


async def test_no_reading_thread_keeps_a_process_alive(readers: Readers) -> None:
    before = set(threading.enumerate())
    assert await readers.read(first_of, "SELECT 7") == 7
    assert all(thread.daemon for thread in set(threading.enumerate()) - before)
