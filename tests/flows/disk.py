"""A disk that a test can hold, fill and break: the shipped driver, with a hand on each commit."""

from __future__ import annotations

import threading
from enum import Enum
from typing import Any

from organism.sqlite.driver import Connection, Cursor, Failure, Parameters, Pysqlite

HELD_SECONDS = 20.0
WRITES = ("INSERT INTO commits", "UPDATE meta", "PRAGMA main.wal_checkpoint")
"""What a broken disk refuses: reads go on."""


class Fault(Enum):
    """What happens to the next commit."""

    BEFORE = "it is not written"
    AFTER = "it is written, and an error is reported"


class BrokenDisk(OSError):
    """The disk failed."""


class Disk(Pysqlite):
    """``fail`` breaks the next commit, and writing stays broken until ``mend``.

    Between ``hold`` and ``release`` no commit ends.
    """

    errors: tuple[type[Exception], ...] = (*Pysqlite.errors, BrokenDisk)

    def __init__(self) -> None:
        self.fault: Fault | None = None
        self.good_commits = 0
        self.broken = False
        self.turns: threading.Semaphore | None = None

    def hold(self) -> None:
        """Commits that begin from now on wait."""
        self.turns = threading.Semaphore(0)

    def let_one(self) -> None:
        """One of them goes on."""
        assert self.turns is not None
        self.turns.release()

    def release(self) -> None:
        """All of them go on."""
        turns, self.turns = self.turns, None
        assert turns is not None
        turns.release()

    def fail(self, fault: Fault, after: int = 0) -> None:
        """Break the next commit, or that after so many good ones."""
        self.fault, self.good_commits = fault, after

    def mend(self) -> None:
        """It can be written again."""
        self.broken = False

    def connect(self, path: str, *, read_only: bool = False) -> Connection:
        return Watched(super().connect(path, read_only=read_only), self)

    def failure(self, error: Exception) -> Failure:
        return Failure.BROKEN if isinstance(error, BrokenDisk) else super().failure(error)


class Watched:
    """A connection whose commits the disk may hold or break."""

    def __init__(self, connection: Connection, disk: Disk) -> None:
        self._connection = connection
        self._disk = disk

    def execute(self, sql: str, parameters: Parameters = (), /) -> Cursor:
        disk = self._disk
        if disk.broken and sql.startswith(WRITES):
            raise BrokenDisk("it is still broken")
        if not sql.startswith("INSERT INTO commits"):
            return self._connection.execute(sql, parameters)
        turns = disk.turns
        if turns is not None:
            turns.acquire(timeout=HELD_SECONDS)
        return self._commit(sql, parameters)

    def _commit(self, sql: str, parameters: Parameters) -> Cursor:
        disk = self._disk
        if disk.fault is not None and disk.good_commits > 0:
            disk.good_commits -= 1
            return self._connection.execute(sql, parameters)
        fault, disk.fault = disk.fault, None
        if fault is None:
            return self._connection.execute(sql, parameters)
        disk.broken = True
        if fault is Fault.AFTER:
            self._connection.execute(sql, parameters)
        raise BrokenDisk("input/output error")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def close(self) -> None:
        self._connection.close()
