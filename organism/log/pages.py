"""Pages of the read models' rows, as they stand and as they stood: the statements that SQLite joins them by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from organism.log.cache import Written
from organism.log.log import Query, ReadModel, Where
from organism.log.queries import statements
from organism.log.tables import POSITION, column_of, field_of, fill, own_columns, table_of, text_of

Statement = tuple[str, list[Any]]
"""SQL and its parameters."""
COMPARISONS: Final = frozenset({"=", "<", "<=", ">", ">="})
FORWARD_FIELDS_BEGIN: Final = 3
"""The place of the first declared field in a row that was folded on from a milestone."""
FOR_EVER: Final = (1 << 63) - 1
"""No position is after it."""
_SQL: Final = statements("tables.sql")


@dataclass(frozen=True, slots=True)
class Moment:
    """When rows are asked for: now, or at a ``position`` of the past with the ``milestone`` before it.

    ``forward`` are the rows that have changed since those of the tables; None is one that has ended.
    """

    forward: Mapping[str, Written | None]
    position: int = FOR_EVER
    milestone: int | None = None


AS_WRITTEN: Final = Moment({})
"""Now, with nothing to lay over the tables."""


@dataclass(frozen=True, slots=True)
class Leg:
    """A place that rows come from: the text of the table and of the conditions, and the values of both."""

    table: str
    where: str
    values: Sequence[Any]


def page_statement(model: ReadModel, query: Query, moment: Moment = AS_WRITTEN) -> Statement:
    """One row: the finished JSON array of a page, how many rows it has, and how many match."""
    legs = _legs(model, query, moment)
    searched = _SQL["content"] if model.with_content and query.text else ""
    total = " + ".join(fill("total", table=leg.table, content=searched, where=leg.where) for leg in legs)
    counted = [value for leg in legs for value in leg.values]
    order = _order(model, query)
    if len(legs) == 1:
        table, where, values = legs[0].table, legs[0].where, counted
    else:
        where = ""
        table, values = _joined(model, query, legs, {"content": searched, "order": order})
    content = _SQL["content"] if model.with_content else ""
    row = _SQL[_row_statement(model)]
    page = fill("page", row=row, total=total, table=table, content=content, where=where, order=order)
    return page, [*counted, *values, query.limit, query.offset]


def _row_statement(model: ReadModel) -> str:
    if model.shown:
        return "page_row_shown"
    return "page_row_with_content" if model.with_content else "page_row"


def _joined(model: ReadModel, query: Query, legs: Sequence[Leg], parts: Mapping[str, str]) -> Statement:
    """The rows of the page and of those before it, out of all legs."""
    columns = "".join(f", r.{column_of(model, name)}" for name in own_columns(model))
    texts = [fill("leg", table=leg.table, where=leg.where, columns=columns, **parts) for leg in legs]
    most = query.limit + query.offset
    return f"({' UNION ALL '.join(texts)})", [value for leg in legs for value in (*leg.values, most)]


def _legs(model: ReadModel, query: Query, moment: Moment) -> list[Leg]:
    table, at = table_of(model.name), moment.milestone
    if at is not None and model.is_final:
        return [Leg(table, *_where(model, query, moment, _until(model, moment.position)))]
    if at is None and not moment.forward:
        return [Leg(table, *_where(model, query, moment))]
    keys = text_of(list(moment.forward))
    rows, given = _forward(model, moment)
    where, values = _where(model, query, moment)
    forward = Leg(rows, where, [*given, *values])
    if at is None:
        return [Leg(table, *_where(model, query, moment, _covered(model, moment, keys))), forward]
    unchanged = _where(model, query, moment, (_SQL["unchanged"], [at, keys]))
    changed = _where(model, query, moment, (_SQL["changed"], [at, at, keys]))
    return [Leg(table, *unchanged), Leg(f"past_{model.name}", *changed), forward]


def known_column(model: ReadModel, name: str) -> str:
    """The name, if the model declares such a column; raises ``ValueError``."""
    if name not in model.columns:
        raise ValueError(f"Read model {model.name} has the columns {', '.join(model.columns)}, not {name!r}.")
    return name


def _order(model: ReadModel, query: Query) -> str:
    direction = "DESC" if query.descending else "ASC"
    if not query.order_by:
        return f"r.key {direction}"
    column = column_of(model, known_column(model, query.order_by))
    return f"r.{column} {direction}, r.key {direction}"


def _covered(model: ReadModel, moment: Moment, keys: str) -> Statement:
    """The rows of the table but for those that are laid over them."""
    if not model.shown:
        return _SQL["covered"], [keys]
    return _SQL["covered_by_position"], [text_of([row[2] for row in moment.forward.values() if row is not None])]


def _until(model: ReadModel, position: int) -> Statement:
    """The rows of a model that never change, up to a position."""
    column = column_of(model, POSITION) if POSITION in model.columns else "content_at"
    return f"r.{column} <= ?", [position]


def _forward(model: ReadModel, moment: Moment) -> Statement:
    """The rows that changed since, as a table."""
    own = own_columns(model)
    names = [pair for pair in enumerate(model.columns, FORWARD_FIELDS_BEGIN) if pair[1] in own]
    fields = "".join(f", value ->> {place} AS {field_of(name)}" for place, name in names)
    rows = [(key, row[0].decode(), row[2], *row[4]) for key, row in moment.forward.items() if row is not None]
    return fill("forward", fields=fields), [text_of(rows)]


def _where(model: ReadModel, query: Query, moment: Moment, first: Statement | None = None) -> Statement:
    """All conditions, after the ``first`` one if there is one, and their values."""
    found = [] if first is None else [first]
    found += [_condition(model, where) for where in query.where]
    if query.text:
        found.append(_text(model, query, moment))
    where = f"WHERE {' AND '.join(part for part, _ in found)}" if found else ""
    return where, [value for _, given in found for value in given]


def _text(model: ReadModel, query: Query, moment: Moment) -> Statement:
    """The content holds the text, or that of a row of ``text_in`` does."""
    said = orjson.dumps(query.text).decode()[1:-1]
    if model.text_in is None:
        return _SQL["text"], [said]
    other, column = model.text_in
    return fill("text_in", table=table_of(other), column=field_of(column)), [moment.position, said]


def _condition(model: ReadModel, where: Where) -> Statement:
    columns = [f"r.{column_of(model, known_column(model, name))}" for name in where.any_of or (where.column,)]
    if where.op == "in":
        part, value = _SQL["one_of"], text_of(where.value)
    elif where.op == "has":
        part, value = _SQL["has"], f"|{where.value}|"
    elif where.op in COMPARISONS:
        part, value = f"$field {where.op} ?", where.value
    else:
        raise ValueError(f"Expected an operator of `Where`, got {where.op!r}.")
    parts = [part.replace("$field", column) for column in columns]
    return f"({' OR '.join(parts)})", [value] * len(parts)
