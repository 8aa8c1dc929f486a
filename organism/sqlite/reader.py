"""Reads: what they ask for, and who executes that.

A read is a generator: it gives one statement after the other, is handed the rows, and returns what it made of them. So
one text is executed over a connection that the caller has (``run``), at once in the loop's thread, or in a reading one.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeVar

from organism.errors import LogUnavailable, OrganismError
from organism.sqlite.driver import Connection, Explain, Parameters, Pysqlite
from organism.sqlite.thread import ConnectionThread

T = TypeVar("T")
Rows = list[tuple[Any, ...]]
Reading = Generator[tuple[str, Parameters], Rows, T]
Read = Callable[..., Reading[T]]
QUICK_SECONDS: Final = 0.002  # The processor time that a read in the loop's thread may take
WAIT_SECONDS: Final = 0.01
"""The time that it may take in all, waiting for the disk or the interpreter's lock included."""
LOOK_STEPS: Final = 1000  # Steps of a statement, some ten microseconds, between two looks at the clock
NEVER: Final = float("inf")


class GivenUp(OrganismError):
    """The read was cancelled."""


class TakesTime(Exception):
    """A read was interrupted: it is not one for the loop's thread."""


def run(connection: Connection, reading: Reading[T], is_given_up: Callable[[], bool] = lambda: False) -> T:
    """What the reading makes of the rows. Raises ``GivenUp`` if it is given up between two statements."""
    try:
        sql, parameters = next(reading)
        while not is_given_up():
            sql, parameters = reading.send(connection.execute(sql, parameters).fetchall())
    except StopIteration as end:
        result: T = end.value
        return result
    raise GivenUp


class Readers:
    """Reads of one file, beside the thread that writes it.

    With a busy loop a read in another thread takes milliseconds, a page of fifty rows in the loop's own a tenth of one
    (docs/benchmarks.md). How long it takes is not known beforehand: a read that is interrupted there is done again in
    the reading thread, which does one at a time.
    """

    def __init__(self, connect: Callable[[], Connection], driver: Pysqlite, explain: Explain) -> None:
        self._connect = connect
        self._errors = driver.errors
        self._explain = explain
        self._in_loop: Connection | None = None
        self._thread = ConnectionThread("log-reader", connect, driver, explain)
        self._opening = asyncio.Lock()
        self._is_closed = False
        self._lock = threading.Lock()
        self._current: tuple[Reading[Any], Connection] | None = None  # what the reading thread does
        self._given_up: set[Reading[Any]] = set()
        self._work_end = self._end = NEVER
        self._is_late = False

    async def read(self, read: Read[T], *arguments: Any) -> T:
        """Execute ``read(*arguments)`` in the reading thread. A cancelled one is interrupted and waited for."""
        if self._is_closed:
            async with self._opening:
                pass
        reading = read(*arguments)
        outcome = self._thread.submit(self._execute, reading)
        try:
            return await asyncio.shield(outcome)
        except asyncio.CancelledError:
            self._give_up(reading)
            await asyncio.wait([outcome])
            outcome.exception()  # nobody else asks for it
            raise

    async def read_quickly(self, read: Read[T], *arguments: Any) -> T:
        """The same at once in the loop's thread, if it is over at once."""
        if not self._is_closed:
            self._work_end, self._end = time.thread_time() + QUICK_SECONDS, time.monotonic() + WAIT_SECONDS
            try:
                with suppress(TakesTime):
                    return self.read_now(read, *arguments)
            finally:
                self._work_end = self._end = NEVER
                self._is_late = False
        return await self.read(read, *arguments)

    def read_now(self, read: Read[T], *arguments: Any) -> T:
        """The same however long it takes: for the few rows that a decision needs. Raises ``LogUnavailable``."""
        if self._is_closed:
            raise LogUnavailable("The log reads its disk again.")
        try:
            return run(self._in_loops_thread(), read(*arguments))
        except self._errors as error:
            if self._is_late:
                raise TakesTime from error
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

    def _execute(self, connection: Connection, reading: Reading[T]) -> T:
        with self._lock:
            self._current = reading, connection
        try:
            return run(connection, reading, lambda: reading in self._given_up)
        finally:
            with self._lock:
                self._current = None
                self._given_up.discard(reading)

    def _give_up(self, reading: Reading[Any]) -> None:
        """Break the read off if it is under way, else before it begins: no other one is disturbed."""
        with self._lock:
            self._given_up.add(reading)
            if self._current is not None and self._current[0] is reading:
                self._current[1].interrupt()

    def _in_loops_thread(self) -> Connection:
        if self._in_loop is None:
            self._in_loop = self._connect()
            self._in_loop.set_progress_handler(self._look, LOOK_STEPS)
        return self._in_loop

    def _look(self) -> bool:
        """Whether to interrupt what runs."""
        self._is_late = time.thread_time() > self._work_end or time.monotonic() > self._end
        return self._is_late
