"""What the disk's thread does to the log's own file: write a batch by one statement, move the WAL into the database."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

from organism.errors import LogUnavailable
from organism.log.batch import Batch
from organism.log.chain import DIGEST_BYTES, SALT_BYTES
from organism.log.driver import Connection, Parameters
from organism.log.queries import statements

ROOM_PORTION_BYTES: Final = 1 << 20
PAGE_BYTES: Final = 4096
PAGES_OF_A_COMMIT: Final = 3
"""What a commit writes beside its own bytes: the pages that it shares with its neighbours."""
NO_CONTENT: Final = (None, None, None, None, None)

_SQL: Final = statements("log.sql")


@dataclass(frozen=True, slots=True)
class Commit:
    """A batch as one statement and its parameters; ``size`` is about how many bytes it adds to the WAL."""

    sql: str
    parameters: Parameters
    size: int


def make_commit(epoch: int, batch: Batch, chained: bytes) -> Commit:
    """Prepare the batch for the writing thread; ``chained`` is the commit's hash."""
    size = batch.size + PAGES_OF_A_COMMIT * PAGE_BYTES
    if len(batch.units) > 1 or len(batch.contents) > 1:
        return Commit(_SQL["commit"], _of_many(epoch, batch, chained), size)
    content = batch.contents[0] if batch.contents else NO_CONTENT
    alone = (epoch, batch.firsts[0], batch.digests[0], batch.bodies[0], chained, *content)
    return Commit(_SQL["commit_alone"], alone, size)


def _of_many(epoch: int, batch: Batch, chained: bytes) -> Parameters:
    blob: list[bytes] = []
    at = 1
    units = []
    for first, sealed, body in zip(batch.firsts, batch.digests, batch.bodies, strict=True):
        size = len(body)
        units.append((first, at, size))
        blob += (sealed, body)
        at += DIGEST_BYTES + size
    contents = []
    for position, owner, salt, json, xml in batch.contents:
        json_size, xml_size = len(json), len(xml)
        contents.append((position, owner, at, json_size, xml_size))
        blob += (salt, json, xml)
        at += SALT_BYTES + json_size + xml_size
    lists = (orjson.dumps(units).decode(), orjson.dumps(contents).decode())
    return (epoch, batch.firsts[-1], chained, *lists, b"".join(blob))


class Commits:
    """The writing connection."""

    __slots__ = ("_connection",)

    def __init__(self) -> None:
        self._connection: Connection | None = None

    @property
    def connection(self) -> Connection:
        """The connection; raises ``LogUnavailable`` if there is none just now."""
        if self._connection is None:
            raise LogUnavailable
        return self._connection

    def use(self, connection: Connection) -> None:
        """Write over this connection from now on."""
        for statement in statements("commit.sql").values():
            connection.execute(statement)
        self._connection = connection

    def close(self) -> None:
        """Close the connection; what its close has to say matters to nobody."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()

    def write(self, commit: Commit) -> None:
        """One statement, one transaction, one fsync."""
        self.connection.execute(commit.sql, commit.parameters)

    def checkpoint(self) -> None:
        """Move the WAL into the database, as far as no reader holds it back; it is written over from its start then."""
        self.connection.execute("PRAGMA main.wal_checkpoint(PASSIVE)").fetchall()


def make_room(wal: Path, size: int) -> None:
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
