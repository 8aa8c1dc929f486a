"""The read models' tables, made of the ``ReadModel`` values and ``tables.sql``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from string import Template
from typing import Any, Final

import orjson

from organism.log.driver import statements
from organism.log.log import KEY, ReadModel, Shown

LAYOUT: Final = 7
"""Changes with what this file and tables.sql make of a model."""
POSITION: Final = "position"
"""The column by which the rows of a model lie that says how they are shown."""
_SQL: Final = statements("tables.sql")


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


@lru_cache(maxsize=1024)
def fill(statement: str, **parts: str) -> str:
    """A statement of ``tables.sql`` with its places filled."""
    return Template(_SQL[statement]).substitute(parts)


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
