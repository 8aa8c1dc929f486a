"""SQLite: connections, the threads that own them, what errors mean, and the statements of the ``.sql`` files."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import cache
from importlib.resources import files
from queue import SimpleQueue
from typing import Any, Final, Protocol, TypeVar

from pysqlite3 import dbapi2

from organism.errors import OrganismError

T = TypeVar("T")
Parameters = Sequence[Any]
Done = Callable[[Any, Exception | None], None]
Explain = Callable[[Exception], Exception]  # Gives the error that a caller of the log gets for one of the driver's
SQLITE_VERSION: Final[str] = dbapi2.sqlite_version  # That of the driver, not Python's
_STATEMENT_HEAD: Final = re.compile(r"^-- (\w+): .*\n", re.MULTILINE)
SETTINGS: Final = (
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
    "PRAGMA mmap_size = 0",
    "PRAGMA wal_autocheckpoint = 0",
)
QUICK_SECONDS: Final = 0.002  # The processor time that a read in the loop's thread may take
WAIT_SECONDS: Final = 0.01
"""The time that it may take in all, waiting for the disk or the interpreter's lock included."""
LOOK_STEPS: Final = 1000  # Steps of a statement, some ten microseconds, between two looks at the clock
NEVER: Final = float("inf")


class Cursor(Protocol):
    """The rows of one statement."""

    def __iter__(self) -> Iterator[tuple[Any, ...]]: ...

    def fetchone(self) -> tuple[Any, ...] | None: ...

    def fetchall(self) -> list[tuple[Any, ...]]: ...


class Connection(Protocol):
    """One connection in autocommit mode: transactions are explicit, a statement alone is one."""

    def execute(self, sql: str, parameters: Parameters = (), /) -> Cursor: ...

    def set_progress_handler(self, handler: Callable[[], bool] | None, steps: int, /) -> None:
        """Call the handler every so many steps of a statement, which is interrupted when it returns True."""

    def close(self) -> None:
        """Close it; never raises."""


class Failure(Enum):
    """Why a statement failed, as far as it decides what to do. What is ``PASSING`` leaves what was read intact."""

    FENCED = "fenced"
    PASSING = "full or busy"
    DAMAGED = "damaged"
    BROKEN = "broken"


class Pysqlite:
    """The driver of the shipped engine: its own SQLite, newer than Python's."""

    # A damaged schema makes messages that are no text: they are raised as what they are.
    errors: tuple[type[Exception], ...] = (dbapi2.Error, UnicodeDecodeError)

    def connect(self, path: str, *, read_only: bool = False) -> Connection:
        """A connection that may be used by one thread after the other."""
        connection: Connection = dbapi2.connect(
            f"file:{path}?mode={'ro' if read_only else 'rw'}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=2.0,
        )
        return connection

    def failure(self, error: Exception) -> Failure:
        if isinstance(error, UnicodeDecodeError):
            return Failure.DAMAGED
        return failure_of(getattr(error, "sqlite_errorname", "") or "", str(error))


def failure_of(name: str, message: str) -> Failure:
    """What an error means by its name (``SQLITE_…``) and message."""
    if name.startswith("SQLITE_CONSTRAINT") and message.endswith("fenced"):
        return Failure.FENCED
    # SQLITE_ERROR: our statements fit our schema, so the file's is another one
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR")) or message.startswith("Could not decode"):
        return Failure.DAMAGED
    return Failure.PASSING if name.startswith(("SQLITE_FULL", "SQLITE_BUSY", "SQLITE_LOCKED")) else Failure.BROKEN


def in_memory() -> Connection:
    """A connection to an empty database in memory."""
    connection: Connection = dbapi2.connect(":memory:", isolation_level=None, check_same_thread=False)
    set_up(connection)
    return connection


def set_up(connection: Connection, *more: str) -> Connection:
    for setting in (*SETTINGS, *more):
        connection.execute(setting)
    return connection


@cache
def statements(file: str) -> dict[str, str]:
    """Name → statement, in the order of a ``.sql`` file here: each stands under ``-- name: what it does``."""
    text = files("organism.log").joinpath(file).read_text("utf-8")
    parts = _STATEMENT_HEAD.split(text)[1:]
    return {name: _bare(body) for name, body in zip(parts[::2], parts[1::2], strict=True)}


def _bare(body: str) -> str:
    lines = [line for line in body.splitlines() if line and not line.startswith("--")]
    return "\n".join(lines).rstrip(";")


class ConnectionThread:
    """A thread that owns a connection, opened when it is needed, and does one piece of work after the other over it.

    Errors of the driver, of files and of the organism reach the work's caller. Any other is a fault of ours: it ends
    the thread, which reports it, and the next work runs in a new one.
    """

    def __init__(self, name: str, connect: Callable[[], Connection], driver: Pysqlite, explain: Explain) -> None:
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[tuple[Done, Callable[..., Any], tuple[Any, ...]] | None] = SimpleQueue()
        self._name = name
        self._connect = connect
        self._expected: tuple[type[Exception], ...] = (*driver.errors, OSError, OrganismError)
        self._explain = explain
        self._connection: Connection | None = None
        self._thread = self._start()

    def post(self, done: Done, work: Callable[..., Any], *arguments: Any) -> None:
        """Run ``work(connection, *arguments)`` in the thread, then ``done(result, error)`` in the loop's."""
        self._jobs.put((done, self._over_connection, (work, *arguments)))

    def submit(self, work: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        """The same; the future has the result. Cancelling it leaves the work running."""
        return self.run(self._over_connection, work, *arguments)

    def run(self, work: Callable[..., T], *arguments: Any) -> asyncio.Future[T]:
        """The same for work that needs no connection."""
        outcome: asyncio.Future[T] = self._loop.create_future()

        def done(result: T, error: Exception | None) -> None:
            if outcome.done():
                return
            if error is None:
                outcome.set_result(result)
            else:
                outcome.set_exception(self._explain(error))

        self._jobs.put((done, work, arguments))
        return outcome

    def close_connection(self) -> asyncio.Future[None]:
        """Close the connection; the next work opens another."""
        return self.run(self._close)

    async def stop(self) -> None:
        """Finish the work, close the connection, end the thread."""
        await self.close_connection()
        self._jobs.put(None)
        self._thread.join()

    def _over_connection(self, work: Callable[..., T], *arguments: Any) -> T:
        if self._connection is None:
            self._connection = self._connect()
        return work(self._connection, *arguments)

    def _close(self) -> None:
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()

    def _start(self) -> threading.Thread:
        thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        job = None
        try:
            while (job := self._jobs.get()) is not None:
                self._do(*job)
        finally:
            if job is not None:
                self._thread = self._start()

    def _do(self, done: Done, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        result: Any = None
        error: Exception | None = OrganismError(
            "A thread of the log failed by a fault of its own; its report has the place."
        )
        try:
            result, error = work(*arguments), None
        except self._expected as failure:
            error = failure
        finally:
            self._loop.call_soon_threadsafe(done, result, error)


class TakesTime(Exception):
    """A read was interrupted: it is not one for the loop's thread."""


class LoopReader:
    """A connection of the loop's own thread, for reads that are over before another thread would have woken up.

    With a busy loop a read in another thread takes milliseconds, a page of fifty rows here a tenth of one. How long it
    takes is not known beforehand: a read that is interrupted here is done again by another thread.
    """

    def __init__(self, connect: Callable[[], Connection], driver: Pysqlite, explain: Explain) -> None:
        self._connect = connect
        self._errors = driver.errors
        self._explain = explain
        self._connection: Connection | None = None
        self._work_end = self._end = NEVER
        self._is_late = False

    def run(self, work: Callable[..., T], *arguments: Any) -> T:
        """``work(connection, *arguments)``, however long it takes."""
        try:
            return work(self._opened(), *arguments)
        except self._errors as error:
            if self._is_late:
                raise TakesTime from error
            raise self._explain(error) from error

    def run_quickly(self, work: Callable[..., T], *arguments: Any) -> T:
        """The same. Raises ``TakesTime`` if it is not over soon."""
        self._work_end, self._end = time.thread_time() + QUICK_SECONDS, time.monotonic() + WAIT_SECONDS
        try:
            return self.run(work, *arguments)
        finally:
            self._work_end = self._end = NEVER
            self._is_late = False

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _opened(self) -> Connection:
        if self._connection is None:
            self._connection = self._connect()
            self._connection.set_progress_handler(self._look, LOOK_STEPS)
        return self._connection

    def _look(self) -> bool:
        """Whether to interrupt what runs."""
        self._is_late = time.thread_time() > self._work_end or time.monotonic() > self._end
        return self._is_late
