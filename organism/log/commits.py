"""What the disk's thread does to the log's own file: write a batch by one statement, move the WAL into the database."""

from __future__ import annotations

from typing import Any, Final

import orjson

from organism.errors import LogUnavailable
from organism.log.batch import Batch
from organism.log.chain import DIGEST_BYTES, SALT_BYTES
from organism.log.driver import Connection
from organism.log.queries import statements

WAL_BYTES: Final = 16 << 20
"""So much is written to the WAL before it is moved into the database."""
PAGE_BYTES: Final = 4096
PAGES_OF_A_COMMIT: Final = 4
"""What a commit writes beside its own bytes: the pages that it shares with its neighbours."""


def commit_parameters(epoch: int, batch: Batch, chained: bytes) -> tuple[Any, ...]:
    """A batch as one row of the view ``commits``; ``chained`` is the commit's hash."""
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
    return (
        epoch,
        batch.firsts[-1],
        chained,
        orjson.dumps(units).decode(),
        orjson.dumps(contents).decode(),
        b"".join(blob),
    )


class Commits:
    """The writing connection. ``wal_bytes`` is about how much the WAL holds that the database does not."""

    __slots__ = ("_commit", "_connection", "wal_bytes")

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self.wal_bytes = 0
        self._commit = statements("log.sql")["commit"]

    @property
    def connection(self) -> Connection:
        """The connection; raises ``LogUnavailable`` if there is none just now."""
        if self._connection is None:
            raise LogUnavailable
        return self._connection

    def use(self, connection: Connection) -> None:
        """Write over this connection from now on."""
        self._connection = connection
        self.wal_bytes = 0

    def close(self) -> None:
        """Close the connection; what its close has to say matters to nobody."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()

    def write(self, parameters: tuple[Any, ...]) -> None:
        """One statement, one transaction, one fsync."""
        self.connection.execute(self._commit, parameters)
        self.wal_bytes += len(parameters[5]) + PAGES_OF_A_COMMIT * PAGE_BYTES

    def checkpoint(self) -> None:
        """Move the WAL into the database, as far as no reader holds it back; the file is written over from its start then."""
        self.connection.execute("PRAGMA main.wal_checkpoint(PASSIVE)").fetchall()
        self.wal_bytes = 0
