"""The read models' tables, made of the ``ReadModel`` values and ``rows.sql``, and what a commit holds of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from string import Template
from typing import Any, Final

import orjson
from msgspec import field

from organism.events.entity import Entity
from organism.sqlite.driver import EMPTY_LIST, json_text, statements
from organism.views.views import ReadModel

LAYOUT: Final = 8  # Changed whenever this file or rows.sql makes something else of a model
POSITION: Final = "position"  # The column by which rows that never change lie
FIELDS_BEGIN: Final = 7  # The place of the first declared field in a version of a commit
Written = tuple[bytes, bytes, int, Sequence[Any]]
"""A row as it is stored: its public JSON; its private JSON (empty if there is none); the position of the event whose
content completes it, or at which it lies for good (0 for neither); the values of its declared columns."""


class Changes(Entity):
    """What a commit adds to one model: versions of rows, and which versions they end."""

    versions: list[tuple[int, str, Written]] = field(default_factory=list)  # (number, key, row) of new versions
    ended: list[tuple[int, int]] = field(default_factory=list)  # (number, until) of versions that are over


def stored(models: Sequence[ReadModel]) -> list[ReadModel]:
    return [model for model in models if not model.is_live]


def of_model(statement: str, model: str) -> str:
    """A statement of ``rows.sql`` that needs only to know the table."""
    return fill(statement, table=table_of(model), model=model)


def fingerprint(model: ReadModel) -> str:
    """Changes with everything that the rows in the table depend on but the log."""
    shape = [LAYOUT, model.version, list(model.columns.items()), model.indexes, model.with_content, model.is_final]
    return sha256(orjson.dumps(shape)).hexdigest()


def definition(model: ReadModel) -> list[str]:
    """The statements that create the model's table and indexes."""
    fields = "".join(f",\n    {column_of(model, name)} {model.columns[name]}" for name in own_columns(model))
    kind = "_final" if model.is_final else ""
    made = [fill(f"table{kind}", table=table_of(model.name), fields=fields)]
    if not model.is_final:
        made.append(of_model("by_key", model.name))
    for number, parts in enumerate(model.indexes):
        columns = ", ".join(column_of(model, part) for part in parts)
        made.append(fill(f"index{kind}", table=table_of(model.name), number=str(number), fields=columns))
    return made


@cache
def fill(statement: str, **parts: str) -> str:
    """A statement of ``rows.sql`` with its places filled."""
    return Template(statements("log.rows", "rows.sql")[statement]).substitute(parts)


def table_of(model: str) -> str:
    """The name of what a model's rows are read from."""
    return f"rows_{model}"


def column_of(model: ReadModel, name: str) -> str:
    """The name of a declared column in the table."""
    return "content_at" if model.is_final and name == POSITION else field_of(name)


def field_of(name: str) -> str:
    """The name of a declared column that is not the position at which a row lies."""
    return f'"f_{name}"'


def own_columns(model: ReadModel) -> list[str]:
    """The declared columns that the table has of their own."""
    return [name for name in model.columns if not (model.is_final and name == POSITION)]


def columns_of(model: ReadModel) -> tuple[str, str]:
    """What a commit holds of a model: its new rows, and which versions they end."""
    return f"add_{model.name}", f"end_{model.name}"


def trigger(model: ReadModel) -> str:
    """What writes a model's rows, out of the view ``commits``."""
    own, table = own_columns(model), table_of(model.name)
    places = [FIELDS_BEGIN + number for number, name in enumerate(model.columns) if name in own]
    fields = "".join(f",\n    value ->> {place}" for place in places)
    add = fill("add_final" if model.is_final else "add", table=table, model=model.name, fields=fields)
    steps = (add,) if model.is_final else (add, fill("end", table=table, model=model.name))
    return fill("rows_spread", name=model.name, steps="".join(f"{step};\n" for step in steps))


def row_lists(models: Sequence[ReadModel], changes: Mapping[str, Changes], blob: list[bytes], end: int) -> list[Any]:
    """Two lists a model, as ``commits`` takes them. The rows' bytes go into ``blob``, ``end`` - 1 long."""
    lists: list[Any] = []
    for model in models:
        found = changes.get(model.name)
        if found is None:
            lists += (EMPTY_LIST, EMPTY_LIST)
            continue
        versions = []
        for number, key, (public, private, content_at, columns) in found.versions:
            middle = end + len(public)
            versions.append((number, key, end, len(public), middle, len(private), content_at, *columns))
            blob += (public, private)
            end = middle + len(private)
        lists += (json_text(versions), json_text(found.ended))
    return lists
