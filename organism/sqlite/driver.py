"""The driver: connections, what its errors mean, and the statements of the ``.sql`` files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from enum import Enum
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Protocol

import orjson
from pysqlite3 import dbapi2

Parameters = Sequence[Any]
Explain = Callable[[Exception], Exception]  # Gives the error that a caller gets for one of the driver's
SQLITE_VERSION: Final[str] = dbapi2.sqlite_version  # That of the driver, not Python's
_STATEMENT_HEAD: Final = re.compile(r"^-- (\w+): .*\n", re.MULTILINE)
CACHED_STATEMENTS: Final = 1024
"""More than a commit of all read models has: with the driver's 128 each of them was compiled again in each commit."""
BUSY_MS: Final = 2000  # So long a statement waits for other connections
WAL_PAGE_BYTES: Final = 4096 + 24  # A page and the header of its frame
SETTINGS: Final = (
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
    "PRAGMA mmap_size = 0",
    "PRAGMA wal_autocheckpoint = 0",
    "PRAGMA secure_delete = ON",
)


class Cursor(Protocol):
    """The rows of one statement."""

    def __iter__(self) -> Iterator[tuple[Any, ...]]: ...

    def fetchone(self) -> tuple[Any, ...] | None: ...

    def fetchall(self) -> list[tuple[Any, ...]]: ...

    def close(self) -> None: ...


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
            uri_of(path, read_only=read_only),
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=CACHED_STATEMENTS,
            timeout=BUSY_MS / 1000,
        )
        return connection

    @contextmanager
    def reading(self, file: Path) -> Iterator[Connection]:
        """A connection that only reads, also while another process writes."""
        with closing(self.connect_to_read(file)) as connection:
            yield connection

    def connect_to_read(self, file: Path) -> Connection:
        """The same for one who closes it.

        SQLite removes the ``-wal`` and ``-shm`` that it makes for a reader of a closed file only if that one could
        write too. The file of a process that was killed keeps its WAL as it is.
        """
        connection = self.connect(str(file), read_only=Path(f"{file}-wal").exists())
        return set_up(connection, "PRAGMA query_only = ON")

    def failure(self, error: Exception) -> Failure:
        if isinstance(error, UnicodeDecodeError):
            return Failure.DAMAGED
        return failure_of(getattr(error, "sqlite_errorname", "") or "", str(error))


def uri_of(path: str | Path, *, read_only: bool = False) -> str:
    """The URI that opens a file that is there, whatever characters its path has."""
    return f"{Path(path).absolute().as_uri()}?mode={'ro' if read_only else 'rw'}"


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


def wal_bytes(connection: Connection) -> int:
    """How much of the WAL's file is in use; the rest is of before its last restart."""
    ((_, pages, _),) = connection.execute("PRAGMA main.wal_checkpoint(NOOP)").fetchall()
    return int(pages) * WAL_PAGE_BYTES


def truncate_wal(connection: Connection, wait_ms: int = 0) -> bool:
    """Move the WAL into the database and empty its file; False if a reader of the WAL prevents it for so long.

    After a failed fsync the page cache proves nothing; what is written and synced here is on the disk.
    """
    connection.execute(f"PRAGMA busy_timeout = {wait_ms}").fetchall()  # commits wait behind this
    try:
        ((is_busy, *_),) = connection.execute("PRAGMA main.wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}").fetchall()
    return not is_busy


def json_text(value: Any) -> str:
    """The value as JSON, for a parameter that SQLite reads as such."""
    return orjson.dumps(value).decode()


EMPTY_LIST: Final = json_text([])


@cache
def statements(room: str, file: str) -> dict[str, str]:
    """Name → statement, in the order of a ``.sql`` file of a room: each stands under ``-- name: what it does``."""
    text = files(f"organism.{room}").joinpath(file).read_text("utf-8")
    parts = _STATEMENT_HEAD.split(text)[1:]
    return {name: _bare(body) for name, body in zip(parts[::2], parts[1::2], strict=True)}


def _bare(body: str) -> str:
    lines = [line for line in body.splitlines() if line and not line.startswith("--")]
    return "\n".join(lines).rstrip(";")
