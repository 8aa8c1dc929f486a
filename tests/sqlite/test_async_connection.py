"""Statements that are awaited: one that is cancelled has ended, and a transaction is whole or nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio

from organism.errors import Stopping
from organism.sqlite.async_connection import PORTION_ROWS, AsyncConnection, reading
from organism.sqlite.driver import Pysqlite, in_memory, set_up

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
MANY = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 1000) SELECT i FROM n"


def connect(file: Path) -> AsyncConnection:
    file.touch()
    return AsyncConnection(lambda: set_up(Pysqlite().connect(str(file)), "PRAGMA journal_mode = WAL"))


@pytest_asyncio.fixture
async def connection(tmp_path: Path) -> AsyncIterator[AsyncConnection]:
    connection = connect(tmp_path / "a")
    await connection.rows("CREATE TABLE t (i INTEGER NOT NULL UNIQUE)")
    yield connection
    await connection.close()


async def test_a_cancelled_statement_has_ended_when_its_caller_goes_on(connection: AsyncConnection) -> None:
    endless = asyncio.ensure_future(connection.rows(ENDLESS))
    await asyncio.wait({endless}, timeout=0)  # it is about to begin, or has begun
    endless.cancel()
    with pytest.raises(asyncio.CancelledError):
        await endless
    assert await connection.rows("SELECT 1") == [(1,)]
    await connection.truncate_wal()


async def test_rows_come_by_portions_and_whoever_stops_earlier_leaves_none_open(
    connection: AsyncConnection, tmp_path: Path
) -> None:
    assert [len(rows) async for rows in connection.portions(MANY)] == [PORTION_ROWS] * 3 + [1000 - 3 * PORTION_ROWS]
    await connection.execute_many("INSERT INTO t VALUES (?)", [(number,) for number in range(1000)])
    async with reading(Pysqlite(), tmp_path / "a") as reader, aclosing(reader.portions("SELECT i FROM t")) as portions:
        assert len(await anext(portions)) == PORTION_ROWS
    await connection.truncate_wal()
    assert (tmp_path / "a-wal").stat().st_size == 0


async def test_a_transaction_that_fails_or_is_cancelled_writes_nothing(connection: AsyncConnection) -> None:
    async def write(*numbers: int, then: str) -> None:
        async with connection.transaction():
            await connection.execute_many("INSERT INTO t VALUES (?)", [(number,) for number in numbers])
            await connection.rows(then)

    with pytest.raises(Pysqlite.errors):
        await write(1, 2, 2, then="SELECT 1")
    writing = asyncio.ensure_future(write(3, then=ENDLESS))
    await asyncio.wait({writing}, timeout=0)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert await connection.rows("SELECT i FROM t") == []
    await write(4, then="SELECT 1")
    assert await connection.rows("SELECT i FROM t") == [(4,)]


async def test_a_closed_one_takes_no_statement() -> None:
    connection = AsyncConnection(in_memory)
    await connection.rows("SELECT 1")
    await connection.close()
    with pytest.raises(Stopping):
        await connection.rows("SELECT 1")


async def test_a_file_that_cannot_be_opened_is_told_and_asked_again(tmp_path: Path) -> None:
    connection = AsyncConnection(partial(Pysqlite().connect, str(tmp_path / "a")))
    with pytest.raises(Pysqlite.errors):
        await connection.rows("SELECT 1")
    (tmp_path / "a").touch()
    assert await connection.rows("SELECT 1") == [(1,)]
    await connection.close()
