"""What models cost: calls, tokens, money and time, of the tenant, each agent, each thread and each day (of UTC).

It is counted by ``model_called``, failed calls included: what they used is spent. ``models`` divides the same by the
model that answered and the provider that served it. ``model_seconds`` is the time of the calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from organism.events.record import Record
from organism.events.vocabulary import Event, ModelCalled
from organism.model.money import plain
from organism.model.times import iso
from organism.views.views import Keys, ReadModel, Row, fold_each

TOTAL: Final = "total"
DAY_CHARS: Final = len("2026-01-15")


def _accounts(record: Record[ModelCalled]) -> Sequence[str]:
    """A kind and a name, which has no space before it."""
    day = iso(record.at)[:DAY_CHARS]
    return (TOTAL, f"agent {record.event.agent}", f"thread {record.thread}", f"day {day}")


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


def _used(key: str, row: Row | None, record: Record[ModelCalled]) -> Row:
    if row is None:
        kind, _, name = key.partition(" ")
        row = {"kind": kind, "name": name, **empty_usage(), "_us": 0}
    event = record.event
    _count(row, event)
    row["failed_calls"] += event.error is not None
    row["_us"] += event.duration
    row["model_seconds"] = row["_us"] / 1_000_000
    row["last_called"] = iso(record.at)
    _count(_of_model(row["models"], event.model, event.provider), event)
    return row


def _of_model(models: list[dict[str, Any]], model: str, served_by: str) -> dict[str, Any]:
    for each in models:
        if each["model"] == model and each["served_by"] == served_by:
            return each
    counts = {"calls": 0, "input_tokens": 0, "output_tokens": 0, "tokens": 0, "cost_usd": "0"}
    models.append({"model": model, "served_by": served_by, **counts})
    return models[-1]


def _count(counted: dict[str, Any], event: ModelCalled) -> None:
    counted["calls"] += 1
    counted["input_tokens"] += event.input_tokens
    counted["output_tokens"] += event.output_tokens
    counted["tokens"] += event.input_tokens + event.output_tokens
    counted["cost_usd"] = plain(Decimal(counted["cost_usd"]) + Decimal(event.cost_usd))


_USAGE_KEYS: Final[Mapping[type[Event], Keys]] = {ModelCalled: _accounts}

USAGE = ReadModel(
    name="usage",
    version=2,
    types=_USAGE_KEYS,
    fold=fold_each(_USAGE_KEYS, _used),
    columns={"kind": "TEXT", "name": "TEXT"},
    indexes=(("kind", "name"),),
)
