"""Pages of a read model's rows: the statements that SQLite finds, completes and joins them by."""

from __future__ import annotations

from typing import Any, Final

import orjson

from organism.log.driver import Connection
from organism.log.log import CHANGED, Page, Query, ReadModel, Where
from organism.log.queries import statements
from organism.log.tables import column_of, field_of, fill, of_model, table_of, text_of
from organism.log.versions import FOREVER, VERSION_BITS, Standing, first_version, folded_row

Statement = tuple[str, list[Any]]
"""SQL and its parameters."""
StoredRow = tuple[bytes, bytes]
"""The public JSON of a row, completed by its payload, and the private JSON."""
NOW: Final = (FOREVER >> VERSION_BITS) - 1
"""A position after every event: what stands there stands now."""
COMPARISONS: Final = frozenset({"=", "<", "<=", ">", ">="})
ERASED: Final = b'{"erased":true}'
_SQL: Final = statements("tables.sql")


def page_statement(model: ReadModel, query: Query) -> Statement:
    """One row: the finished JSON array of a page, how many rows it has, and how many match."""
    conditions = [_stood(model, query.at), *(_condition(model, where) for where in query.where)]
    if query.text:
        conditions.append(_text(model, query))
    parts = [part for part, _ in conditions]
    values = [value for _, given in conditions for value in given]
    page = fill(
        "page",
        row=_SQL[_row_statement(model)],
        table=table_of(model.name),
        content=_SQL["content"] if model.with_content else "",
        searched=_SQL["content"] if model.with_content and query.text else "",
        where=f"WHERE {' AND '.join(parts)}",
        order=_order(model, query),
    )
    return page, [*values, *values, query.limit, query.offset]


def _row_statement(model: ReadModel) -> str:
    if model.shown:
        return "page_row_shown"
    return "page_row_with_content" if model.with_content else "page_row"


def _stood(model: ReadModel, at: int | None) -> Statement:
    """The rows that stood at a position, or stand now."""
    position = NOW if at is None else at
    if model.shown:
        return _SQL["stood_by_position"], [position]
    return _SQL["stood"], [first_version(position + 1), position]


def known_column(model: ReadModel, name: str) -> str:
    """The name, if the model declares such a column; raises ``ValueError``."""
    if name not in model.columns:
        raise ValueError(f"Read model {model.name} has the columns {', '.join(model.columns)}, not {name!r}.")
    return name


def _order(model: ReadModel, query: Query) -> str:
    direction = "DESC" if query.descending else "ASC"
    if query.order_by == CHANGED and not model.shown:
        return f"r.version {direction}"
    if not query.order_by:
        return f"r.key {direction}"
    column = column_of(model, known_column(model, query.order_by))
    return f"r.{column} {direction}, r.key {direction}"


def _text(model: ReadModel, query: Query) -> Statement:
    """The content holds the text, or that of a row of ``text_in`` does."""
    said = orjson.dumps(query.text).decode()[1:-1]
    if model.text_in is None:
        return _SQL["text"], [said]
    other, column = model.text_in
    at = NOW if query.at is None else query.at
    return fill("text_in", table=table_of(other), column=field_of(column)), [at, said]


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


def read_page(connection: Connection, statement: Statement) -> Page:
    """A page of rows, joined by the database."""
    joined, count, total = connection.execute(*statement).fetchone() or (b"[]", 0, 0)
    return Page(joined, count, total)


def read_row(connection: Connection, model: ReadModel, key: str, at: int | None) -> StoredRow | None:
    """One row as it stands, or stood at a position; None if there is or was none then."""
    position = NOW if at is None else at
    if model.shown:
        found = connection.execute(of_model("final", model.name), (key, position)).fetchone()
        return None if found is None else (_completed(connection, model, found[1], found[0]), found[2])
    found = connection.execute(of_model("newest", model.name), (key, first_version(position + 1))).fetchone()
    if found is None or found[1] <= position:
        return None
    _, _, public, private, content_at = found
    return _completed(connection, model, public, content_at), private


def _completed(connection: Connection, model: ReadModel, public: bytes, content_at: int) -> bytes:
    if not model.with_content:
        return public
    content = connection.execute(_SQL["payload"], (content_at,)).fetchone()
    return with_payload(public, content[0] if content else None)


def newest_version(connection: Connection, model: str, key: str) -> Standing | None:
    """The newest version of a row; None if there never was one."""
    found = connection.execute(of_model("newest", model), (key, FOREVER)).fetchone()
    if found is None:
        return None
    number, until, public, private, _ = found
    return number, folded_row(public, private) if until == FOREVER else None


def with_payload(public: bytes, payload: bytes | None) -> bytes:
    """The row completed by its content; None was erased."""
    return b'%b,"payload":%b}' % (public[:-1], ERASED if payload is None else payload)
