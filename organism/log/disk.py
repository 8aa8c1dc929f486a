"""The tables of a log: on a disk, with threads, anchor and WAL; or in memory.

Opening verifies the newest commits and fences off any earlier writer. Nothing damaged is overwritten.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import orjson

from organism.errors import CommitUnknown, Fenced, LogDamaged, LogUnavailable
from organism.log.batch import Batch
from organism.log.commits import Commits
from organism.log.directory import Anchor, LogDirectory
from organism.log.encode import GENESIS, REMEDY, RandomBytes
from organism.log.log import Verification
from organism.log.rows.versions import RowFolding
from organism.log.snapshots import Snapshots
from organism.log.verify import before_last_commit, meta_damage, meta_mac, schema_damage, verify, walk
from organism.sqlite.driver import (
    BUSY_MS,
    Connection,
    Failure,
    Parameters,
    in_memory,
    statements,
    truncate_wal,
    wal_bytes,
)
from organism.sqlite.reader import Reader
from organism.sqlite.thread import ConnectionThread

T = TypeVar("T")
Done = Callable[[Batch, Exception | None], None]
Since = Callable[[Connection], int]  # The position up to which a log was verified before
ANCHOR_SECONDS: Final = 0.2
PURGE_AGAIN_SECONDS: Final = 0.2
FULL_WAL_BYTES: Final = 8 << 20  # From here on the WAL is moved into the database while commits go on
HELD_WAL_BYTES: Final = 16 << 20  # From here on commits wait for the readers that keep it from beginning again
MOVE_AGAIN_BYTES: Final = 2 << 20
USED_WAL_BYTES: Final = 256 << 10  # From here on the WAL is extended at once to its full size
ROOM_PORTION_BYTES: Final = 1 << 20
IDLE_WAL_BYTES: Final = 1 << 20  # The same as FULL_WAL_BYTES while nothing waits
SHOWN_DAMAGES: Final = 3
_SQL: Final = statements("log", "log.sql")


class LastCommit(NamedTuple):
    """The last whole commit that a fresh connection found, under the raised epoch, and its time in µs."""

    head: Anchor
    at: int


class Disk:
    """The threads and files of one log. It writes one batch at a time; ``head`` is the last commit known to be on disk.

    ``done(batch, error)`` is called in the loop's thread; after an error nothing must be written until ``read_again``
    has returned.
    """

    def __init__(self, directory: LogDirectory, commits: Commits) -> None:
        self._loop = asyncio.get_running_loop()
        self._directory = directory
        self.name = directory.path.name
        self.commits = commits
        self.done: Done | None = None
        self.key = b""
        self.head = Anchor(0, GENESIS, 0, "")
        self.snapshots: Snapshots
        self.passing: tuple[type[Exception], ...] = (*directory.driver.errors, OSError, LogUnavailable)
        self._writer = ConnectionThread("log-writer", directory.connect_to_write, directory.driver, directory.explain)
        self._reader = Reader(directory.connect_to_read, directory.driver, directory.explain)
        self.read, self.read_quickly = self._reader.read, self._reader.read_quickly
        self.read_now = self._reader.read_now
        self._is_open = False
        self._is_writing = False
        self._wal_bytes = 0
        self._move_at_bytes = FULL_WAL_BYTES
        self._wants_room = True
        self._timer: asyncio.TimerHandle | None = None
        self._purging: asyncio.Task[None] | None = None

    async def open(self, random_bytes: RandomBytes) -> LastCommit:
        """Create the log if there is none; verify it and raise its epoch. The caller has locked the directory."""
        await self._writer.run(make_log, self._directory, random_bytes)
        self.key = self._directory.read_key()
        self.head = self._directory.read_anchor(self.key)
        self.snapshots = Snapshots(self.key, self.head.timeline)
        last = await self._claim(self.snapshots.newest, is_again=False)
        self._is_open = True
        if not await self._truncated():  # a kill may have come between an erasure and its purge
            self._purge()
        return last

    async def verify(self, after: int) -> Verification:
        """Check everything after a position, over a connection and in a thread of its own."""
        directory, key, head = self._directory, self.key, self.head

        def verified() -> Verification:
            with closing(directory.connect_to_read()) as connection:
                return verify(connection, key, after, head)

        try:
            return await asyncio.to_thread(verified)
        except directory.driver.errors as error:
            raise directory.explain(error) from error

    async def write(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run ``work(connection, *arguments)`` over the writing connection, between two commits."""
        return await self._writer.submit(work, *arguments)

    def post(self, work: Callable[..., object], *arguments: Any) -> None:
        """The same without waiting; the outcome is ignored."""
        self._writer.post(lambda _, __: None, work, *arguments)

    def commit(self, batch: Batch, folding: RowFolding) -> None:
        self._is_writing = True
        chained = batch.hash(self.key, self.head.hash)
        parameters = self.commits.parameters(self.head.epoch, batch, chained, folding)
        self._writer.post(partial(self._wrote, batch, chained), self._write, parameters)

    async def purged(self) -> None:
        """Return once no file holds erased text any more. Raises ``CommitUnknown`` if the log is closed before."""
        purging = self._purging
        if purging is not None:
            await asyncio.wait([purging])
            if purging.cancelled():
                raise CommitUnknown("The log was closed before all of the text was gone from its files.")
            purging.result()

    def failure(self, error: Exception) -> Failure:
        """Why it failed, by the driver's error or that of the error's cause."""
        cause = error.__cause__
        return self._directory.driver.failure(cause if isinstance(cause, Exception) else error)

    def describe(self, error: Exception) -> str:
        """The error in words that may reach a client: without paths."""
        return self._directory.without_paths(str(error))

    async def read_again(self, *, entirely: bool) -> LastCommit:
        """Open the writing connection again, move the WAL into the database, verify the tail.

        ``entirely`` closes the reading connections too meanwhile: only then SQLite reads the WAL from the disk instead
        of its memory. Raises ``LogDamaged`` if an acknowledged commit is missing, ``Fenced``.
        """
        async with AsyncExitStack() as renewing:
            if entirely:
                await renewing.enter_async_context(self._reader.closed())
            await self._writer.close_connection()
            last = await self._claim(lambda _: self.head.position, is_again=True)
            self._wal_bytes, self._wants_room = 0, True
            return last

    def anchor(self, *, is_synced: bool = False) -> None:
        self._directory.write_anchor(self.head, self.key, is_synced=is_synced)

    async def close(self) -> None:
        """Anchor the head, end the threads, unlock the directory."""
        if self._timer is not None:
            self._timer.cancel()
        if self._purging is not None:
            self._purging.cancel()
        try:
            if self._is_open:
                self.anchor(is_synced=True)
        finally:
            await self._reader.stop()
            await self._writer.stop()
            self._directory.unlock()

    async def _claim(self, since: Since, *, is_again: bool) -> LastCommit:
        last = await self._writer.submit(self._claimed, since, is_again)
        self.head = last.head
        return last

    def _claimed(self, connection: Connection, since: Since, is_again: bool) -> LastCommit:  # noqa: FBT001 - as submitted
        if is_again and not truncate_wal(connection):
            raise LogUnavailable("The log cannot be moved into its file, since another process reads it.")
        epoch = self.head.epoch if self._is_open else 0
        with ExitStack() as failing:
            failing.callback(self._roll_back, connection)
            last = claim(connection, self.key, self.head, since, epoch)
            failing.pop_all()
        self.commits.install(connection)
        return last

    def _roll_back(self, connection: Connection) -> None:
        with suppress(*self._directory.driver.errors):  # some failures have done it
            connection.execute("ROLLBACK")

    def _write(self, connection: Connection, parameters: Parameters) -> int:
        self.commits.write(connection, parameters)
        return wal_bytes(connection)

    def _wrote(self, batch: Batch, chained: bytes, used_bytes: int, error: Exception | None) -> None:
        self._is_writing = False
        if error is None:
            self._wal_bytes = used_bytes
            if used_bytes <= FULL_WAL_BYTES:
                self._move_at_bytes = FULL_WAL_BYTES
            self.head = Anchor(batch.last, chained, self.head.epoch, self.head.timeline)
            if batch.erasures:
                self._purge()
        self._report(batch, error)
        if self._wal_bytes > self._move_at_bytes:
            self._checkpoint()
        elif self._wal_bytes > USED_WAL_BYTES and self._wants_room:
            self._wants_room = False  # if it fails, commits are slower
            self.post(_make_room, self._directory.wal, FULL_WAL_BYTES + FULL_WAL_BYTES // 8)
        if self._timer is None:
            self._timer = self._loop.call_later(ANCHOR_SECONDS, self._pause)

    def _report(self, batch: Batch, error: Exception | None) -> None:
        if self.done is not None:
            self.done(batch, error)

    def _pause(self) -> None:
        """From time to time while writing: write the anchor, and move the WAL into the database if nothing waits."""
        self._timer = None
        self.anchor()
        if not self._is_writing and self._wal_bytes > IDLE_WAL_BYTES:
            self._checkpoint()

    def _checkpoint(self) -> None:
        """Move the WAL into the database. A reader can hold it back: then it is tried again when it has grown."""
        self._move_at_bytes = max(FULL_WAL_BYTES, self._wal_bytes + MOVE_AGAIN_BYTES)
        if self._wal_bytes > HELD_WAL_BYTES:
            self._wants_room = True
            self._writer.post(self._checkpointed, truncate_wal, BUSY_MS)
        else:
            self._writer.post(self._checkpointed, checkpoint)

    def _purge(self) -> None:
        """Remove erased text from the files. A later purge covers the ones before it."""
        self._purging = self._loop.create_task(self._truncate_wal())

    async def _truncate_wal(self) -> None:
        while True:
            if await self._truncated():
                return
            await asyncio.sleep(PURGE_AGAIN_SECONDS)

    async def _truncated(self) -> bool:
        try:
            is_done = await self.write(truncate_wal)
        except LogUnavailable as error:
            self._checkpointed(None, error)
            return False
        if is_done:
            self._wal_bytes, self._wants_room = 0, True
        return is_done

    def _checkpointed(self, _: Any, error: Exception | None) -> None:
        """A checkpoint without room is tried again later; after any other failure nothing on the disk is certain."""
        if error is not None and self.failure(error) is Failure.BROKEN:
            self._report(Batch(), error)


class Memory:
    """The same for a log in memory: the same SQL, at once, in the loop's thread. No commit fails."""

    passing: tuple[type[Exception], ...] = ()

    def __init__(self, commits: Commits, random_bytes: RandomBytes) -> None:
        self.name = "memory"
        self.commits = commits
        self.done: Done | None = None
        self.key = random_bytes(32)
        self._connection = in_memory()
        timeline = random_bytes(16).hex()
        make_tables(self._connection)
        self._connection.execute(_SQL["begin_meta"], (timeline, meta_mac(self.key, 0, timeline)))
        begin = Anchor(0, GENESIS, 0, timeline)
        self.last = claim(self._connection, self.key, begin, lambda _: 0, 0)
        self.head = self.last.head
        self.snapshots = Snapshots(self.key, timeline)
        self.commits.install(self._connection)

    async def read(self, read: Callable[..., T], *arguments: Any) -> T:
        return read(self._connection, *arguments)

    def read_now(self, read: Callable[..., T], *arguments: Any) -> T:
        return read(self._connection, *arguments)

    read_quickly = write = read
    post = read_now

    async def verify(self, after: int) -> Verification:
        return verify(self._connection, self.key, after, self.head)

    def commit(self, batch: Batch, folding: RowFolding) -> None:
        """``done`` is called in a later iteration, as it is with a disk."""
        chained = batch.hash(self.key, self.head.hash)
        parameters = self.commits.parameters(self.head.epoch, batch, chained, folding)
        self.commits.write(self._connection, parameters)
        self.head = Anchor(batch.last, chained, self.head.epoch, self.head.timeline)
        self.last = LastCommit(self.head, batch.units[-1].records[-1].at)
        if self.done is not None:
            asyncio.get_running_loop().call_soon(self.done, batch, None)

    async def purged(self) -> None:
        """Nothing to wait for: there is no file."""

    def failure(self, _error: Exception) -> Failure:
        return Failure.BROKEN

    def describe(self, error: Exception) -> str:
        return str(error)

    async def read_again(self, *, entirely: bool) -> LastCommit:  # noqa: ARG002 - there is nothing to close
        return self.last

    async def close(self) -> None:
        """Nothing to do."""


def checkpoint(connection: Connection) -> None:
    """Move the WAL into the database, as far as no reader holds it back; it is written over from its start then."""
    connection.execute("PRAGMA main.wal_checkpoint(PASSIVE)").fetchall()


def _make_room(_connection: Connection, wal: Path, size: int) -> None:
    """Lengthen the WAL's file by zeros, to ``size`` bytes, and sync it: docs/topics/commit.md says why."""
    handle = os.open(wal, os.O_WRONLY | os.O_CLOEXEC)
    try:
        begin = os.fstat(handle).st_size
        while begin < size:
            begin += os.pwrite(handle, bytes(min(size - begin, ROOM_PORTION_BYTES)), begin)
        os.fsync(handle)
    finally:
        os.close(handle)


def make_log(directory: LogDirectory, random_bytes: RandomBytes) -> None:
    """Create a log: first anchor and key, then all tables at once. Goes on with one whose creation was interrupted."""
    if directory.log.exists() and _has_tables(directory):
        return
    timeline = _begin(directory, random_bytes).timeline
    directory.create_private(directory.log)
    with closing(directory.connect()) as connection:
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        connection.execute("BEGIN IMMEDIATE")
        make_tables(connection)
        connection.execute(_SQL["begin_meta"], (timeline, meta_mac(directory.read_key(), 0, timeline)))
        connection.execute("COMMIT")


def make_tables(connection: Connection) -> None:
    for statement in statements("log", "schema.sql").values():
        connection.execute(statement)


def _has_tables(directory: LogDirectory) -> bool:
    with closing(directory.connect()) as connection:
        return connection.execute(_SQL["has_tables"]).fetchone() != (0,)


def _begin(directory: LogDirectory, random_bytes: RandomBytes) -> Anchor:
    """The first anchor of a log without tables. Raises ``LogDamaged`` if there may have been a log already."""
    if directory.anchor_path.exists():
        anchor = directory.read_anchor(None)
        if anchor.epoch:
            raise LogDamaged(
                f"{directory.log} is missing or empty, and its anchor knows it up to position {anchor.position}. "
                f"{REMEDY}"
            )
        if directory.key_path.exists():
            return directory.read_anchor(directory.read_key())
    elif directory.key_path.exists():  # without it no one can verify the log that it belongs to
        raise LogDamaged(
            f"{directory.key_path} is there and {directory.log} is new: it may be the key of another log, so it is not "
            "overwritten. Put the log back that it belongs to, or move the file away, or name another: --key FILE."
        )
    return directory.create_key(random_bytes)


def claim(connection: Connection, key: bytes, anchor: Anchor, since: Since, epoch: int) -> LastCommit:
    """Verify what lies after ``since``, then raise the epoch: from now on only this connection can commit.

    ``epoch`` is the one under which this process wrote before, 0 for none. Raises ``LogDamaged`` with the positions, or
    ``Fenced`` if another process took over; the transaction is open then.
    """
    connection.execute("BEGIN IMMEDIATE")  # a killed process may have left a commit under way
    if damage := schema_damage(connection):
        raise LogDamaged(_damage_text(damage))
    before, timeline, _ = connection.execute(_SQL["meta"]).fetchone() or (0, "", b"")
    if epoch not in (0, before):
        raise Fenced
    state = walk(connection, key, before_last_commit(connection, since(connection)), anchor)
    state.damage += meta_damage(connection, key, anchor)
    if state.damage:
        raise LogDamaged(_damage_text(state.damage))
    connection.execute(_SQL["raise_epoch"], (before + 1, meta_mac(key, before + 1, timeline)))
    last = connection.execute(_SQL["last_unit"]).fetchone()
    connection.execute("COMMIT")
    return LastCommit(
        Anchor(state.head, state.hash, before + 1, timeline), 0 if last is None else orjson.loads(last[2])[2]
    )


def _damage_text(damage: list[str]) -> str:
    shown = "; ".join(damage[:SHOWN_DAMAGES])
    more = f"; and {len(damage) - SHOWN_DAMAGES} more" if len(damage) > SHOWN_DAMAGES else ""
    return f"{shown}{more}. {REMEDY} Nothing was overwritten."
