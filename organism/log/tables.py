"""The read models' tables: how they are made and written, from the ``ReadModel`` values and ``tables.sql``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from string import Template
from typing import Any, Final

import orjson

from organism.log.batch import Touched
from organism.log.cache import SPAN_EVENTS, Written
from organism.log.driver import Parameters
from organism.log.folds import Folds
from organism.log.log import KEY, ReadModel, Shown
from organism.log.queries import statements

FIELDS_BEGIN: Final = 7
"""The place of the first declared field in a row of a flush."""
PAST_FIELDS_BEGIN: Final = 8
"""The same in a past row of a flush."""
LAYOUT: Final = 6
"""Changes with what this file and tables.sql make of a model."""
POSITION: Final = "position"
"""The column by which the rows of a model lie that says how they are shown."""
NOTHING: Final = "[]"
_SQL: Final = statements("tables.sql")


def of_model(statement: str, model: str) -> str:
    """A statement of ``tables.sql`` that needs only to know the table."""
    return fill(statement, table=table_of(model), model=model)


def fingerprint(model: ReadModel) -> str:
    """Changes with everything that the rows in the table depend on but the log."""
    kind = [model.with_content, model.is_final, model.shown]
    shape = [LAYOUT, SPAN_EVENTS, model.version, list(model.columns.items()), model.indexes, *kind]
    return sha256(orjson.dumps(shape)).hexdigest()


def definition(model: ReadModel) -> list[str]:
    """The statements that make the model's table and indexes."""
    fields = "".join(f",\n    {column_of(model, name)} {model.columns[name]}" for name in own_columns(model))
    if model.shown:
        shown = ", ".join(f"'{field.name}', {_shown(model, field)}" for field in model.shown)
        names = "".join(f", {field_of(name)}" for name in own_columns(model))
        view = fill("rows_by_position", view=table_of(model.name), table=_home(model), shown=shown, names=names)
        return [fill("table_by_position", table=_home(model), fields=fields), view, *_indexes(model)]
    made = [fill("table", table=table_of(model.name), fields=fields), *_indexes(model)]
    past = (fill("past", model=model.name, fields=fields), fill("past_index", model=model.name))
    return made if model.is_final else [*made, *past]


def _indexes(model: ReadModel) -> list[str]:
    """Where rows lie by position, each index ends with it anyway, and the table is the one by position alone."""
    own = own_columns(model)
    found = []
    for number, parts in enumerate(model.indexes):
        columns = ", ".join(column_of(model, part) for part in parts if part in own)
        if columns:
            statement = "index_by_position" if model.shown else "index"
            found.append(fill(statement, table=_home(model), number=str(number), fields=columns))
    return found


def _shown(model: ReadModel, field: Shown) -> str:
    """What makes a field of the public row."""
    column = KEY if field.column == KEY else column_of(model, field.column)
    return fill("time", column=column) if field.is_time else column


def flush_definition(models: Sequence[ReadModel]) -> list[str]:
    """The view that takes a flush, and its trigger."""
    names = "".join(f", NULL AS {kind}_{model.name}" for model in models for kind in "wdp")
    rows = [step for model in models for step in _flush_steps(model)]
    steps = [_SQL["fence"], _SQL["streams"], *rows, _SQL["position"]]
    return [fill("flushes", fields=names), fill("flush_spreads", steps=";\n".join(steps))]


def flush_statement(models: Sequence[ReadModel]) -> str:
    """The INSERT that ``flush_definition`` waits for."""
    return fill("flush", fields=", ?, ?, ?" * len(models))


def flush_parameters(folds: Folds, streams: Sequence[Touched]) -> Parameters:
    """What leaves the memory now: all of a row for ``flush_statement`` but the epoch that comes first in it."""
    blob = _Blob()
    lists: list[str] = []
    for cache in folds.caches.values():
        written: list[tuple[Any, ...]] = []
        deleted: list[str] = []
        leaving = cache.leave()
        if cache.model.shown:
            lists += (text_of(list(leaving.values())), NOTHING, NOTHING)
            continue
        for key, row in leaving.items():
            if row is None:
                deleted.append(key)
            else:
                written.append((key, *blob.put(cache.write(row))))
        stood = [(key, until, *blob.put(row)) for key, until, row in cache.stood()]
        lists += (text_of(written), text_of(deleted), text_of(stood))
    return (folds.position, text_of(streams), b"".join(blob.parts), *lists)


class _Blob:
    """The bytes of all rows of a flush, one after the other: a bound value for each would cost more than the rows."""

    __slots__ = ("_end", "parts")

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._end = 1

    def put(self, row: Written) -> tuple[Any, ...]:
        """Where the two texts of a row lie, and the rest of it."""
        public, private, content_at, since, columns = row
        begin, middle = self._end, self._end + len(public)
        self._end = middle + len(private)
        self.parts += (public, private)
        return (begin, len(public), middle, len(private), content_at, since, *columns)


def _flush_steps(model: ReadModel) -> list[str]:
    if model.shown:
        return [_write_by_position(model)]
    steps = [
        fill("write", table=table_of(model.name), fields=_taken(model, FIELDS_BEGIN), model=model.name),
        fill("delete", table=table_of(model.name), model=model.name),
    ]
    if model.is_final:
        return steps
    return [*steps, fill("write_past", model=model.name, fields=_taken(model, PAST_FIELDS_BEGIN))]


def _write_by_position(model: ReadModel) -> str:
    """A row of the flush is its key and the declared columns."""
    places = {name: place for place, name in enumerate(model.columns, 1)}
    own = own_columns(model)
    return fill(
        "write_by_position",
        table=_home(model),
        model=model.name,
        position=str(places[POSITION]),
        names="".join(f", {column_of(model, name)}" for name in own),
        fields="".join(f", value ->> {places[name]}" for name in own),
    )


def _taken(model: ReadModel, begin: int) -> str:
    """The declared fields, out of a JSON array."""
    return "".join(f",\n    value ->> {begin + number}" for number in range(len(model.columns)))


@lru_cache(maxsize=1024)
def fill(statement: str, **parts: str) -> str:
    """A statement of ``tables.sql`` with its places filled."""
    return Template(_SQL[statement]).substitute(parts)


def table_of(model: str) -> str:
    """The name of what a model's rows are read from."""
    return f"rows_{model}"


def _home(model: ReadModel) -> str:
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
