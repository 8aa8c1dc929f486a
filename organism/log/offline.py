"""Work on a log's directory without a server: ``organism log verify``, ``rebuild`` and ``stats``, ``doctor``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from organism.errors import LogDamaged, LogHeld
from organism.events.stored import decode_unit
from organism.log.commits import REBUILD, Commits
from organism.log.directory import LogDirectory
from organism.log.disk import make_tables
from organism.log.log import Verification
from organism.log.verify import BEFORE_ALL, rows_after, verify
from organism.model.ids import DEFAULT_TENANT
from organism.sqlite.driver import SQLITE_VERSION, Connection, Pysqlite, statements
from organism.views.views import ReadModel

SQLITE_IN_USE: Final = SQLITE_VERSION
SOURCES: Final = ("meta", "units", "content")  # All other tables are derived from these
_SQL: Final = statements("log", "log.sql")


def verify_directory(
    directory: Path,
    key_path: Path | None = None,
    tenant: str = DEFAULT_TENANT,
    models: Sequence[ReadModel] | None = None,
) -> Verification:
    """Check the chain, the digests, the contents and the rows of ``models`` in the log in ``directory``.

    What is wrong stands in ``damage``, position by position. Raises ``NotFound`` if there is no log, ``LogDamaged``
    if nothing can be said: the key or the anchor is missing, or neither is that of the ``tenant``'s log.
    """
    files = LogDirectory(directory, key_path, tenant)
    files.check_files()
    try:
        with files.reading() as connection:
            key = files.read_key()
            found = verify(connection, key, 0, files.read_anchor(key))
    except Pysqlite.errors as error:
        return Verification(0, 0, 0, (f"{files.log.name} cannot be read: {error}",))
    if models is None or found.damage:
        return found
    try:
        return replace(found, damage=tuple(Commits(models).damage(files)))
    except Pysqlite.errors as error:  # events and contents were read just now
        return replace(found, damage=(f"the rows cannot be read: {error}; {REBUILD}",))


def drop_rows(directory: Path, key_path: Path | None, tenant: str, now_us: Callable[[], int]) -> None:
    """Keep only the events and their contents: the next start verifies them and rebuilds everything else.

    They are copied into a new file, since rows on damaged pages cannot be deleted; the disk has to hold both for a
    while. Raises ``LogHeld`` if another process has the log, ``NotFound`` without one, ``LogDamaged`` if an event or a
    content cannot be read, ``LogUnavailable`` if the copy cannot be written. The log stays as it was then.
    """
    files = LogDirectory(directory, key_path, tenant)
    files.check_exists()
    files.lock(now_us)
    try:
        files.create_private(files.copy)
        with closing(files.driver.connect(str(files.copy))) as connection:
            _copy_sources(connection, files)
        if files.wal.exists():  # SQLite leaves it where another process has the file open
            raise LogHeld(f"{files.path} is read by another process: wait until it has ended.")
        files.replace_log()
    except files.driver.errors as error:
        raise files.explain(error) from error
    finally:
        files.copy.unlink(missing_ok=True)
        files.unlock()


def _copy_sources(connection: Connection, files: LogDirectory) -> None:
    """Fill an empty file from the log, whose WAL is moved into it first."""
    connection.execute(_SQL["attach"], (f"file:{files.log}?mode=rw",))
    connection.execute("PRAGMA log.wal_checkpoint(TRUNCATE)").fetchall()
    connection.execute("BEGIN IMMEDIATE")
    make_tables(connection)
    for table in SOURCES:
        connection.execute(_SQL["copy"].replace("$table", table))
    connection.execute("COMMIT")
    connection.execute(_SQL["detach"])
    connection.execute("PRAGMA journal_mode = WAL").fetchall()


@dataclass(slots=True)
class Stats:
    """What a log holds. Times are UTC in microseconds since 1970, 0 if there is no event."""

    position: int = 0
    units: int = 0
    commits: int = 0
    first_at: int = 0
    last_at: int = 0
    events: Counter[str] = field(default_factory=Counter)
    threads: int = 0
    file_bytes: dict[str, int] = field(default_factory=dict)

    def add(self, body: bytes, *, ends_commit: bool) -> None:
        try:
            unit = decode_unit(body)
        except ValueError as error:
            raise LogDamaged(f"The unit after position {self.position} is damaged: {error}.") from error
        self.units += 1
        self.commits += ends_commit
        self.position = unit.last
        self.first_at = self.first_at or unit.at
        self.last_at = unit.at
        self.events.update(event.event_type for event in unit.events)


def count(directory: Path) -> Stats:
    """Count the log in ``directory``. Raises ``NotFound`` if there is none, ``LogDamaged`` if it cannot be read."""
    stats = Stats()
    with _reading(directory, stats) as connection:
        for rows in rows_after(connection, BEFORE_ALL):
            for _, _, body, chained in rows:
                stats.add(body, ends_commit=chained is not None)
    stats.file_bytes = {path.name: path.stat().st_size for path in sorted(directory.iterdir())}
    stats.threads = stats.events["thread_created"]
    return stats


def last_at(directory: Path) -> int:
    """When the last event of the log in ``directory`` was, 0 if there is none. Raises as ``count`` does."""
    last = Stats()
    with _reading(directory, last) as connection:
        for _, _, body, _ in connection.execute(statements("log", "log.sql")["last_unit"]).fetchall():
            last.add(body, ends_commit=True)
    return last.last_at


@contextmanager
def _reading(directory: Path, stats: Stats) -> Iterator[Connection]:
    files = LogDirectory(directory)
    try:
        with files.reading() as connection:
            yield connection
    except Pysqlite.errors as error:
        raise LogDamaged(f"{files.log.name} cannot be read after position {stats.position}: {error}.") from error
