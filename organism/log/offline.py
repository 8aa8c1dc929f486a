"""Work on the files of a log, all of which but ``rebuild`` may run next to a running server.

``organism log verify``, ``rebuild``, ``backup``, ``restore`` and ``stats``, and ``organism doctor``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from organism.errors import BadPosition, LogDamaged, LogHeld, LogUnavailable
from organism.events import vocabulary as events
from organism.events.record import Record
from organism.events.stored import decode_unit
from organism.log.commits import REBUILD, Commits, attached
from organism.log.directory import TIMELINE_BYTES, Anchor, LogDirectory, put_file
from organism.log.disk import make_tables
from organism.log.encode import GENESIS, RandomBytes, check_order, link, parse
from organism.log.log import Verification
from organism.log.units import END
from organism.log.verify import BEFORE_ALL, LAYOUT, PORTION_UNITS, last_position, meta_mac, rows_after, verify
from organism.model.ids import DEFAULT_TENANT
from organism.sqlite.async_connection import AsyncConnection, Row, reading
from organism.sqlite.driver import SQLITE_VERSION, Connection, Failure, Pysqlite, statements, uri_of
from organism.views.views import ReadModel

SQLITE_IN_USE: Final = SQLITE_VERSION
SOURCES: Final = {"units": "first", "content": "position"}  # And ``meta``: all other tables are derived from these
COPIED_ROWS: Final = 512  # At a time: a longer read would keep a server's WAL from being reset
MOST_ATTEMPTS: Final = 100
PAGED_ATTEMPTS: Final = 3  # Then the log is copied in one read, whatever is erased meanwhile
_SQL: Final = statements("log", "log.sql")
_OPENED: Final = b'"%b"' % events.TenantOpened.event_type.encode()


def verify_directory(
    directory: Path,
    key_path: Path | None = None,
    tenant: str = DEFAULT_TENANT,
    models: Sequence[ReadModel] | None = None,
) -> Verification:
    """Check the chain, the digests, the contents and the rows of ``models`` in the log in ``directory``.

    What is wrong stands in ``damage``, position by position. Raises ``NotFound`` if there is no log, ``LogDamaged``
    if nothing can be said: the key or the anchor is missing, or neither is that of the ``tenant``'s log;
    ``LogUnavailable`` or ``OSError`` if there is no room next to the log, or to make its rows again.
    """
    files = LogDirectory(directory, key_path, tenant)
    files.check_files()
    try:
        with files.reading() as connection:
            key = files.read_key()
            found = verify(connection, key, 0, files.read_anchor(key))
    except Pysqlite.errors as error:
        if files.driver.failure(error) is not Failure.DAMAGED:
            files.check_room()
        return Verification(0, 0, 0, (f"{files.log.name} cannot be read: {error}",))
    if models is None or found.damage:
        return found
    try:
        return replace(found, damage=tuple(Commits(models).damage(files)))
    except Pysqlite.errors as error:  # events and contents were read just now
        if files.driver.failure(error) is not Failure.DAMAGED:
            raise files.explain(error) from error
        return replace(found, damage=(f"the rows cannot be read: {error}; {REBUILD}",))


async def known_tenants(directory: Path) -> set[str]:
    """The other tenants that have a log, as the operator's log in ``directory`` says. Raises as ``count`` does."""
    found: set[str] = set()
    async with _reading(directory, Stats()) as connection:
        async for rows in units_after(connection, BEFORE_ALL):
            for first, sealed, body, _ in rows:
                if _OPENED in body:
                    happened = parse(first, sealed, body).events
                    found.update(event.tenant for event in happened if isinstance(event, events.TenantOpened))
    return found


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
            connection.execute(_SQL["attach"], (uri_of(files.log),))
            connection.execute("PRAGMA log.wal_checkpoint(TRUNCATE)").fetchall()
            make_tables(connection)
            _copy_sources(connection, END)
            _detach(connection)
        if files.wal.exists():  # SQLite leaves it where another process has the file open
            raise LogHeld(f"{files.path} is read by another process: wait until it has ended.")
        files.replace_log()
    except files.driver.errors as error:
        raise files.explain(error) from error
    finally:
        files.copy.unlink(missing_ok=True)
        files.unlock()


async def copy_log(
    files: LogDirectory, copy: LogDirectory, companion: str, facts: tuple[type[events.Event], ...]
) -> None:
    """Copy the sources of a log into an empty directory, and the file ``companion`` next to it, both as of one moment.

    A server may be writing them. Each change of the companion has a fact in the log, which is one of ``facts``: it is
    prepared before its fact, unseen, and what it replaced is deleted after it. The key goes with the log unless it
    lies elsewhere. Raises ``NotFound``, ``LogDamaged``, and ``LogUnavailable`` if a file cannot be read or written.
    """
    files.check_exists()
    files.check_files()
    key = files.read_key()
    copy.write_anchor(files.read_anchor(key), key)  # as it is before the copy, so that it is not ahead of it
    if files.key_path.parent == files.path:
        put_file(copy.key_path, files.key_path.read_bytes())
    try:
        with closing(attached(files, copy.log)) as log:
            make_tables(log)
            for attempt in range(MOST_ATTEMPTS):
                until = await _copy_companion(files, copy, companion, facts)
                if attempt >= PAGED_ATTEMPTS:
                    log.execute("BEGIN")
                _copy_sources(log, until)
                if attempt >= PAGED_ATTEMPTS:
                    log.execute("COMMIT")
                if log.execute(_SQL["erased_later"], (until,)).fetchone() == (0,):
                    break  # else a content was erased by an event that the copy lacks
            else:
                raise LogUnavailable("Something was erased during each attempt to copy the log.")
            _detach(log)
    except files.driver.errors as error:
        raise files.explain(error) from error


async def _copy_companion(
    files: LogDirectory, copy: LogDirectory, name: str, facts: tuple[type[events.Event], ...]
) -> int:
    """Copy the companion, if any, as of a moment of the log; gives the position of the log's last event then."""
    async with AsyncExitStack() as stack:
        companions = [await stack.enter_async_context(_companion(files, path)) for path in files.path.glob(name)]
        async with _log(files) as log:  # closed soon: a long read would keep the server's WAL from being reset
            until = await _begin_together(log, companions, facts)
        for each in companions:
            (copy.path / name).unlink(missing_ok=True)
            copy.create_private(copy.path / name)
            with closing(files.driver.connect(str(copy.path / name))) as target:
                await each.copy(target)
    return until


@asynccontextmanager
async def reading_together(
    files: LogDirectory, companion: str, facts: tuple[type[events.Event], ...]
) -> AsyncIterator[tuple[AsyncConnection, AsyncConnection | None]]:
    """The log and the file ``companion`` next to it, if there is one, both as of one moment; see ``copy_log``.

    Raises ``NotFound``, ``LogDamaged`` and ``LogUnavailable``.
    """
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(_log(files))
        companions = [await stack.enter_async_context(_companion(files, path)) for path in files.path.glob(companion)]
        await _begin_together(log, companions, facts)
        yield log, next(iter(companions), None)


async def facts_in(log: AsyncConnection, facts: tuple[type[events.Event], ...]) -> AsyncIterator[Record[events.Event]]:
    """The events of these classes, in order. Raises ``LogDamaged``."""
    async for units in units_after(log, BEFORE_ALL):
        for record in (record for unit in units for record in parse(*unit[:3]).records()):
            if isinstance(record.event, facts):
                yield record


async def units_after(log: AsyncConnection, after: int) -> AsyncIterator[list[Row]]:
    """Every unit that begins after ``after``, in portions. Raises ``LogDamaged`` where the pages lead in a circle."""
    while rows := await log.rows(_SQL["units_after"], (after, END, PORTION_UNITS)):
        check_order(after, rows)
        yield rows
        after = rows[-1][0]


@asynccontextmanager
async def _log(files: LogDirectory) -> AsyncIterator[AsyncConnection]:
    """A connection that only reads the log. Raises ``NotFound``."""
    files.check_exists()
    async with reading(files.driver, files.log) as connection:
        yield connection


@asynccontextmanager
async def _companion(files: LogDirectory, path: Path) -> AsyncIterator[AsyncConnection]:
    async with reading(files.driver, path) as connection:
        try:
            await connection.rows(_SQL["has_tables"])
        except files.driver.errors as error:
            raise LogDamaged(
                f"{path} cannot be read: {error}. If you move it away, the log is copied without it."
            ) from error
        yield connection


async def _begin_together(
    log: AsyncConnection, others: Sequence[AsyncConnection], facts: tuple[type[events.Event], ...]
) -> int:
    """Begin transactions between whose snapshots no fact lies: all that is in force in the log is in the others.

    Gives the position of the last event that the log's transaction sees.
    """
    for _ in range(MOST_ATTEMPTS):
        head, *_ = _end(await log.rows(_SQL["last_unit"]))
        for each in (*others, log):
            await each.rows("BEGIN")
            await each.rows(_SQL["has_tables"])  # the snapshot is taken by the first read
        units = [parse(*unit[:3]) async for units in units_after(log, head) for unit in units]
        if not any(isinstance(event, facts) for unit in units for event in unit.events):
            return _end(await log.rows(_SQL["last_unit"]))[0]
        for each in (*others, log):
            await each.rows("COMMIT")
    raise LogUnavailable("The library was changed at each attempt to copy it.")


def _end(last_units: Sequence[Row]) -> tuple[int, bytes | None]:
    """The position of the last event, and the hash of its unit, if that ends a commit."""
    for first, _, body, chained in last_units:
        return last_position(first, body), chained
    return 0, GENESIS


def begin_again(files: LogDirectory, random_bytes: RandomBytes, until: int | None) -> int:
    """Give a copied log a timeline of its own, ``until`` the unit of a position or the end; returns where it ends.

    Raises ``BadPosition`` if the log ends before that, or if a content of before was erased after it;
    ``LogUnavailable`` if it cannot be written.
    """
    key, timeline = files.read_key(), random_bytes(TIMELINE_BYTES).hex()
    try:
        with closing(files.connect_to_write()) as connection:
            connection.execute("BEGIN IMMEDIATE")
            if until is not None:
                _cut(connection, key, until)
            head, chained = _end(connection.execute(_SQL["last_unit"]).fetchall())
            ((epoch, *_),) = connection.execute(_SQL["meta"]).fetchall()
            connection.execute(_SQL["set_timeline"], (timeline, meta_mac(key, epoch, timeline)))
            connection.execute("COMMIT")
    except files.driver.errors as error:
        raise files.explain(error) from error
    files.write_anchor(Anchor(head, chained or GENESIS, epoch, timeline), key, is_synced=True)
    return head


def _cut(connection: Connection, key: bytes, until: int) -> None:
    """Delete what comes after the unit that holds a position, and have that unit end its commit."""
    first, _, body, _ = connection.execute(_SQL["unit_at"], (until,)).fetchone() or (0, b"", b"", None)
    last = last_position(first, body)
    if until > last:
        raise BadPosition(f"The log ends at position {last}.")
    if (erased := connection.execute(_SQL["erased_after"], (last, last)).fetchone()) is not None:
        raise BadPosition(
            f"The content of position {erased[0]} was erased at position {erased[1]}, and does not come back."
        )
    for table in ("units", "content"):
        connection.execute(_SQL[f"cut_{table}"], (last,))
    begin, _, before = connection.execute(_SQL["commit_before"], (first,)).fetchone() or (BEFORE_ALL, b"", GENESIS)
    commit = [unit for units in rows_after(connection, begin) for unit in units]
    connection.execute(_SQL["end_commit"], (link(key, before, commit[0][0], [unit[1] for unit in commit]), first))


def _copy_sources(connection: Connection, until: int) -> None:
    """Fill a file from the log that is attached to it, in pages up to a position. Raises ``LogDamaged``."""
    ((layout,),) = connection.execute(_SQL["layout_of_log"])
    if layout != LAYOUT:
        raise LogDamaged(
            f"The log has layout {layout}, this program knows layout {LAYOUT}: run the program that wrote it."
        )
    for table in ("meta", *SOURCES):
        connection.execute(_SQL["uncopy"].replace("$table", table))
    connection.execute(_SQL["copy_meta"])
    for table, key in SOURCES.items():
        copy, copied = (_SQL[name].replace("$table", table).replace("$key", key) for name in ("copy", "copied"))
        after: int | None = BEFORE_ALL
        last = None
        while last != after:
            last = after
            connection.execute(copy, (BEFORE_ALL if after is None else after, until, COPIED_ROWS))
            ((after,),) = connection.execute(copied)


def _detach(connection: Connection) -> None:
    """Leave the log that was copied, and make of the copy what a log is."""
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


async def count(directory: Path) -> Stats:
    """Count the log in ``directory``. Raises ``NotFound`` if there is none, ``LogDamaged`` if it cannot be read."""
    stats = Stats()
    async with _reading(directory, stats) as connection:
        async for rows in units_after(connection, BEFORE_ALL):
            for _, _, body, chained in rows:
                stats.add(body, ends_commit=chained is not None)
    stats.file_bytes = _file_bytes(directory)
    stats.threads = stats.events["thread_created"]
    return stats


def _file_bytes(directory: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in sorted(directory.iterdir())}


async def last_at(directory: Path) -> int:
    """When the last event of the log in ``directory`` was, 0 if there is none. Raises as ``count`` does."""
    last = Stats()
    async with _reading(directory, last) as connection:
        for _, _, body, _ in await connection.rows(_SQL["last_unit"]):
            last.add(body, ends_commit=True)
    return last.last_at


@asynccontextmanager
async def _reading(directory: Path, stats: Stats) -> AsyncIterator[AsyncConnection]:
    files = LogDirectory(directory)
    try:
        async with _log(files) as connection:
            yield connection
    except Pysqlite.errors as error:
        raise LogDamaged(f"{files.log.name} cannot be read after position {stats.position}: {error}.") from error
