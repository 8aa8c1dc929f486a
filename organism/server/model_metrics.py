"""What models used and cost, as counters: since the log began, by tenant, model and the provider that served it."""

from __future__ import annotations

from collections.abc import Mapping

import orjson
from prometheus_client.core import CounterMetricFamily, Metric

from organism.log.log import History
from organism.projections.usage import TOTAL


async def model_metrics(logs: Mapping[str, History]) -> list[Metric]:
    """The counters of these tenants' logs. A cost is exact in the log; here it is a number like any other."""
    labels = ("tenant", "model", "served_by")
    calls = CounterMetricFamily("organism_model_calls", "Calls of models.", labels=labels)
    tokens = CounterMetricFamily("organism_model_tokens", "Tokens of prompts and answers.", labels=(*labels, "of"))
    cost = CounterMetricFamily("organism_model_cost_usd", "What calls of models cost, in US dollars.", labels=labels)
    for tenant, log in logs.items():
        row = await log.row("usage", TOTAL)
        for used in [] if row is None else orjson.loads(row)["models"]:
            named = (tenant, used["model"], used["served_by"])
            calls.add_metric(named, used["calls"])
            tokens.add_metric((*named, "prompt"), used["input_tokens"])
            tokens.add_metric((*named, "answer"), used["output_tokens"])
            cost.add_metric(named, float(used["cost_usd"]))
    return [calls, tokens, cost]
