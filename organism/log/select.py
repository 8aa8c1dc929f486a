"""Pages of rows that are in memory, as SQLite would find, compare and sort them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

import orjson

from organism.log.log import CHANGED, Page, Query, ReadModel, Where
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
KeyedRow = tuple[str, Written]
PayloadAt = Callable[[int], bytes | None]
"""The content JSON of the event at a position; None if it was erased."""


def select_page(model: ReadModel, rows: Iterable[KeyedRow], query: Query, payload: PayloadAt = lambda _: None) -> Page:
    """A page of these rows, which come in the order of their last change. Who gives them looks for the text."""
    chosen = [row for row in rows if all(_holds(model, row[1], where) for where in query.where)]
    if query.order_by == CHANGED:
        chosen = chosen[::-1] if query.descending else chosen
    else:
        chosen.sort(key=lambda row: _order(model, query.order_by, row), reverse=query.descending)
    texts = [finish(written, payload) for _, written in chosen[query.offset : query.offset + query.limit]]
    return Page(b"[%b]" % b",".join(texts), len(texts), len(chosen))


def finish(written: Written, payload: PayloadAt) -> bytes:
    """The row as it is shown."""
    public, _, content_at, _ = written
    return with_payload(public, payload(content_at)) if content_at else public


def value_of(model: ReadModel, written: Written, name: str) -> Any:
    """The value of a declared column."""
    return written[3][list(model.columns).index(known_column(model, name))]


def has_text(payload: bytes | None, text: str) -> bool:
    """Whether the content holds the text, A–Z and a–z alike."""
    return payload is not None and orjson.dumps(text)[1:-1].lower() in payload.lower()


def _order(model: ReadModel, order_by: str, row: KeyedRow) -> tuple[Any, ...]:
    key, written = row
    value = value_of(model, written, order_by) if order_by else None
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
