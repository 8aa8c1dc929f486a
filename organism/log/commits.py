"""What the disk's thread does to the log's own file: write a batch by one statement, move the WAL into the database."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Final

from organism.errors import LogUnavailable
from organism.log.batch import Batch, Touched
from organism.log.chain import DIGEST_BYTES, SALT_BYTES
from organism.log.driver import Connection, Parameters
from organism.log.log import ReadModel
from organism.log.queries import statements
from organism.log.spans import TypeSpan
from organism.log.tables import commit_fields, commit_lists, commit_steps, stored, text_of, trigger_groups
from organism.log.versions import Changes

ROOM_PORTION_BYTES: Final = 1 << 20
PAGE_BYTES: Final = 4096
PAGES_OF_A_COMMIT: Final = 3
"""What a commit writes beside its own bytes: the pages that it shares with its neighbours."""

_SQL: Final = statements("commit.sql")


@dataclass(frozen=True, slots=True)
class Commit:
    """The parameters of the one statement that writes a batch; ``size`` is about how many bytes it adds to the WAL."""

    parameters: Parameters
    size: int


class Commits:
    """The writing connection, and what it writes for these read models."""

    def __init__(self, models: Sequence[ReadModel]) -> None:
        self.models = models
        self._statement = _fill("commit", values=", ?, ?" * len(stored(models)))
        self._connection: Connection | None = None

    @property
    def connection(self) -> Connection:
        """The connection; raises ``LogUnavailable`` if there is none just now."""
        if self._connection is None:
            raise LogUnavailable
        return self._connection

    def use(self, connection: Connection, *, only_rows: bool = False) -> None:
        """Write over this connection from now on; with ``only_rows`` it has no table for units and contents."""
        connection.execute(_fill("commits", fields=commit_fields(self.models)))
        for trigger in ("indexes_spread",) if only_rows else ("commit_spreads", "indexes_spread"):
            connection.execute(_SQL[trigger])
        for name, models in trigger_groups(self.models).items():
            steps = "".join(f"{step};\n" for model in models for step in commit_steps(model))
            touched = " OR ".join(
                f"new.{list_}_{model.name} IS NOT NULL" for model in models for list_ in ("add", "end")
            )
            connection.execute(_fill("rows_spread", name=name, touched=touched, steps=steps))
        self._connection = connection

    def close(self) -> None:
        """Close the connection; what its close has to say matters to nobody."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            connection.close()

    def make(self, epoch: int, batch: Batch, chained: bytes) -> Commit:
        """Prepare the batch for the writing thread, which computes nothing; ``chained`` is the commit's hash."""
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
        lists = (text_of(units), text_of(contents) if contents else None, text_of(batch.streams))
        types = text_of(batch.types) if batch.types else None
        rows = commit_lists(self.models, batch.changes, blob, at)
        joined = b"".join(blob)
        parameters = (epoch, batch.firsts[-1], chained, *lists, types, joined, *rows)
        return Commit(parameters, len(joined) + PAGES_OF_A_COMMIT * PAGE_BYTES)

    def write(self, commit: Commit) -> None:
        """One statement, one transaction, one fsync."""
        self.connection.execute(self._statement, commit.parameters)

    def write_again(
        self, epoch: int, changes: Mapping[str, Changes], streams: Sequence[Touched], types: Sequence[TypeSpan]
    ) -> None:
        """Write rows and indexes that are made again, of units that are there already."""
        blob: list[bytes] = []
        rows = commit_lists(self.models, changes, blob, 1)
        lists = (text_of(streams), text_of(types))
        parameters = (epoch, None, None, None, None, *lists, b"".join(blob), *rows)
        self.connection.execute(self._statement, parameters)

    def checkpoint(self) -> None:
        """Move the WAL into the database, as far as no reader holds it back; it is written over from its start then."""
        self.connection.execute("PRAGMA main.wal_checkpoint(PASSIVE)").fetchall()


def _fill(statement: str, **parts: str) -> str:
    return Template(_SQL[statement]).substitute(parts)


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
