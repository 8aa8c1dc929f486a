"""The read models' tables and the statements on them, made from the ``ReadModel`` values."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import orjson

from organism.log.folds import ERASED, Folds, write_row
from organism.log.log import Query, ReadModel, Where

Statement = tuple[str, list[Any]]
"""SQL and its parameters."""
COMPARISONS = frozenset({"=", "<", "<=", ">", ">="})


def table(model: str) -> str:
    """The table of a read model."""
    return f"rows_{model}"


def column(name: str) -> str:
    """The column of a declared field."""
    return f'"f_{name}"'


def fingerprint(model: ReadModel) -> str:
    """Changes with everything that the rows in the table depend on but the log."""
    shape = orjson.dumps(
        [model.version, list(model.columns.items()), model.indexes, model.with_content, model.is_final]
    )
    return sha256(shape).hexdigest()


def definition(model: ReadModel) -> list[str]:
    """The statements that make the model's table and indexes."""
    own = "".join(f", {column(name)} {kind}" for name, kind in model.columns.items())
    name = table(model.name)
    made = (
        f"CREATE TABLE {name} (key TEXT PRIMARY KEY, public BLOB NOT NULL, private BLOB NOT NULL, "
        f"content_at INTEGER NOT NULL{own}) STRICT, WITHOUT ROWID"
    )
    indexes = [
        f"CREATE INDEX {name}_{number} ON {name} ({', '.join(column(part) for part in parts)})"
        for number, parts in enumerate(model.indexes)
    ]
    return [made, *indexes]


def flush_definition(models: Sequence[ReadModel]) -> list[str]:
    """A view and its trigger: one INSERT writes the rows of all models, the streams and the position, or nothing.

    For each model the view takes two JSON arrays, what to write and what to delete; the rows' texts are slices of ``blob``.
    """
    names = "".join(f", NULL AS w_{model.name}, NULL AS d_{model.name}" for model in models)
    view = f"CREATE TEMP VIEW flushes AS SELECT NULL AS position, NULL AS streams, NULL AS blob{names}"
    steps = [
        "INSERT OR IGNORE INTO streams (stream, first) SELECT value ->> 0, value ->> 1 FROM json_each(new.streams)",
        *(step for model in models for step in _flush_steps(model)),
        "UPDATE views_meta SET position = new.position",
    ]
    trigger = f"CREATE TEMP TRIGGER flush_spreads INSTEAD OF INSERT ON flushes BEGIN {'; '.join(steps)}; END"
    return [view, trigger]


def _flush_steps(model: ReadModel) -> list[str]:
    own = "".join(f", value ->> {number}" for number in range(6, 6 + len(model.columns)))
    return [
        f"REPLACE INTO {table(model.name)} SELECT value ->> 0, substr(new.blob, value ->> 1, value ->> 2), "
        f"substr(new.blob, value ->> 3, value ->> 4), value ->> 5{own} FROM json_each(new.w_{model.name})",
        f"DELETE FROM {table(model.name)} WHERE key IN (SELECT value FROM json_each(new.d_{model.name}))",
    ]


def flush_statement(models: Sequence[ReadModel]) -> str:
    """The INSERT that ``flush_definition`` waits for."""
    return f"INSERT INTO flushes VALUES (?, ?, ?{', ?, ?' * len(models)})"


def flush_parameters(folds: Folds, streams: Sequence[tuple[str, int]]) -> tuple[Any, ...]:
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
            kept = write_row(cache.model, row)
            middle = at + len(kept.public)
            written.append((key, at, len(kept.public), middle, len(kept.private), kept.content_at, *kept.columns))
            blob += (kept.public, kept.private)
            at = middle + len(kept.private)
        lists += (_text(written), _text(deleted))
    return (folds.position, _text(streams), b"".join(blob), *lists)


def page_statement(model: ReadModel, query: Query) -> Statement:
    """One row: the finished JSON array of a page, and how many rows it has."""
    joined, conditions, values = _conditions(model, query)
    row = "r.public"
    if model.with_content:
        payload = f"CASE WHEN length(c.salt) > 0 THEN c.json ELSE '{ERASED.decode()}' END"
        row = f"""substr(r.public, 1, length(r.public) - 1) || ',"payload":' || {payload} || '}}'"""
    direction = "DESC" if query.descending else "ASC"
    order = f"r.{column(known_column(model, query.order_by))} {direction}, " if query.order_by else ""
    inner = f"SELECT {row} AS finished FROM {joined} {conditions} ORDER BY {order}r.key {direction} LIMIT ? OFFSET ?"
    sql = f"SELECT CAST('[' || coalesce(group_concat(finished, ','), '') || ']' AS BLOB), count(*) FROM ({inner})"
    return sql, [*values, query.limit, query.offset]


def total_statement(model: ReadModel, query: Query) -> Statement:
    """How many rows match."""
    joined, conditions, values = _conditions(model, query)
    return f"SELECT count(*) FROM {joined} {conditions}", values


def _conditions(model: ReadModel, query: Query) -> tuple[str, str, list[Any]]:
    needs_content = model.with_content
    joined = f"{table(model.name)} r" + (" LEFT JOIN content c ON c.position = r.content_at" if needs_content else "")
    parts, values = [], []
    for where in query.where:
        part, given = _condition(model, where)
        parts.append(part)
        values += given
    if query.text:
        parts.append("instr(lower(CAST(c.json AS TEXT)), lower(?)) > 0")
        values.append(orjson.dumps(query.text).decode()[1:-1])
    return joined, f"WHERE {' AND '.join(parts)}" if parts else "", values


def _condition(model: ReadModel, where: Where) -> tuple[str, list[Any]]:
    names = where.any_of or (where.column,)
    parts, values = [], []
    for name in names:
        field = f"r.{column(known_column(model, name))}"
        if where.op == "in":
            parts.append(f"{field} IN (SELECT value FROM json_each(?))")
            values.append(_text(where.value))
        elif where.op == "has":
            parts.append(f"instr({field}, ?) > 0")
            values.append(f"|{where.value}|")
        elif where.op in COMPARISONS:
            parts.append(f"{field} {where.op} ?")
            values.append(where.value)
        else:
            raise ValueError(f"Expected an operator of `Where`, got {where.op!r}.")
    return f"({' OR '.join(parts)})", values


def known_column(model: ReadModel, name: str) -> str:
    """The name, if the model declares such a column; raises ``ValueError``."""
    if name not in model.columns:
        raise ValueError(f"Read model {model.name} has the columns {', '.join(model.columns)}, not {name!r}.")
    return name


def _text(value: Any) -> str:
    return orjson.dumps(value).decode()
