"""Pages of rows that are in memory, as SQLite would find, compare and sort them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

import orjson

from organism.log.log import CHANGED, Page, Place, Query, ReadModel, Where
from organism.log.pages import known_column, with_payload
from organism.log.versions import Written

COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = MappingProxyType(
    {
        "=": operator.eq,
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
        "in": lambda value, given: value in given,
        "has": lambda value, given: f"|{given}|" in value,
    }
)
KeyedRow = tuple[str, Written, int]
"""A row's key, the row, and the number of its version."""
PayloadAt = Callable[[int], bytes | None]
"""The content JSON of the event at a position; None if it was erased."""


def select_page(model: ReadModel, rows: Iterable[KeyedRow], query: Query, payload: PayloadAt = lambda _: None) -> Page:
    """A page of these rows. The caller has applied what ``query`` says of texts and of other models."""
    chosen = [row for row in rows if matches(model, row[1], query.where)]
    chosen.sort(key=lambda row: _rank(_place(model, query, row)), reverse=query.descending)
    begin = query.offset
    if query.after is not None:
        after = _rank(query.after)
        ranks = [_rank(_place(model, query, row)) for row in chosen]
        begin += sum(rank >= after if query.descending else rank <= after for rank in ranks)
    shown = chosen[begin : begin + query.limit]
    texts = [finish(row[1], payload) for row in shown]
    last = _place(model, query, shown[-1]) if shown else None
    return Page(b"[%b]" % b",".join(texts), len(texts), len(chosen), begin, last)


def matches(model: ReadModel, written: Written, wheres: Iterable[Where]) -> bool:
    return all(_holds(model, written, where) for where in wheres)


def finish(written: Written, payload: PayloadAt) -> bytes:
    public, _, content_at, _ = written
    return with_payload(public, payload(content_at)) if content_at else public


def value_of(model: ReadModel, written: Written, name: str) -> Any:
    return written[3][list(model.columns).index(known_column(model, name))]


def has_text(payload: bytes | None, text: str) -> bool:
    """Whether the content holds the text, A–Z and a–z alike."""
    return payload is not None and orjson.dumps(text)[1:-1].lower() in payload.lower()


def _place(model: ReadModel, query: Query, row: KeyedRow) -> Place:
    key, written, version = row
    if query.order_by == CHANGED and not model.shown:
        return version, key
    return value_of(model, written, query.order_by) if query.order_by else "", key


def _rank(place: Place) -> tuple[Any, ...]:
    """What sorts as SQLite sorts the place."""
    value, key = place
    rank = 0 if value is None else 2 if isinstance(value, str) else 1
    return (rank, 0 if value is None else value, key.encode())


def _holds(model: ReadModel, written: Written, where: Where) -> bool:
    names = where.any_of or (where.column,)
    return any(_compares(value_of(model, written, name), where) for name in names)


def _compares(value: Any, where: Where) -> bool:
    if value is None or where.value is None:
        return False
    compare = COMPARISONS.get(where.op)
    if compare is None:
        raise ValueError(f"Expected an operator of `Where`, got {where.op!r}.")
    return bool(compare(value, where.value))
