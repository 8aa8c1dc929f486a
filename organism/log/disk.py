"""The writing side of the durable engine: the chain, the commit, the anchor, the WAL, and what follows a failure."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from organism.errors import LogUnavailable
from organism.log.batch import Batch
from organism.log.connect import Connector
from organism.log.connections import Connections
from organism.log.driver import Connection, Failure
from organism.log.opening import Claimant, Truth
from organism.log.place import Anchor

Done = Callable[[Batch, Exception | None], None]
ANCHOR_SECONDS: Final = 0.2
FULL_WAL_BYTES: Final = 8 << 20
"""So much is written before the WAL is moved into the database while commits go on."""
USED_WAL_BYTES: Final = 256 << 10
"""A log that has written so much gets room for the rest."""
ROOM_PORTION_BYTES: Final = 1 << 20
IDLE_WAL_BYTES: Final = 1 << 20
"""So much is enough when nothing waits."""
FIRST_RETRY_SECONDS: Final = 0.1
LAST_RETRY_SECONDS: Final = 5.0


class Disk:
    """Writes one batch at a time. ``head`` is the last commit that is known to be on the disk.

    ``done(batch, error)`` is called in the loop's thread; after an error nothing may be written until ``regain`` has
    returned.
    """

    def __init__(self, connections: Connections, connector: Connector, key: bytes, truth: Truth) -> None:
        self._loop = asyncio.get_running_loop()
        self._connections = connections
        self._connector = connector
        self.key = key
        self.done: Done | None = None
        self.head = truth.head
        self._passing: tuple[type[Exception], ...] = (*connector.driver.errors, OSError, LogUnavailable)
        self._is_writing = False
        self._wal_bytes = 0
        self._wants_room = True
        self._timer: asyncio.TimerHandle | None = None

    def write(self, batch: Batch) -> None:
        self._is_writing = True
        chained = batch.hash(self.key, self.head.hash)
        commit = self._connections.commits.make(self.head.epoch, batch, chained)
        self._wal_bytes += commit.size
        self._connections.writer.post(partial(self._wrote, batch, chained), self._connections.commits.write, commit)

    def failure(self, error: Exception) -> Failure:
        """What kind of failure it is, or was before it was explained."""
        cause = error.__cause__
        return self._connector.driver.failure(cause if isinstance(cause, Exception) else error)

    def describe(self, error: Exception) -> str:
        """The error in words that may reach a client: without the place of the log."""
        return self._connector.place.without_paths(str(error))

    async def regain(self, error: Exception) -> Truth:
        """Read the disk again until it can be written, and return what is on it; ``error`` is why.

        A disk that is full or locked leaves what was read intact; after any other error every connection is closed,
        so that nothing is believed that only a cache shows. Raises ``LogDamaged`` if something acknowledged is not
        there, ``Fenced``.
        """
        delay = FIRST_RETRY_SECONDS
        while True:
            is_broken = self.failure(error) is Failure.BROKEN
            try:
                truth = await self._connections.renew(self._claim, entirely=is_broken)
            except self._passing as again:
                error = again
                await asyncio.sleep(delay)
                delay = min(2 * delay, LAST_RETRY_SECONDS)
                continue
            self.head = truth.head
            self._wal_bytes = 0
            return truth

    def anchor(self, *, is_synced: bool = False) -> None:
        self._connector.place.write_anchor(self.head, self.key, is_synced=is_synced)

    def close(self) -> None:
        """Anchor the head for good: from now on another process may take the place."""
        if self._timer is not None:
            self._timer.cancel()
        self.anchor(is_synced=True)

    def _claim(self, connection: Connection) -> Truth:
        return Claimant(self._connector, self.key, self.head, self.head.epoch).claim(
            connection, lambda _: self.head.position
        )

    def _wrote(self, batch: Batch, chained: bytes, _: Any, error: Exception | None) -> None:
        self._is_writing = False
        if error is None:
            self.head = Anchor(batch.last, chained, self.head.epoch, self.head.timeline)
        self._tell(batch, error)
        if self._wal_bytes > FULL_WAL_BYTES:
            self._checkpoint()
        elif self._wal_bytes > USED_WAL_BYTES and self._wants_room:
            self._make_room()
        if self._timer is None:
            self._timer = self._loop.call_later(ANCHOR_SECONDS, self._pause)

    def _tell(self, batch: Batch, error: Exception | None) -> None:
        if self.done is not None:
            self.done(batch, error)

    def _pause(self) -> None:
        """Now and then while writing: the head goes outside the database, and the WAL into it when nothing waits."""
        self._timer = None
        self.anchor()
        if not self._is_writing and self._wal_bytes > IDLE_WAL_BYTES:
            self._checkpoint()

    def _make_room(self) -> None:
        """Done once. If it fails, commits are slower, nothing else."""
        self._wants_room = False
        wal = self._connector.place.wal
        self._connections.writer.post(lambda _, __: None, _make_room, wal, FULL_WAL_BYTES + FULL_WAL_BYTES // 8)

    def _checkpoint(self) -> None:
        self._wal_bytes = 0
        self._connections.writer.post(self._checkpointed, self._connections.commits.checkpoint)

    def _checkpointed(self, _: Any, error: Exception | None) -> None:
        """A checkpoint that found no room is tried again; one that broke puts in question all that it moved."""
        if error is not None and self.failure(error) is Failure.BROKEN:
            self._tell(Batch(), error)


def _make_room(wal: Path, size: int) -> None:
    """Lengthen the WAL's file by zeros, to ``size`` bytes, and sync it.

    A commit that writes over what is there needs half the time of one that makes the file longer, since the file
    system has nothing to note. SQLite ends its reading at the first frame whose checksum does not fit, so that zeros
    are the end.
    """
    handle = os.open(wal, os.O_WRONLY | os.O_CLOEXEC)
    try:
        begin = os.fstat(handle).st_size
        while begin < size:
            begin += os.pwrite(handle, bytes(min(size - begin, ROOM_PORTION_BYTES)), begin)
        os.fsync(handle)
    finally:
        os.close(handle)
