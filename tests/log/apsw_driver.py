"""APSW in the place of the shipped driver, over whatever file system a test puts below it.

WAL without shared memory needs exclusive locking, so all connections to a file are handles of one. It syncs as the log
asks for, and no commit if the log does not ask.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import apsw

from organism.sqlite.driver import Connection, Failure, Parameters, Pysqlite, failure_of, uri_of

SETTINGS_OF_ONE = "PRAGMA query_only"


class SharedConnection:
    """The one connection to a file: open as long as a handle of it is."""

    def __init__(self, path: str, vfs: str | None) -> None:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
        self.connection = apsw.Connection(uri_of(path), flags=flags, vfs=vfs)
        self.connection.set_busy_timeout(2000)
        self.connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        self.connection.execute("PRAGMA synchronous = NORMAL")
        self.lock = threading.RLock()
        self.handles = 0


class FetchedRows(list[Any]):
    """The rows of a statement: all of them, so that no other thread's statement comes between."""

    def fetchall(self) -> list[Any]:
        return self

    def fetchone(self) -> Any:
        return self[0] if self else None

    def close(self) -> None:
        """There is nothing left to read."""


class ApswHandle:
    """A connection in the shape of the seam."""

    def __init__(self, shared: SharedConnection) -> None:
        self._shared = shared
        self._is_writer = False
        shared.handles += 1

    def execute(self, sql: str, parameters: Parameters = (), /) -> Any:
        if sql.startswith(SETTINGS_OF_ONE):
            return FetchedRows()
        self._is_writer |= sql.startswith("CREATE TEMP VIEW commits")
        with self._shared.lock:
            return FetchedRows(self._shared.connection.execute(sql, tuple(parameters)))

    def set_progress_handler(self, handler: Callable[[], bool] | None, steps: int, /) -> None:
        """Nothing is broken off: another thread's statement might be."""

    def close(self) -> None:
        shared = self._shared
        with shared.lock, suppress(apsw.Error):  # of a file system of the tests' own
            shared.handles -= 1
            if shared.handles == 0:
                shared.connection.close(force=True)
            elif self._is_writer:
                shared.connection.execute("DROP VIEW IF EXISTS temp.commits")


class ApswDriver(Pysqlite):
    """One for the life of a log."""

    errors: tuple[type[Exception], ...] = (apsw.Error,)

    def __init__(self, vfs: str | None = None) -> None:
        self._vfs = vfs
        self._shared: SharedConnection | None = None

    def connect(self, path: str, *, read_only: bool = False) -> Connection:
        if self._shared is None or self._shared.handles == 0:
            self._shared = SharedConnection(path, self._vfs)
        return ApswHandle(self._shared)

    def failure(self, error: Exception) -> Failure:
        code = getattr(error, "result", None)
        name = apsw.mapping_result_codes.get(code, "") if isinstance(code, int) else ""
        return failure_of(str(name), str(error))
