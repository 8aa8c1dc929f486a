"""Pages of a read model's rows: the statements that find, complete and join them, those in memory too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

from organism.log.rows.tables import Written, column_of, field_of, fill, of_model, stored, table_of
from organism.log.rows.versions import FOREVER, VERSION_BITS, Version, first_version, folded_row
from organism.log.units import Digests, contents_at
from organism.sqlite.driver import Connection, json_text, statements
from organism.views.views import (
    CHANGED,
    KEY,
    Among,
    Amount,
    Begin,
    Counted,
    Elapsed,
    Page,
    Query,
    ReadModel,
    Sums,
    Where,
    with_payload,
)

Statement = tuple[str, list[Any]]  # SQL and its parameters
StoredRow = tuple[bytes, bytes]  # The public JSON of a row, completed by its payload, and the private JSON
NOW: Final = (FOREVER >> VERSION_BITS) - 1  # A position after every event
VERSION: Final = "r.version"  # What rows in the order of their last change are sorted by
NOTHING: Final = "''"  # What rows in the order of their keys are sorted by before that
COMPARISONS: Final = frozenset({"=", "<>", "<", "<=", ">", ">=", "glob"})
LIVE_FIELDS_BEGIN: Final = 2  # The place of the first declared field in a live row, after its key and its public JSON
_SQL: Final = statements("log.rows", "rows.sql")


def page_statement(model: ReadModel, query: Query, models: Mapping[str, ReadModel]) -> Statement:
    """One row of values: see the statement ``page``. ``models`` are those that ``among`` and ``counted`` may name."""
    conditions = [_valid_at(model, query.at), *(_condition(model, where) for where in query.where)]
    conditions += [_among(model, among, models[among.model], query.at) for among in query.among]
    if query.counted is not None:
        conditions.append(_has_counted(model, models, query.at, is_any=query.counted.is_any))
    if query.text:
        conditions.append(_text(model, query))
    searched = _SQL["content"] if model.with_content and query.text else ""
    total = _count(model, conditions, searched) if query.is_counted else ("count(*)", [])
    behind = [*conditions, *_after(model, query)]
    before: Statement = ("?", [query.offset])
    if query.after is not None and query.is_counted:
        left = _count(model, behind, searched)
        before = (f"{total[0]} - {left[0]} + ?", [*total[1], *left[1], query.offset])
    where, values = _where(behind)
    if not query.order_by:
        where = _walked(model, where)
    counted = _counted(model, models, query.at)
    by, direction = _by(model, query), "DESC" if query.descending else "ASC"
    page = fill(
        "page",
        by=by,
        total=total[0],
        before=before[0],
        content_at=_content_at(model),
        counted=counted[0],
        table=table_of(model.name),
        content=searched,
        where=where,
        order=", ".join(f"{each} {direction}" for each in _sorted_by(by)),
    )
    return page, [*total[1], *before[1], *counted[1], *values, query.limit, query.offset]


def sums_statement(model: ReadModel, sums: Sums) -> Statement:
    """A row a group: what it is grouped by, how many rows it has, and the model's totals."""
    where, values = _where([_valid_at(model, sums.at), *(_condition(model, where) for where in sums.where)])
    begins = [each if isinstance(each, Begin) else Begin(each, 0) for each in sums.by]
    columns = [_field(model, name) for name, _ in begins]
    by = [
        f"substr({column}, 1, {chars})" if chars else column for column, (_, chars) in zip(columns, begins, strict=True)
    ]
    totals = "".join(f", {how}(r.{column_of(model, name)})" for how, name in model.totals)
    return fill("sums", by=", ".join(by), totals=totals, table=table_of(model.name), where=where), values


def _where(conditions: Sequence[Statement]) -> Statement:
    parts = " AND ".join(part for part, _ in conditions)
    return f"WHERE {parts}", [value for _, given in conditions for value in given]


def _sorted_by(by: str) -> Sequence[str]:
    """What rows are sorted by: a constant before the key would have SQLite sort them all."""
    return (by,) if by == VERSION else ("r.key",) if by == NOTHING else (by, "r.key")


def _walked(model: ReadModel, where: str) -> str:
    """The conditions as they are best where SQLite should walk an index instead of the table."""
    valid = "valid_final" if model.is_final else "valid"
    return where.replace(_SQL[valid], _SQL[f"{valid}_counted"], 1)


def _count(model: ReadModel, conditions: Sequence[Statement], searched: str) -> Statement:
    where, values = _where(conditions)
    return fill("count", table=table_of(model.name), content=searched, where=_walked(model, where)), values


def completing_statement(model: ReadModel, key: str, position: int, models: Mapping[str, ReadModel]) -> Statement:
    """One row of two values: see the statement ``completing``."""
    counted = _counted(model, models, position)
    return fill("completing", content_at=_content_at(model), counted=counted[0]), [*counted[1], key]


def _content_at(model: ReadModel) -> str:
    """Where the content lies that completes a shown row."""
    if model.with_first is None or model.text_in is None:
        return "content_at"
    other, column = model.text_in
    return fill("first_in", table=table_of(other), column=field_of(column))


def _counted(model: ReadModel, models: Mapping[str, ReadModel], at: int | None) -> Statement:
    """How many rows there are of each that is counted with a shown one."""
    counts = []
    for counted in model.counted:
        other = models[counted.model]
        named: Statement = (f"r.{column_of(other, counted.column)} = shown.key", [])
        counts.append(_count(other, [*_counted_where(counted, other, at), named], ""))
    return ", ".join(part for part, _ in counts), [value for _, given in counts for value in given]


def _counted_where(counted: Counted, other: ReadModel, at: int | None) -> list[Statement]:
    return [_valid_at(other, at), *(_condition(other, where) for where in counted.where)]


def _has_counted(model: ReadModel, models: Mapping[str, ReadModel], at: int | None, *, is_any: bool) -> Statement:
    parts, values = [], []
    for counted in model.counted:
        other = models[counted.model]
        where, given = _where(_counted_where(counted, other, at))
        column = column_of(other, counted.column)
        parts.append(fill("counted_in", table=table_of(other.name), column=column, where=where))
        values += given
    return f"r.key {'IN' if is_any else 'NOT IN'} ({' UNION '.join(parts)})", values


def _valid_at(model: ReadModel, at: int | None) -> Statement:
    """The rows that are valid at a position, or now."""
    position = NOW if at is None else at
    if model.is_final:
        return _SQL["valid_final"], [position]
    return _SQL["valid"], [first_version(position + 1), position]


def known_column(model: ReadModel, name: str) -> str:
    if name not in model.columns:
        raise ValueError(f"Read model {model.name} has the columns {', '.join(model.columns)}, not {name!r}.")
    return name


def _by(model: ReadModel, query: Query) -> str:
    """The value that the order is by, before the key."""
    by = query.order_by
    if by == CHANGED and not model.is_final:
        return VERSION
    if isinstance(by, Amount):
        return fill("amount", field=_field(model, by.column))
    if isinstance(by, Elapsed):
        until = ", ".join(_field(model, name) for name in by.until)
        return fill("elapsed", since=_field(model, by.since), until=f"coalesce({until})")
    return _field(model, by) if by else NOTHING


def _field(model: ReadModel, name: str) -> str:
    return f"r.{column_of(model, known_column(model, name))}"


def _after(model: ReadModel, query: Query) -> list[Statement]:
    if query.after is None:
        return []
    value, key = query.after
    by, compare = _by(model, query), "<" if query.descending else ">"
    if by == VERSION:
        return [(f"{by} {compare} ?", [value])]
    return [(f"({by}, r.key) {compare} (?, ?)", [value, key])] if query.order_by else [(f"r.key {compare} ?", [key])]


def _among(model: ReadModel, among: Among, other: ReadModel, at: int | None) -> Statement:
    where, values = _where([_valid_at(other, at), *(_condition(other, where) for where in among.where)])
    return fill("among", field=_field(model, among.column), table=table_of(other.name), where=where), values


def _text(model: ReadModel, query: Query) -> Statement:
    """The content, or that of a row of ``text_in``, holds the text."""
    text = json_text(query.text)[1:-1]
    if model.text_in is None:
        return _SQL["text"], [text]
    other, column = model.text_in
    at = NOW if query.at is None else query.at
    return fill("text_in", table=table_of(other), column=field_of(column)), [at, text]


def _condition(model: ReadModel, where: Where) -> Statement:
    columns = ["r.key" if name == KEY else _field(model, name) for name in where.any_of or (where.column,)]
    if where.op == "in":
        part, value = _SQL["one_of"], json_text(where.value)
    elif where.op == "has_any":
        part, value = _SQL["has_any"], json_text([f"|{name}|" for name in where.value])
    elif where.op == "has":
        part, value = _SQL["has"], f"|{where.value}|"
    elif where.op in COMPARISONS:
        part, value = f"$field {where.op} ?", where.value
    else:
        raise ValueError(f"Expected an operator of `Where`, got {where.op!r}.")
    parts = [part.replace("$field", column) for column in columns]
    return f"({' OR '.join(parts)})", [value] * len(parts)


def read_page(connection: Connection, model: ReadModel, statement: Statement, digests: Digests) -> Page:
    """A page of rows, completed by their payloads. Raises ``ContentDamaged`` if one is not as it was written."""
    ((lines, count, total, before, last, *completing),) = connection.execute(*statement)
    rows = lines.split(b"\n") if lines else []  # JSON has no raw line break
    rows = _completed(connection, model, rows, completing, digests)
    return Page(b"[%b]" % b",".join(rows), count, total, before, None if last is None else tuple(orjson.loads(last)))


def read_sums(connection: Connection, statement: Statement) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = connection.execute(*statement).fetchall()
    return found


def _completed(
    connection: Connection, model: ReadModel, rows: Sequence[bytes], completing: Sequence[str], digests: Digests
) -> Sequence[bytes]:
    """The public JSON of rows, each completed by its content and by what is counted with it.

    ``completing`` are two JSON arrays: where the contents lie, and the counts of each row.
    """
    positions, counted = completing
    complete = with_payload if model.with_content else model.with_first
    if complete is not None:
        places = orjson.loads(positions)
        found = contents_at(connection, filter(None, places), digests)
        rows = [
            complete(row, found[place][0] if place in found else None) for row, place in zip(rows, places, strict=True)
        ]
    if model.counted:
        rows = [_with_counts(model, row, counts) for row, counts in zip(rows, orjson.loads(counted), strict=True)]
    return rows


def _with_counts(model: ReadModel, row: bytes, counts: Sequence[int]) -> bytes:
    named = {counted.model: count for counted, count in zip(model.counted, counts, strict=True)}
    return b'%b,"%b":%b}' % (row[:-1], model.counted_as.encode(), orjson.dumps(named))


def read_row(
    connection: Connection, model: ReadModel, key: str, position: int, models: Mapping[str, ReadModel]
) -> StoredRow | None:
    """One row at a position; None if there was none."""
    if model.is_final:
        row = connection.execute(of_model("final", model.name), (key, position)).fetchone()
        if row is None:
            return None
        content_at, public, private = row
    else:
        row = connection.execute(of_model("newest", model.name), (key, first_version(position + 1))).fetchone()
        if row is None or row[1] <= position:
            return None
        _, _, public, private, content_at = row
    counted = ""
    if model.with_first is not None or model.counted:
        statement = completing_statement(model, key, position, models)
        ((content_at, counted),) = connection.execute(*statement)
    (public,) = _completed(connection, model, [public], (f"[{content_at or 0}]", f"[{counted}]"), {})
    return public, private


def newest_version(connection: Connection, model: ReadModel, key: str) -> Version | None:
    """The newest version of a row; None if there never was one."""
    row = connection.execute(of_model("newest", model.name), (key, FOREVER)).fetchone()
    if row is None:
        return None
    number, until, public, private, _ = row
    return number, folded_row(model, public, private) if until == FOREVER else None


def greatest_keys(connection: Connection, models: Sequence[ReadModel]) -> dict[str, str]:
    """The greatest key of each model that has versions: a key above it was never written."""
    found = {}
    for model in stored(models):
        if not model.is_final:
            ((key,),) = connection.execute(of_model("greatest", model.name))
            found[model.name] = key or ""
    return found


def over_live(model: ReadModel, rows: Iterable[tuple[str, Written]], statement: Statement) -> Statement:
    """The same page, of rows that are in memory."""
    fields = "".join(
        f", value ->> {at} AS {field_of(name)}" for at, name in enumerate(model.columns, LIVE_FIELDS_BEGIN)
    )
    listed = [[key, public.decode(), *values] for key, (public, _, _, values) in rows]
    live = fill("live", table=table_of(model.name), fields=fields)
    return f"{live}\n{statement[0]}", [json_text(listed), *statement[1]]
