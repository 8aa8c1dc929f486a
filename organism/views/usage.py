"""What models cost: calls, tokens, money and time, of the tenant, each agent, each thread, each hour and day (of UTC).

It is counted by ``model_called`` and ``texts_embedded``, failed calls included: what they used is spent. ``models``
divides the same by the model that answered and the provider that served it. ``model_seconds`` is the time of the calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from organism.events.record import Actor, Record
from organism.events.vocabulary import Event, MessageSent, ModelCalled, TextsEmbedded
from organism.model.completion import CostSource
from organism.model.money import plain
from organism.model.times import iso
from organism.views.views import Keys, ReadModel, Row, fold_each

TOTAL: Final = "total"
HOUR_CHARS: Final = len("2026-01-15T10")
DAY_CHARS: Final = len("2026-01-15")
_SOURCES: Final[tuple[CostSource, ...]] = ("zero", "upstream", "price")


def dearer(source: CostSource, other: CostSource) -> CostSource:
    """The source of a sum: our price if any part of it is, else the provider's own figure, if anything cost."""
    return max(source, other, key=_SOURCES.index)


def _accounts(record: Record[ModelCalled | TextsEmbedded]) -> Sequence[str]:
    """A kind and a name, which has no space before it. Embeddings are no agent's and of no thread."""
    at, event = iso(record.at), record.event
    spans = f"hour {at[:HOUR_CHARS]}", f"day {at[:DAY_CHARS]}"
    callers = (f"agent {event.agent}", f"thread {record.thread}") if isinstance(event, ModelCalled) else ()
    return (TOTAL, *callers, *spans)


def empty_usage() -> dict[str, Any]:
    return {
        "calls": 0,
        "failed_calls": 0,
        "input_tokens": 0,
        "output_tokens": 0,
        "tokens": 0,
        "cost_usd": "0",
        "model_seconds": 0.0,
        "last_called": None,
        "models": [],
    }


def _used(key: str, row: Row | None, record: Record[ModelCalled | TextsEmbedded]) -> Row:
    if row is None:
        kind, _, name = key.partition(" ")
        row = {"kind": kind, "name": name, **empty_usage(), "_us": 0, "_source": "zero"}
    event = record.event
    _count(row, event)
    row["failed_calls"] += event.error is not None
    row["_us"] += event.duration
    row["model_seconds"] = row["_us"] / 1_000_000
    row["last_called"] = iso(record.at)
    row["_source"] = dearer(row["_source"], event.cost_source)
    _count(_of_model(row["models"], event.model, event.provider), event)
    return row


def _of_model(models: list[dict[str, Any]], model: str, served_by: str) -> dict[str, Any]:
    for each in models:
        if each["model"] == model and each["served_by"] == served_by:
            return each
    counts = {"calls": 0, "input_tokens": 0, "output_tokens": 0, "tokens": 0, "cost_usd": "0"}
    models.append({"model": model, "served_by": served_by, **counts})
    return models[-1]


def _count(counted: dict[str, Any], event: ModelCalled | TextsEmbedded) -> None:
    output_tokens = event.output_tokens if isinstance(event, ModelCalled) else 0
    counted["calls"] += 1
    counted["input_tokens"] += event.input_tokens
    counted["output_tokens"] += output_tokens
    counted["tokens"] += event.input_tokens + output_tokens
    counted["cost_usd"] = plain(Decimal(counted["cost_usd"]) + Decimal(event.cost_usd))


_USAGE_KEYS: Final[Mapping[type[Event], Keys]] = {ModelCalled: _accounts, TextsEmbedded: _accounts}

USAGE: ReadModel[Row] = ReadModel(
    name="usage",
    version=3,
    types=_USAGE_KEYS,
    fold=fold_each(_USAGE_KEYS, _used),
    columns={"kind": "TEXT", "name": "TEXT"},
    indexes=(("kind", "name"),),
)


def _inner(_key: str, _row: Row | None, record: Record[MessageSent]) -> Row:
    """A call that named the request in which it was made."""
    actor = record.actor or Actor()
    return {
        "thread_id": record.thread,
        "request_id": actor.request_id,
        "parent_request": record.event.caller_request,
        "principal": actor.principal,
        "position": record.position,
    }


_INNER_KEYS: Final[Mapping[type[Event], Keys]] = {
    MessageSent: lambda record: (record.event.message,) if record.event.caller_request else ()
}

INNER_CALLS: ReadModel[Row] = ReadModel(
    name="inner_calls",
    version=1,
    types=_INNER_KEYS,
    fold=fold_each(_INNER_KEYS, _inner),
    columns={"parent_request": "TEXT", "principal": "TEXT", "position": "INTEGER"},
    indexes=(("parent_request", "principal", "position"),),
)
