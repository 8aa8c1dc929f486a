"""How a commit gets into the tables: one statement writes units, contents, indexes and rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Template
from typing import Any, Final

from organism.errors import LogUnavailable
from organism.log.batch import Batch, Touched, TypeSpan
from organism.log.chain import DIGEST_BYTES, SALT_BYTES
from organism.log.driver import Connection, Parameters, statements
from organism.log.log import ReadModel
from organism.log.tables import POSITION, column_of, fill, home_of, own_columns, stored, table_of, text_of
from organism.log.versions import Changes

FIELDS_BEGIN: Final = 7
"""The place of the first declared field in a version of a commit."""
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
        connection.execute(_fill("commits", fields=_fields(self.models)))
        for trigger in ("indexes_spread",) if only_rows else ("commit_spreads", "indexes_spread"):
            connection.execute(_SQL[trigger])
        for model in stored(self.models):
            steps = "".join(f"{step};\n" for step in _steps(model))
            connection.execute(_fill("rows_spread", name=model.name, steps=steps))
        self._connection = connection

    def close(self) -> None:
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
        rows = _row_lists(self.models, batch.changes, blob, at)
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
        rows = _row_lists(self.models, changes, blob, 1)
        lists = (text_of(streams), text_of(types))
        parameters = (epoch, None, None, None, None, *lists, b"".join(blob), *rows)
        self.connection.execute(self._statement, parameters)

    def checkpoint(self) -> None:
        """Move the WAL into the database, as far as no reader holds it back; it is written over from its start then."""
        self.connection.execute("PRAGMA main.wal_checkpoint(PASSIVE)").fetchall()


def _fill(statement: str, **parts: str) -> str:
    return Template(_SQL[statement]).substitute(parts)


def _fields(models: Sequence[ReadModel]) -> str:
    return "".join(f", NULL AS add_{model.name}, NULL AS end_{model.name}" for model in stored(models))


def _steps(model: ReadModel) -> list[str]:
    """What the trigger of a model does to write its rows."""
    if not model.shown:
        fields = "".join(f",\n    value ->> {FIELDS_BEGIN + number}" for number in range(len(model.columns)))
        return [
            fill("add", table=table_of(model.name), model=model.name, fields=fields),
            fill("end", table=table_of(model.name), model=model.name),
        ]
    places = {name: place for place, name in enumerate(model.columns, 1)}
    own = own_columns(model)
    return [
        fill(
            "add_by_position",
            table=home_of(model),
            model=model.name,
            position=str(places[POSITION]),
            names="".join(f", {column_of(model, name)}" for name in own),
            fields="".join(f", value ->> {places[name]}" for name in own),
        )
    ]


def _row_lists(models: Sequence[ReadModel], changes: Mapping[str, Changes], blob: list[bytes], end: int) -> list[Any]:
    """The values of ``_fields``. The rows' bytes go into ``blob``, which has ``end`` - 1 bytes so far."""
    lists: list[Any] = []
    for model in stored(models):
        found = changes.get(model.name)
        if found is None:
            lists += (None, None)
            continue
        if model.shown:
            lists += (text_of(found.shown), None)
            continue
        versions = []
        for number, key, (public, private, content_at, columns) in found.versions:
            middle = end + len(public)
            versions.append((number, key, end, len(public), middle, len(private), content_at, *columns))
            blob += (public, private)
            end = middle + len(private)
        lists += (text_of(versions) if versions else None, text_of(found.ended) if found.ended else None)
    return lists
