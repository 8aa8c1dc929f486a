"""The seam to SQLite: what the engine needs of a driver, and the driver that it takes by itself.

Tests put another one in its place, with a file system of their own below it (power cuts, full disks). A driver that is
``exclusive`` is given one connection only, in exclusive locking mode, since WAL without shared memory needs that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Any, Protocol

from pysqlite3 import dbapi2

Parameters = Sequence[Any]


class Cursor(Protocol):
    """The rows of one statement."""

    def __iter__(self) -> Iterator[tuple[Any, ...]]: ...

    def fetchone(self) -> tuple[Any, ...] | None: ...

    def fetchall(self) -> list[tuple[Any, ...]]: ...


class Connection(Protocol):
    """One connection in autocommit mode: transactions are explicit, a statement alone is one."""

    def execute(self, sql: str, parameters: Parameters = (), /) -> Cursor: ...

    def interrupt(self) -> None: ...

    def set_progress_handler(self, handler: Callable[[], bool] | None, steps: int, /) -> None:
        """Call the handler after each so many steps of a statement; it is broken off by one that gives True."""

    def close(self) -> None:
        """Let it go; never raises."""


class Failure(Enum):
    """Why a statement failed, as far as it decides what to do."""

    FENCED = "fenced"
    FULL = "full"
    BUSY = "busy"
    DAMAGED = "damaged"
    BROKEN = "broken"


class Driver(Protocol):
    """How connections are made, and how their errors are read."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What a statement may raise."""

    @property
    def exclusive(self) -> bool:
        """Whether all goes over one connection."""

    def connect(self, path: str, *, read_only: bool = False) -> Connection:
        """A connection that may be used by one thread after the other."""

    def failure(self, error: Exception) -> Failure:
        """What kind of failure ``error`` is."""


class Pysqlite:
    """The driver of the shipped engine: its own SQLite, newer than Python's."""

    # A damaged schema makes messages that are no text: they are raised as what they are.
    errors: tuple[type[Exception], ...] = (dbapi2.Error, UnicodeDecodeError)
    exclusive = False

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
        """What kind of failure ``error`` is."""
        if isinstance(error, UnicodeDecodeError):
            return Failure.DAMAGED
        return failure_of(getattr(error, "sqlite_errorname", "") or "", str(error))


def failure_of(name: str, message: str) -> Failure:
    """The failure that SQLite's code and message stand for."""
    if name.startswith("SQLITE_CONSTRAINT") and message.endswith("fenced"):
        return Failure.FENCED
    if message.startswith("Could not decode to UTF-8"):
        return Failure.DAMAGED
    for start, failure in (
        ("SQLITE_FULL", Failure.FULL),
        ("SQLITE_BUSY", Failure.BUSY),
        ("SQLITE_LOCKED", Failure.BUSY),
        ("SQLITE_CORRUPT", Failure.DAMAGED),
        ("SQLITE_NOTADB", Failure.DAMAGED),
        ("SQLITE_ERROR", Failure.DAMAGED),  # our statements fit our schema: the file's is another one
    ):
        if name.startswith(start):
            return failure
    return Failure.BROKEN
