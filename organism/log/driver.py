"""The seam to SQLite: connections, what their errors mean, and the statements of the ``.sql`` files.

Tests put another driver in its place, with a file system of their own below it (power cuts, full disks).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from importlib.resources import files
from typing import Any, Final, Protocol

from pysqlite3 import dbapi2

Parameters = Sequence[Any]
SQLITE_VERSION: Final[str] = dbapi2.sqlite_version
"""That of the driver, not Python's."""
_STATEMENT_HEAD: Final = re.compile(r"^-- (\w+): .*\n", re.MULTILINE)


class Cursor(Protocol):
    """The rows of one statement."""

    def __iter__(self) -> Iterator[tuple[Any, ...]]: ...

    def fetchone(self) -> tuple[Any, ...] | None: ...

    def fetchall(self) -> list[tuple[Any, ...]]: ...


class Connection(Protocol):
    """One connection in autocommit mode: transactions are explicit, a statement alone is one."""

    def execute(self, sql: str, parameters: Parameters = (), /) -> Cursor: ...

    def set_progress_handler(self, handler: Callable[[], bool] | None, steps: int, /) -> None:
        """Call the handler after each so many steps of a statement; it is broken off by one that gives True."""

    def close(self) -> None:
        """Close it; never raises."""


class Failure(Enum):
    """Why a statement failed, as far as it decides what to do."""

    FENCED = "fenced"
    FULL = "full"
    BUSY = "busy"
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


def statements(file: str) -> dict[str, str]:
    """Name → statement, in the order of a ``.sql`` file here: each stands under ``-- name: what it does``."""
    text = files("organism.log").joinpath(file).read_text("utf-8")
    parts = _STATEMENT_HEAD.split(text)[1:]
    return {name: _bare(body) for name, body in zip(parts[::2], parts[1::2], strict=True)}


def _bare(body: str) -> str:
    lines = [line for line in body.splitlines() if line and not line.startswith("--")]
    return "\n".join(lines).rstrip(";")
