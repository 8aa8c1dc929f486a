"""Reads: what they ask for, and who executes that.

A read is a generator: it gives one statement after the other, is handed the rows, and returns what it made of them. So
one text is executed over a connection that the caller has (``run``), at once in the loop's thread, or by aiosqlite.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final, TypeVar

import aiosqlite

from organism.errors import LogUnavailable
from organism.sqlite.driver import Connection, Explain, Parameters, Pysqlite

T = TypeVar("T")
Rows = list[tuple[Any, ...]]
Reading = Generator[tuple[str, Parameters], Rows, T]
Read = Callable[..., Reading[T]]
QUICK_SECONDS: Final = 0.002  # The processor time that a read in the loop's thread may take
WAIT_SECONDS: Final = 0.01
"""The time that it may take in all, waiting for the disk or the interpreter's lock included."""
LOOK_STEPS: Final = 1000  # Steps of a statement, some ten microseconds, between two looks at the clock
CHUNK_ROWS: Final = 64  # What aiosqlite fetches at a time where a cursor is walked along; none is here
NEVER: Final = float("inf")


class GivenUp(Exception):
    """A read was cancelled."""


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


class _WholeReads:
    """What aiosqlite takes for a connection; what it takes for a statement is a whole read.

    So a read waits for the loop once, not after each statement, and what was read is decoded in aiosqlite's thread.
    """

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._connection: Connection
        self._lock = threading.Lock()
        self._current: Reading[Any] | None = None
        self._given_up: Reading[Any] | None = None
        self._result: Any = None

    def connected(self) -> Any:
        """The connection for aiosqlite."""
        self._connection = self._connect()
        return self

    def execute(self, reading: Reading[Any], _parameters: Parameters) -> _WholeReads:
        with self._lock:
            self._current = reading
        try:
            self._result = run(self._connection, reading, lambda: self._given_up is reading)
        finally:
            with self._lock:
                self._current = None
        return self

    def fetchall(self) -> list[Any]:
        """The result, as the one row."""
        result, self._result = self._result, None
        return [result]

    def give_up(self, reading: Reading[Any]) -> None:
        """Break the read off if it is under way, else before it begins: no other one is disturbed."""
        with self._lock:
            self._given_up = reading
            if self._current is reading:
                self._connection.interrupt()
            else:
                reading.close()

    def close(self) -> None:
        self._connection.close()


def _nothing() -> Reading[None]:
    yield from ()


def _as_statement(reading: Reading[Any]) -> Any:
    """What aiosqlite hands on as it is."""
    return reading


class Readers:
    """Reads of one file, beside the thread that writes it.

    With a busy loop a read in another thread takes milliseconds, a page of fifty rows in the loop's own a tenth of one
    (docs/benchmarks.md). How long it takes is not known beforehand: a read that is interrupted there is done again by
    aiosqlite, whose thread does one at a time.
    """

    def __init__(self, connect: Callable[[], Connection], driver: Pysqlite, explain: Explain) -> None:
        self._connect = connect
        self._errors = driver.errors
        self._explain = explain
        self._in_loop: Connection | None = None
        self._apart: tuple[aiosqlite.Connection, _WholeReads] | None = None
        self._opening = asyncio.Lock()
        self._is_closed = False
        self._work_end = self._end = NEVER
        self._is_late = False

    async def read(self, read: Read[T], *arguments: Any) -> T:
        """Execute ``read(*arguments)`` beside the loop. A cancelled one is interrupted and waited for."""
        apart, reads = self._apart or await self._opened()
        reading = read(*arguments)
        try:
            result: Any
            (result,) = await apart.execute_fetchall(_as_statement(reading))
        except asyncio.CancelledError:  # aiosqlite does not know of it: the read would run on
            reads.give_up(reading)
            await apart.execute_fetchall(_as_statement(_nothing()))  # it takes one after the other
            raise
        except self._errors as error:
            raise self._explain(error) from error
        found: T = result
        return found

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
        apart, self._apart = self._apart, None
        if apart is not None:
            await apart[0].close()

    async def _opened(self) -> tuple[aiosqlite.Connection, _WholeReads]:
        while self._apart is None:
            async with self._opening:
                if self._apart is None:
                    reads = _WholeReads(self._connect)
                    make = partial(aiosqlite.Connection, reads.connected, CHUNK_ROWS)
                    self._apart = await _in_daemon_thread(make), reads
        return self._apart

    def _in_loops_thread(self) -> Connection:
        if self._in_loop is None:
            self._in_loop = self._connect()
            self._in_loop.set_progress_handler(self._look, LOOK_STEPS)
        return self._in_loop

    def _look(self) -> bool:
        """Whether to interrupt what runs."""
        self._is_late = time.thread_time() > self._work_end or time.monotonic() > self._end
        return self._is_late


def _in_daemon_thread(make: Callable[[], T]) -> T:
    """Make it there: a thread that it has inherits that, and keeps no process alive which ends without closing it."""
    made: list[T] = []
    thread = threading.Thread(target=lambda: made.append(make()), daemon=True)
    thread.start()
    thread.join()
    return made[0]
