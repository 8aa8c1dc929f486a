"""What models were called for: calls, tokens, money and time, of the tenant, each agent, each thread and each day.

Told by the calls themselves (``model_called``), those included that failed or died: what they used is spent. ``models``
parts the same by the model that answered and the provider
that served it. A day is one of UTC; ``model_seconds`` is the time of the calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from organism.log.log import Keys, ReadModel, Row, fold_each
from organism.model.events import Event
from organism.model.money import plain
from organism.model.times import iso

TOTAL: Final = "total"
DAY_CHARS: Final = len("2026-01-15")


def keys(event: Event) -> Sequence[str]:
    """A kind and a name, which has no space before it."""
    data = event.data
    return (TOTAL, f"agent {data['agent']}", f"thread {event.thread}", f"day {iso(event.at)[:DAY_CHARS]}")


def empty() -> dict[str, Any]:
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


def apply(key: str, row: Row | None, event: Event) -> Row:
    if row is None:
        kind, _, name = key.partition(" ")
        row = {"kind": kind, "name": name, **empty(), "_us": 0}
    data = event.data
    _count(row, data)
    row["failed_calls"] += "error" in data
    row["_us"] += data["duration"]
    row["model_seconds"] = row["_us"] / 1_000_000
    row["last_called"] = iso(event.at)
    _count(_of_model(row["models"], data["model"], data["provider"]), data)
    return row


def _of_model(models: list[dict[str, Any]], model: str, served_by: str) -> dict[str, Any]:
    for each in models:
        if each["model"] == model and each["served_by"] == served_by:
            return each
    counts = {"calls": 0, "input_tokens": 0, "output_tokens": 0, "tokens": 0, "cost_usd": "0"}
    models.append({"model": model, "served_by": served_by, **counts})
    return models[-1]


def _count(counted: dict[str, Any], data: dict[str, Any]) -> None:
    counted["calls"] += 1
    counted["input_tokens"] += data["input_tokens"]
    counted["output_tokens"] += data["output_tokens"]
    counted["tokens"] += data["input_tokens"] + data["output_tokens"]
    counted["cost_usd"] = plain(Decimal(counted["cost_usd"]) + Decimal(data["cost_usd"]))


KEYS: Final[Mapping[str, Keys]] = {"model_called": keys}

MODEL = ReadModel(
    name="usage",
    version=2,
    types=KEYS,
    fold=fold_each(KEYS, apply),
    columns={"kind": "TEXT", "name": "TEXT"},
    indexes=(("kind", "name"),),
)
