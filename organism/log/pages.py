"""Pages of the read models' rows, as they stand and as they stood: the statements that SQLite joins them by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from string import Template
from typing import Any, Final

import orjson

from organism.log.cache import Written
from organism.log.log import Query, ReadModel, Where
from organism.log.queries import statements
from organism.log.tables import column_of, fill, table_of, text_of

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
    """A position of the past: the ``milestone`` before it, and the rows that changed since, as they stood then."""

    position: int
    milestone: int
    forward: Mapping[str, Written | None]


def page_statement(model: ReadModel, query: Query, moment: Moment | None = None) -> Statement:
    """One row: the finished JSON array of a page, and how many rows it has."""
    row = _SQL["page_row_with_content" if model.with_content else "page_row"]
    content = _SQL["content"] if model.with_content else ""
    order = _order(model, query)
    if moment is None or model.is_final:
        where, values = _where(model, query, moment, _until(model, moment))
        table = table_of(model.name)
    else:
        where = ""
        table, values = _stood(model, query, moment, order)
    page = fill("page", row=row, table=table, content=content, where=where, order=order)
    return page, [*values, query.limit, query.offset]


def total_statement(model: ReadModel, query: Query, moment: Moment | None = None) -> Statement:
    """How many rows match."""
    content = _content_to_search(model, query)
    if moment is None or model.is_final:
        where, values = _where(model, query, moment, _until(model, moment))
        return fill("total", table=table_of(model.name), content=content, where=where), values
    legs = _legs(model, query, moment)
    statement = fill("total_at", table=table_of(model.name), model=model.name, content=content, **legs.texts)
    return statement, [*legs.unchanged, *legs.changed, *legs.rest]


def _stood(model: ReadModel, query: Query, moment: Moment, order: str) -> Statement:
    """The rows of the page and of those before it, out of all that stood at the moment."""
    legs = _legs(model, query, moment)
    columns = "".join(f", r.{column_of(name)}" for name in model.columns)
    content = _content_to_search(model, query)
    parts = {"table": table_of(model.name), "model": model.name, "columns": columns, "content": content, "order": order}
    most = query.limit + query.offset
    return fill("stood", **parts, **legs.texts), [*legs.unchanged, most, *legs.changed, most, *legs.rest]


@dataclass(frozen=True, slots=True)
class Legs:
    """The rows of a moment come from three places: the texts of their conditions, and each one's values."""

    texts: Mapping[str, str]
    unchanged: list[Any]
    changed: list[Any]
    rest: list[Any]


def _legs(model: ReadModel, query: Query, moment: Moment) -> Legs:
    at, keys = moment.milestone, text_of(list(moment.forward))
    unchanged, unchanged_values = _where(model, query, moment, (_SQL["unchanged"], [at, keys]))
    changed, changed_values = _where(model, query, moment, (_SQL["changed"], [at, at, keys]))
    rest, rest_values = _where(model, query, moment)
    forward, rows = _forward(model, moment)
    texts = {"unchanged": unchanged, "changed": changed, "forward": forward, "rest": rest}
    return Legs(texts, unchanged_values, changed_values, [*rows, *rest_values])


def known_column(model: ReadModel, name: str) -> str:
    """The name, if the model declares such a column; raises ``ValueError``."""
    if name not in model.columns:
        raise ValueError(f"Read model {model.name} has the columns {', '.join(model.columns)}, not {name!r}.")
    return name


def _order(model: ReadModel, query: Query) -> str:
    direction = "DESC" if query.descending else "ASC"
    by = f"r.{column_of(known_column(model, query.order_by))} {direction}, " if query.order_by else ""
    return f"{by}r.key {direction}"


def _content_to_search(model: ReadModel, query: Query) -> str:
    return _SQL["content"] if model.with_content and query.text else ""


def _until(model: ReadModel, moment: Moment | None) -> Statement | None:
    """The rows of a model that never change, up to a position."""
    if moment is None:
        return None
    column = column_of("position") if "position" in model.columns else "content_at"
    return f"r.{column} <= ?", [moment.position]


def _forward(model: ReadModel, moment: Moment) -> Statement:
    """The rows that changed since the milestone, as a table."""
    names = enumerate(model.columns, FORWARD_FIELDS_BEGIN)
    fields = "".join(f", value ->> {place} AS {column_of(name)}" for place, name in names)
    rows = [(key, row[0].decode(), row[2], *row[4]) for key, row in moment.forward.items() if row is not None]
    return fill("forward", fields=fields), [text_of(rows)]


def _where(model: ReadModel, query: Query, moment: Moment | None, first: Statement | None = None) -> Statement:
    """All conditions, after the ``first`` one if there is one, and their values."""
    found = [] if first is None else [first]
    found += [_condition(model, where) for where in query.where]
    if query.text:
        found.append(_text(model, query, moment))
    where = f"WHERE {' AND '.join(part for part, _ in found)}" if found else ""
    return where, [value for _, given in found for value in given]


def _text(model: ReadModel, query: Query, moment: Moment | None) -> Statement:
    """The content holds the text, or that of a row of ``text_in`` does."""
    said = orjson.dumps(query.text).decode()[1:-1]
    if model.text_in is None:
        return _SQL["text"], [said]
    other, column = model.text_in
    until = FOR_EVER if moment is None else moment.position
    return fill("text_in", table=table_of(other), column=column_of(column)), [until, said]


def _condition(model: ReadModel, where: Where) -> Statement:
    columns = [f"r.{column_of(known_column(model, name))}" for name in where.any_of or (where.column,)]
    if where.op == "in":
        part, value = _SQL["one_of"], text_of(where.value)
    elif where.op == "has":
        part, value = _SQL["has"], f"|{where.value}|"
    elif where.op in COMPARISONS:
        part, value = f"$field {where.op} ?", where.value
    else:
        raise ValueError(f"Expected an operator of `Where`, got {where.op!r}.")
    parts = [Template(part).substitute(field=column) for column in columns]
    return f"({' OR '.join(parts)})", [value] * len(parts)
