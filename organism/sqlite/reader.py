"""Reads of a file that another thread writes: at once in the loop's thread if they are quick, else in a reading thread.

A read is a function: it takes a connection and its arguments, and returns what it made of the rows.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from organism.errors import LogUnavailable
from organism.sqlite.driver import Connection, Explain, Pysqlite
from organism.sqlite.thread import ConnectionThread

T = TypeVar("T")
QUICK_SECONDS: Final = 0.002  # The processor time that a read in the loop's thread may take
WAIT_SECONDS: Final = 0.01
"""The time that it may take in all, waiting for the disk or the interpreter's lock included."""
CLOCK_STEPS: Final = 1000  # Steps of a statement, some ten microseconds, between two looks at the clock
CANCEL_STEPS: Final = 100_000  # Some milliseconds: each look takes the interpreter's lock


class Reader:
    """The two connections that read a file: the loop's own, and that of a thread, which does one read at a time.

    With a busy loop a read in another thread takes milliseconds, a page of fifty rows in the loop's own a tenth of one
    (docs/benchmarks.md). How long a read takes is not known beforehand: one that takes the loop too long is interrupted
    and done again in the thread.
    """

    def __init__(self, connect: Callable[[], Connection], driver: Pysqlite, explain: Explain) -> None:
        self._connect = connect
        self._errors = driver.errors
        self._explain = explain
        self._in_loop: Connection | None = None
        self._thread = ConnectionThread("log-reader", connect, driver, explain)
        self._opening = asyncio.Lock()
        self._is_closed = False
        self._work_end = self._end = float("inf")
        self._is_late = False

    async def read(self, read: Callable[..., T], *arguments: Any) -> T:
        """``read(connection, *arguments)`` in the reading thread, which leaves a cancelled one within milliseconds."""
        if self._is_closed:
            async with self._opening:
                pass
        cancelled = threading.Event()
        try:
            return await self._thread.submit(_interruptible, cancelled, read, *arguments)
        finally:
            cancelled.set()

    async def read_quickly(self, read: Callable[..., T], *arguments: Any) -> T:
        """The same at once in the loop's thread, if it is over at once."""
        if not self._is_closed:
            self._work_end, self._end = time.thread_time() + QUICK_SECONDS, time.monotonic() + WAIT_SECONDS
            try:
                return read(self._in_loops_thread(), *arguments)
            except self._errors as error:
                if not self._is_late:
                    raise self._explain(error) from error
            finally:
                self._work_end = self._end = float("inf")
                self._is_late = False
        return await self.read(read, *arguments)

    def read_now(self, read: Callable[..., T], *arguments: Any) -> T:
        """The same however long it takes: for the few rows that a decision needs. Raises ``LogUnavailable``."""
        if self._is_closed:
            raise LogUnavailable("The log reads its disk again.")
        try:
            return read(self._in_loops_thread(), *arguments)
        except self._errors as error:
            raise self._explain(error) from error

    @asynccontextmanager
    async def closed(self) -> AsyncIterator[None]:
        """Every connection is closed meanwhile, so that nothing is believed that only a cache shows; reads wait."""
        async with self._opening:
            self._is_closed = True
            try:
                await self.close()
                yield
            finally:
                self._is_closed = False

    async def close(self) -> None:
        """Close what is open; the next read opens it again."""
        in_loop, self._in_loop = self._in_loop, None
        if in_loop is not None:
            in_loop.close()
        await self._thread.close_connection()

    async def stop(self) -> None:
        """Close all for good."""
        await self.close()
        await self._thread.stop()

    def _in_loops_thread(self) -> Connection:
        if self._in_loop is None:
            self._in_loop = self._connect()
            self._in_loop.set_progress_handler(self._look, CLOCK_STEPS)
        return self._in_loop

    def _look(self) -> bool:
        """Whether to interrupt what runs."""
        self._is_late = time.thread_time() > self._work_end or time.monotonic() > self._end
        return self._is_late


def _interruptible(connection: Connection, cancelled: threading.Event, read: Callable[..., T], *arguments: Any) -> T:
    connection.set_progress_handler(cancelled.is_set, CANCEL_STEPS)
    return read(connection, *arguments)
