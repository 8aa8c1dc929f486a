"""The read models' tables: their statements, made from the ``ReadModel`` values and ``tables.sql``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from string import Template
from typing import Any, Final

import orjson

from organism.log.batch import Touched
from organism.log.cache import Mark, Written
from organism.log.driver import Parameters
from organism.log.folds import Folds
from organism.log.log import Query, ReadModel, Where
from organism.log.queries import statements

Statement = tuple[str, list[Any]]
"""SQL and its parameters."""
COMPARISONS: Final = frozenset({"=", "<", "<=", ">", ">="})
FIELDS_BEGIN: Final = 6
"""The place of the first declared field in a row of a flush."""
PAST_FIELDS_BEGIN: Final = 8
"""The same in a past row of a flush."""
FORWARD_FIELDS_BEGIN: Final = 3
"""The same in a row that was folded on from a milestone."""
FOR_EVER: Final = (1 << 63) - 1
"""The end of a past row that stands as it is now."""
LAYOUT: Final = 2
"""Changes with what this file and tables.sql make of a model."""
_SQL: Final = statements("tables.sql")


def of_model(statement: str, model: str) -> str:
    """A statement of ``tables.sql`` that needs only to know the table."""
    return _fill(statement, table=_table(model), model=model)


def fingerprint(model: ReadModel) -> str:
    """Changes with everything that the rows in the table depend on but the log."""
    shape = [LAYOUT, model.version, list(model.columns.items()), model.indexes, model.with_content, model.is_final]
    return sha256(orjson.dumps(shape)).hexdigest()


def definition(model: ReadModel) -> list[str]:
    """The statements that make the model's table and indexes."""
    fields = "".join(f",\n    {_column(name)} {kind}" for name, kind in model.columns.items())
    made = [_fill("table", table=_table(model.name), fields=fields)]
    for number, parts in enumerate(model.indexes):
        columns = ", ".join(_column(part) for part in parts)
        made.append(_fill("index", table=_table(model.name), number=str(number), fields=columns))
    return made if model.is_final else [*made, *_past_definition(model, fields)]


def _past_definition(model: ReadModel, fields: str) -> list[str]:
    indexes = (*model.indexes, ())  # the last one counts all rows
    columns = ["".join(f"{_column(part)}, " for part in parts) for parts in indexes]
    return [
        _fill("past", model=model.name, fields=fields),
        *(
            _fill("past_index", model=model.name, number=str(number), fields=listed)
            for number, listed in enumerate(columns)
        ),
    ]


def flush_definition(models: Sequence[ReadModel]) -> list[str]:
    """The view that takes a flush, and its trigger."""
    names = "".join(f", NULL AS {kind}_{model.name}" for model in models for kind in "wdep")
    steps = [_SQL["streams"], *(step for model in models for step in _flush_steps(model)), _SQL["position"]]
    return [_fill("flushes", fields=names), _fill("flush_spreads", steps=";\n".join(steps))]


def flush_statement(models: Sequence[ReadModel]) -> str:
    """The INSERT that ``flush_definition`` waits for."""
    return _fill("flush", fields=", ?, ?, ?, ?" * len(models))


def flush_parameters(folds: Folds, streams: Sequence[Touched]) -> Parameters:
    """What leaves the memory now, as one row for ``flush_statement``."""
    blob = _Blob()
    lists: list[str] = []
    for cache in folds.caches.values():
        written, deleted = [], []
        for key, row in cache.leave().items():
            if row is None:
                deleted.append(key)
            else:
                written.append((key, *blob.put(cache.write(row))))
        ended, past = _spans(cache.marks())
        stood = [(key, since, until, *blob.put(row)) for key, since, until, row in past]
        lists += (_text(written), _text(deleted), _text(ended), _text(stood))
    return (folds.position, _text(streams), b"".join(blob.parts), *lists)


class _Blob:
    """The bytes of all rows of a flush, one after the other: a bound value for each would cost more than the rows."""

    __slots__ = ("_end", "parts")

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._end = 1

    def put(self, row: Written) -> tuple[Any, ...]:
        """Where the two texts of a row lie, and the rest of it."""
        public, private, content_at, columns = row
        begin, middle = self._end, self._end + len(public)
        self._end = middle + len(private)
        self.parts += (public, private)
        return (begin, len(public), middle, len(private), content_at, *columns)


def _spans(marks: Sequence[Mark]) -> tuple[list[tuple[str, int]], list[tuple[str, int, int, Written]]]:
    """(key, milestone) of the rows that stood until the first mark of their key; (key, since, until, row) of these."""
    ended: dict[str, int] = {}
    until: dict[tuple[str, int], int] = {}
    last: dict[str, int] = {}
    for key, milestone, _ in marks:
        ended.setdefault(key, milestone)
        until[key, last.get(key, 0)] = milestone
        last[key] = milestone
    past = [(key, at, until.get((key, at), FOR_EVER), row) for key, at, row in marks if row is not None]
    return list(ended.items()), past


def rows_at(model: ReadModel, milestone: int, position: int, forward: Mapping[str, Written | None]) -> Statement:
    """The model's rows as they stood at ``position``; ``forward`` are those that changed after ``milestone``."""
    if model.is_final:
        return _fill("final_rows_at", table=_table(model.name)), [position]
    names = [_column(name) for name in model.columns]
    fields = "".join(f", value ->> {number + FORWARD_FIELDS_BEGIN}" for number in range(len(names)))
    rows = [(key, row[0].decode(), row[2], *row[3]) for key, row in forward.items() if row is not None]
    statement = _fill("rows_at", model=model.name, columns="".join(f", {name}" for name in names), fields=fields)
    return statement, [milestone, milestone, _text(list(forward)), _text(rows)]


def page_statement(model: ReadModel, query: Query, rows: Statement | None = None) -> Statement:
    """One row: the finished JSON array of a page, and how many rows it has. ``rows`` are others than those of now."""
    parts, values = _parts(model, query, rows)
    direction = "DESC" if query.descending else "ASC"
    by = f"r.{_column(known_column(model, query.order_by))} {direction}, " if query.order_by else ""
    row = _SQL["page_row_with_content" if model.with_content else "page_row"]
    return _fill("page", row=row, order=f"{by}r.key {direction}", **parts), [*values, query.limit, query.offset]


def total_statement(model: ReadModel, query: Query, rows: Statement | None = None) -> Statement:
    """How many rows match."""
    parts, values = _parts(model, query, rows)
    return _fill("total", **parts), values


def known_column(model: ReadModel, name: str) -> str:
    """The name, if the model declares such a column; raises ``ValueError``."""
    if name not in model.columns:
        raise ValueError(f"Read model {model.name} has the columns {', '.join(model.columns)}, not {name!r}.")
    return name


def _parts(model: ReadModel, query: Query, rows: Statement | None) -> tuple[dict[str, str], list[Any]]:
    """What a page and its total have in common: table, content, conditions, and their values."""
    table, before = rows or (_table(model.name), [])
    found = [_condition(model, where) for where in query.where]
    if query.text:
        found.append((_SQL["text"], [orjson.dumps(query.text).decode()[1:-1]]))
    where = f"WHERE {' AND '.join(part for part, _ in found)}" if found else ""
    content = _SQL["content"] if model.with_content else ""
    values = [*before, *(value for _, given in found for value in given)]
    return {"table": table, "content": content, "where": where}, values


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
    steps = [
        _fill("write", table=_table(model.name), fields=_taken(model, FIELDS_BEGIN), model=model.name),
        _fill("delete", table=_table(model.name), model=model.name),
    ]
    if model.is_final:
        return steps
    fields = _taken(model, PAST_FIELDS_BEGIN)
    return [
        *steps,
        _fill("end_past", model=model.name, for_ever=str(FOR_EVER)),
        _fill("write_past", model=model.name, fields=fields),
    ]


def _taken(model: ReadModel, begin: int) -> str:
    """The declared fields, out of a JSON array."""
    return "".join(f",\n    value ->> {begin + number}" for number in range(len(model.columns)))


def _fill(statement: str, **parts: str) -> str:
    return Template(_SQL[statement]).substitute(parts)


def _table(model: str) -> str:
    return f"rows_{model}"


def _column(name: str) -> str:
    return f'"f_{name}"'


def _text(value: Any) -> str:
    return orjson.dumps(value).decode()
