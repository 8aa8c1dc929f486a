"""The read models' tables: their statements, made from the ``ReadModel`` values and ``tables.sql``."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from string import Template
from typing import Any, Final

import orjson

from organism.log.batch import Touched
from organism.log.driver import Parameters
from organism.log.folds import Folds
from organism.log.log import Query, ReadModel, Where
from organism.log.queries import statements

Statement = tuple[str, list[Any]]
"""SQL and its parameters."""
COMPARISONS: Final = frozenset({"=", "<", "<=", ">", ">="})
FIELDS_BEGIN: Final = 6
"""The place of the first declared field in a row of a flush."""
_SQL: Final = statements("tables.sql")


def of_model(statement: str, model: str) -> str:
    """A statement of ``tables.sql`` that needs only to know the table."""
    return _fill(statement, table=_table(model))


def fingerprint(model: ReadModel) -> str:
    """Changes with everything that the rows in the table depend on but the log."""
    shape = [model.version, list(model.columns.items()), model.indexes, model.with_content, model.is_final]
    return sha256(orjson.dumps(shape)).hexdigest()


def definition(model: ReadModel) -> list[str]:
    """The statements that make the model's table and indexes."""
    fields = "".join(f",\n    {_column(name)} {kind}" for name, kind in model.columns.items())
    made = [_fill("table", table=_table(model.name), fields=fields)]
    for number, parts in enumerate(model.indexes):
        columns = ", ".join(_column(part) for part in parts)
        made.append(_fill("index", table=_table(model.name), number=str(number), fields=columns))
    return made


def flush_definition(models: Sequence[ReadModel]) -> list[str]:
    """The view that takes a flush, and its trigger."""
    names = "".join(f", NULL AS w_{model.name}, NULL AS d_{model.name}" for model in models)
    steps = [_SQL["streams"], *(step for model in models for step in _flush_steps(model)), _SQL["position"]]
    return [_fill("flushes", fields=names), _fill("flush_spreads", steps=";\n".join(steps))]


def flush_statement(models: Sequence[ReadModel]) -> str:
    """The INSERT that ``flush_definition`` waits for."""
    return _fill("flush", fields=", ?, ?" * len(models))


def flush_parameters(folds: Folds, streams: Sequence[Touched]) -> Parameters:
    """What leaves the memory now, as one row for ``flush_statement``."""
    blob: list[bytes] = []
    at = 1
    lists: list[str] = []
    for cache in folds.caches.values():
        written, deleted = [], []
        for key, row in cache.leave().items():
            if row is None:
                deleted.append(key)
                continue
            public, private, content_at, columns = cache.write(row)
            middle = at + len(public)
            written.append((key, at, len(public), middle, len(private), content_at, *columns))
            blob += (public, private)
            at = middle + len(private)
        lists += (_text(written), _text(deleted))
    return (folds.position, _text(streams), b"".join(blob), *lists)


def page_statement(model: ReadModel, query: Query) -> Statement:
    """One row: the finished JSON array of a page, and how many rows it has."""
    parts, values = _parts(model, query)
    direction = "DESC" if query.descending else "ASC"
    by = f"r.{_column(known_column(model, query.order_by))} {direction}, " if query.order_by else ""
    row = _SQL["page_row_with_content" if model.with_content else "page_row"]
    return _fill("page", row=row, order=f"{by}r.key {direction}", **parts), [*values, query.limit, query.offset]


def total_statement(model: ReadModel, query: Query) -> Statement:
    """How many rows match."""
    parts, values = _parts(model, query)
    return _fill("total", **parts), values


def known_column(model: ReadModel, name: str) -> str:
    """The name, if the model declares such a column; raises ``ValueError``."""
    if name not in model.columns:
        raise ValueError(f"Read model {model.name} has the columns {', '.join(model.columns)}, not {name!r}.")
    return name


def _parts(model: ReadModel, query: Query) -> tuple[dict[str, str], list[Any]]:
    """What a page and its total have in common: table, content, conditions, and the conditions' values."""
    found = [_condition(model, where) for where in query.where]
    if query.text:
        found.append((_SQL["text"], [orjson.dumps(query.text).decode()[1:-1]]))
    where = f"WHERE {' AND '.join(part for part, _ in found)}" if found else ""
    content = _SQL["content"] if model.with_content else ""
    values = [value for _, given in found for value in given]
    return {"table": _table(model.name), "content": content, "where": where}, values


def _condition(model: ReadModel, where: Where) -> Statement:
    columns = [f"r.{_column(known_column(model, name))}" for name in where.any_of or (where.column,)]
    if where.op == "in":
        part, value = _SQL["one_of"], _text(where.value)
    elif where.op == "has":
        part, value = _SQL["has"], f"|{where.value}|"
    elif where.op in COMPARISONS:
        part, value = f"$field {where.op} ?", where.value
    else:
        raise ValueError(f"Expected an operator of `Where`, got {where.op!r}.")
    parts = [Template(part).substitute(field=column) for column in columns]
    return f"({' OR '.join(parts)})", [value] * len(parts)


def _flush_steps(model: ReadModel) -> list[str]:
    fields = "".join(f",\n    value ->> {number + FIELDS_BEGIN}" for number in range(len(model.columns)))
    return [
        _fill("write", table=_table(model.name), fields=fields, model=model.name),
        _fill("delete", table=_table(model.name), model=model.name),
    ]


def _fill(statement: str, **parts: str) -> str:
    return Template(_SQL[statement]).substitute(parts)


def _table(model: str) -> str:
    return f"rows_{model}"


def _column(name: str) -> str:
    return f'"f_{name}"'


def _text(value: Any) -> str:
    return orjson.dumps(value).decode()
