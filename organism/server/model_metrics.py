"""What models used and cost, as counters: since the log began, by tenant and model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson
from prometheus_client.core import CounterMetricFamily, Metric

from organism.log.log import History
from organism.projections.usage import TOTAL

COUNTED: Final = ("calls", "input_tokens", "output_tokens", "cost_usd")


async def model_metrics(logs: Mapping[str, History]) -> list[Metric]:
    """The counters of these tenants' logs. A cost is exact in the log; here it is a number like any other."""
    labels = ("tenant", "model")
    calls = CounterMetricFamily("organism_model_calls", "Calls of models.", labels=labels)
    tokens = CounterMetricFamily("organism_model_tokens", "Tokens of prompts and answers.", labels=(*labels, "of"))
    cost = CounterMetricFamily("organism_model_cost_usd", "What calls of models cost, in US dollars.", labels=labels)
    for tenant, log in logs.items():
        for used in await _models(log):
            calls.add_metric((tenant, used["model"]), used["calls"])
            tokens.add_metric((tenant, used["model"], "prompt"), used["input_tokens"])
            tokens.add_metric((tenant, used["model"], "answer"), used["output_tokens"])
            cost.add_metric((tenant, used["model"]), float(used["cost_usd"]))
    return [calls, tokens, cost]


async def _models(log: History) -> list[dict[str, Any]]:
    """By model; one that has moved to another provider is one still."""
    row = await log.row("usage", TOTAL)
    found: dict[str, dict[str, Any]] = {}
    for used in [] if row is None else orjson.loads(row)["models"]:
        kept = found.setdefault(
            used["model"], {**used, "calls": 0, "input_tokens": 0, "output_tokens": 0, "cost_usd": 0}
        )
        for name in ("calls", "input_tokens", "output_tokens"):
            kept[name] += used[name]
        kept["cost_usd"] += float(used["cost_usd"])
    return list(found.values())
