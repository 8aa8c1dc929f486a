"""The read models' tables, made of the ``ReadModel`` values and ``tables.sql``, and how a commit gets into them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from string import Template
from typing import Any, Final

import orjson

from organism.log.batch import Batch
from organism.log.driver import Connection, Parameters, statements
from organism.log.encode import DIGEST_BYTES, SALT_BYTES
from organism.log.log import KEY, ReadModel, Shown
from organism.log.versions import Changes

LAYOUT: Final = 7  # Changes with what this file and tables.sql make of a model
POSITION: Final = "position"  # The column by which the rows of a model lie that says how they are shown
FIELDS_BEGIN: Final = 7  # The place of the first declared field in a version of a commit
PAGE_BYTES: Final = 4096
PAGES_OF_A_COMMIT: Final = 3
"""What a commit writes beside its own bytes: the pages that it shares with its neighbours."""


def stored(models: Sequence[ReadModel]) -> list[ReadModel]:
    return [model for model in models if not model.is_live]


def of_model(statement: str, model: str) -> str:
    """A statement of ``tables.sql`` that needs only to know the table."""
    return fill(statement, table=table_of(model), model=model)


def fingerprint(model: ReadModel) -> str:
    """Changes with everything that the rows in the table depend on but the log."""
    shape = [LAYOUT, model.version, list(model.columns.items()), model.indexes, model.with_content, model.shown]
    return sha256(orjson.dumps(shape)).hexdigest()


def definition(model: ReadModel) -> list[str]:
    own = own_columns(model)
    fields = "".join(f",\n    {column_of(model, name)} {model.columns[name]}" for name in own)
    if not model.shown:
        made = (fill("table", table=table_of(model.name), fields=fields), of_model("by_key", model.name))
        return [*made, *_indexes(model, "index")]
    shown = ", ".join(f"'{field.name}', {_shown(model, field)}" for field in model.shown)
    names = "".join(f", {field_of(name)}" for name in own)
    view = fill("rows_by_position", view=table_of(model.name), table=home_of(model), shown=shown, names=names)
    made = (fill("table_by_position", table=home_of(model), fields=fields), view)
    return [*made, *_indexes(model, "index_by_position")]


def _indexes(model: ReadModel, statement: str) -> list[str]:
    """Rows that never change lie by position, and each index ends with it anyway."""
    own = own_columns(model)
    found = []
    for number, parts in enumerate(model.indexes):
        columns = ", ".join(column_of(model, part) for part in parts if part in own)
        if columns:
            found.append(fill(statement, table=home_of(model), number=str(number), fields=columns))
    return found


def _shown(model: ReadModel, field: Shown) -> str:
    column = KEY if field.column == KEY else column_of(model, field.column)
    return fill("time", column=column) if field.is_time else column


@cache
def fill(statement: str, **parts: str) -> str:
    """A statement of ``tables.sql`` with its places filled."""
    return Template(statements("tables.sql")[statement]).substitute(parts)


def table_of(model: str) -> str:
    """The name of what a model's rows are read from."""
    return f"rows_{model}"


def home_of(model: ReadModel) -> str:
    """The name of the table that the model's rows are written to."""
    return f"kept_{model.name}" if model.shown else table_of(model.name)


def column_of(model: ReadModel, name: str) -> str:
    """The name of a declared column in the table."""
    return "content_at" if model.shown and name == POSITION else field_of(name)


def field_of(name: str) -> str:
    """The name of a declared column that is not the position at which a row lies."""
    return f'"f_{name}"'


def own_columns(model: ReadModel) -> list[str]:
    """The declared columns that the table has of their own."""
    return [name for name in model.columns if not (model.shown and name == POSITION)]


def text_of(value: Any) -> str:
    """The value as JSON, for a parameter that SQLite reads as such."""
    return orjson.dumps(value).decode()


@dataclass(frozen=True, slots=True)
class Commit:
    """The parameters of the one statement that writes a batch; ``size`` is about how many bytes it adds to the WAL."""

    parameters: Parameters
    size: int


class Commits:
    """The statement that writes a batch with the rows of these read models."""

    def __init__(self, models: Sequence[ReadModel]) -> None:
        self.models = models
        self._stored = stored(models)
        self._statement = fill("commit", values=", ?, ?" * len(self._stored))

    def install(self, connection: Connection, *, only_rows: bool = False) -> None:
        """Let a connection write commits; with ``only_rows`` it has no table for units and contents."""
        fields = "".join(f", NULL AS add_{model.name}, NULL AS end_{model.name}" for model in self._stored)
        connection.execute(fill("commits", fields=fields))
        for trigger in ("indexes_spread",) if only_rows else ("commit_spreads", "indexes_spread"):
            connection.execute(fill(trigger))
        for model in self._stored:
            steps = "".join(f"{step};\n" for step in _steps(model))
            connection.execute(fill("rows_spread", name=model.name, steps=steps))

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
        rows = self._row_lists(batch.changes, blob, at)
        joined = b"".join(blob)
        parameters = (epoch, batch.firsts[-1], chained, *lists, types, joined, *rows)
        return Commit(parameters, len(joined) + PAGES_OF_A_COMMIT * PAGE_BYTES)

    def write(self, connection: Connection, commit: Commit) -> None:
        """One statement, one transaction, one fsync."""
        connection.execute(self._statement, commit.parameters)

    def write_again(self, connection: Connection, epoch: int, batch: Batch) -> None:
        """Write the rows and indexes that are made again, of units that are there already."""
        blob: list[bytes] = []
        rows = self._row_lists(batch.changes, blob, 1)
        lists = (text_of(batch.streams), text_of(batch.types))
        connection.execute(self._statement, (epoch, None, None, None, None, *lists, b"".join(blob), *rows))

    def checkpoint(self, connection: Connection) -> None:
        """Move the WAL into the database, as far as no reader holds it back; it is written over from its start then."""
        connection.execute("PRAGMA main.wal_checkpoint(PASSIVE)").fetchall()

    def _row_lists(self, changes: Mapping[str, Changes], blob: list[bytes], end: int) -> list[Any]:
        """Two lists a model, as ``commits`` takes them. The rows' bytes go into ``blob``, ``end`` - 1 long."""
        lists: list[Any] = []
        for model in self._stored:
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
