"""Connections to a log's file, set up alike wherever they are opened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from organism.errors import LogDamaged, LogUnavailable, NotFound, OrganismError
from organism.log.driver import Connection, Failure, Pysqlite
from organism.log.place import Place

CACHE_KIB: Final = 2048
"""A log grows at its end: more would hold pages that are not asked for again."""
ROWS_REMEDY: Final = (
    "Run `organism log verify --data DIR`: if it names rows alone, stop and run `organism log rebuild`, "
    "which makes them again from the events; else restore a backup."
)
SETTINGS: Final = (
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
    "PRAGMA mmap_size = 0",
    "PRAGMA wal_autocheckpoint = 0",
)


@contextmanager
def looking(place: Place) -> Iterator[Connection]:
    """A connection that reads the log and writes nothing, also beside a running server. Raises ``NotFound``.

    Of a log that was stopped it leaves no ``-wal`` and ``-shm`` behind: SQLite makes them for any reader, and takes
    them away again only if that one could write too. One that was killed keeps its WAL as it is.
    """
    if not place.log.is_file():
        raise NotFound(f"{place.directory} holds no log: {place.log.name} is missing.")
    was_stopped = not place.wal.exists()
    with closing(Pysqlite().connect(str(place.log), read_only=not was_stopped)) as connection:
        for setting in (*SETTINGS, "PRAGMA query_only = ON"):
            connection.execute(setting)
        yield connection


@dataclass(frozen=True, slots=True)
class Connector:
    """Opens connections to a log's file."""

    driver: Pysqlite
    place: Place

    def to_log(self) -> Connection:
        """The one that writes commits: a commit is on the disk when its statement returns."""
        connection = self.to_file(self.place.log)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        return connection

    def to_read(self) -> Connection:
        """One that reads and writes nothing."""
        connection = self.to_file(self.place.log)
        connection.execute("PRAGMA query_only = ON")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        return connection

    def to_file(self, path: Path) -> Connection:
        """One for a file, before the others are opened."""
        connection = self.driver.connect(str(path))
        for setting in SETTINGS:
            connection.execute(setting)
        return connection

    def explain(self, error: Exception) -> Exception:
        """What the driver's error means to a caller of the log; any other error is returned as it is.

        It may reach a client, so it names no path; its cause does.
        """
        if not isinstance(error, self.driver.errors):
            return error
        log, said = self.place.directory.name, self.place.without_paths(str(error))
        meaning: OrganismError
        if self.driver.failure(error) is Failure.DAMAGED:
            meaning = LogDamaged(f"A file of the log {log} cannot be read: {said}. {ROWS_REMEDY}")
        else:
            meaning = LogUnavailable(f"The log {log} cannot be used now: {said}.")
        meaning.__cause__ = error
        return meaning
