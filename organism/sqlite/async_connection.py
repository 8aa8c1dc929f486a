"""A connection for what is not hot: its statements are awaited, and run in a thread of aiosqlite's.

The log's writer and its hot reads have threads of their own (``thread.py``, ``reader.py``).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import aiosqlite

from organism.errors import Stopping
from organism.sqlite.driver import BUSY_MS, Connection, Parameters, Pysqlite

T = TypeVar("T")
Row = tuple[Any, ...]
PORTION_ROWS: Final = 256
INTERRUPT_SECONDS: Final = 0.01
"""How long a cancelled statement has to end until it is interrupted again: it may not have begun the first time."""


@asynccontextmanager
async def reading(driver: Pysqlite, file: Path) -> AsyncIterator[AsyncConnection]:
    """One that only reads a file, also while another process writes it."""
    connection = AsyncConnection(partial(driver.connect_to_read, file))
    try:
        yield connection
    finally:
        await connection.close()


class AsyncConnection:
    """Opened by its first statement. One task at a time uses it.

    A statement that is cancelled is interrupted, and its caller goes on when it has ended. Raises the driver's errors,
    and ``Stopping`` once it is closed.
    """

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._connection: aiosqlite.Connection | None = None
        self._is_closed = False

    async def rows(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """All rows of one statement."""
        connection = await self._opened()
        return cast("list[Row]", await self._run(connection.execute_fetchall(sql, parameters)))

    async def portions(self, sql: str, parameters: Parameters = ()) -> AsyncGenerator[list[Row]]:
        """The same in portions; a caller that stops early closes it."""
        connection = await self._opened()
        async with await self._run(connection.execute(sql, parameters)) as cursor:
            while rows := await self._run(cursor.fetchmany(PORTION_ROWS)):
                yield cast("list[Row]", rows)

    async def execute_many(self, sql: str, given: Iterable[Parameters]) -> None:
        """One statement for each of these parameters."""
        connection = await self._opened()
        await self._run(connection.executemany(sql, given))

    async def copy(self, target: Connection) -> None:
        """Copy what its open transaction sees of its file into an empty one."""
        connection = await self._opened()
        await self._run(connection.backup(cast("Any", target)))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        """What is executed inside is committed whole, or not at all."""
        try:
            await self.rows("BEGIN IMMEDIATE")
            yield
            await self.rows("COMMIT")
        except BaseException:
            with suppress(*Pysqlite.errors, OSError):  # some failures have done it, or there is none
                await self.rows("ROLLBACK")
            raise

    async def truncate_wal(self) -> None:
        """Move the WAL into the database and empty its file, unless a reader of the WAL prevents it."""
        await self.rows("PRAGMA busy_timeout = 0")
        try:
            await self.rows("PRAGMA main.wal_checkpoint(TRUNCATE)")
        finally:
            await self.rows(f"PRAGMA busy_timeout = {BUSY_MS}")

    async def close(self) -> None:
        """Close it for good, and end its thread."""
        self._is_closed = True
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _opened(self) -> aiosqlite.Connection:
        if self._is_closed:
            raise Stopping
        if self._connection is None:
            connector = cast("Any", self._connect)  # it asks for the standard library's, and uses what both have
            self._connection = await aiosqlite.Connection(connector, PORTION_ROWS)
        return self._connection

    async def _run(self, statement: Awaitable[T]) -> T:
        try:
            return await statement
        except asyncio.CancelledError:  # aiosqlite would leave it running
            await self._interrupted()
            raise

    async def _interrupted(self) -> None:
        """Return when no statement runs any more."""
        connection = await self._opened()
        after = asyncio.ensure_future(connection.execute_fetchall("SELECT 1"))  # its thread keeps the order
        while not after.done():
            await connection.interrupt()
            await asyncio.wait({after}, timeout=INTERRUPT_SECONDS)
        after.exception()  # it may have been interrupted itself
