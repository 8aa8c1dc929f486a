"""Metrics for Prometheus: gauges are read at each scrape, outcomes counted along the log from the first scrape on."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec.structs import asdict
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder

from organism.events import vocabulary as events
from organism.log.log import EventFilter, EventLog
from organism.tenants import Tenant
from organism.views.read_models import portions, waiting_for_people
from organism.views.views import ViewStore

OUTCOMES: Final = (
    events.MessageHandled,
    events.MessageRetried,
    events.MessageDropped,
    events.MessageDead,
    events.MessageRefused,
)
GAUGES: Final[Mapping[str, tuple[str, Callable[[Tenant], float]]]] = {
    "organism_log_position": ("The head of the log: how many events there are.", lambda tenant: tenant.log.head),
    "organism_log_available": ("Whether the log takes writes.", lambda tenant: tenant.log.available),
    "organism_threads_active": (
        "Threads in which something is open.",
        lambda tenant: len(tenant.pump.state.folded.threads),
    ),
    "organism_messages_open": (
        "Messages that have no end yet.",
        lambda tenant: len(tenant.pump.state.folded.messages),
    ),
    "organism_handlings_running": (
        "Handlings under way, those that wait in a step too.",
        lambda tenant: len(tenant.pump.handlings),
    ),
    "organism_model_calls_running": (
        "Calls of models under way.",
        lambda tenant: len(tenant.pump.state.folded.spend.open),
    ),
}
"""By name: the help text, and how it is read."""


class Metrics:
    """The numbers of all tenants."""

    def __init__(self) -> None:
        self._outcomes: dict[str, Counter[str]] = {}
        self._following: list[asyncio.Task[None]] = []

    async def shown(self, tenants: Iterable[Tenant], watching: int, accept: str) -> tuple[bytes, str]:
        """The text, in the form that ``accept`` asks for, and the type of that form."""
        families = [*await _gauges(tenants), *await model_metrics({tenant.id: tenant.views for tenant in tenants})]
        help_text = "Outcomes of messages since the first scrape of this process; retried are attempts that failed."
        outcomes = CounterMetricFamily("organism_messages", help_text, labels=("tenant", "outcome"))
        for tenant in tenants:
            if tenant.id not in self._outcomes:
                counts = self._outcomes[tenant.id] = Counter()
                self._following.append(asyncio.ensure_future(_count(tenant.log, counts)))
            for outcome, number in self._outcomes[tenant.id].items():
                outcomes.add_metric((tenant.id, outcome), number)
        viewers = GaugeMetricFamily("organism_viewers", "Who watches, over a WebSocket or a stream.", value=watching)
        registry = CollectorRegistry()
        registry.register(_Families([*families, outcomes, viewers]))
        ProcessCollector(registry=registry)
        encode, kind = choose_encoder(accept)
        return encode(registry), kind


class _Families:
    """Finished numbers, as a registry collects them."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


async def _count(log: EventLog, counts: Counter[str]) -> None:
    """Count along the log until it closes."""
    async for records in log.follow(log.head, EventFilter(types=OUTCOMES)):
        for record in records:
            event = record.event
            counts[
                event.outcome if isinstance(event, events.MessageHandled) else record.type.removeprefix("message_")
            ] += 1


async def _gauges(tenants: Iterable[Tenant]) -> list[Metric]:
    """The current values."""
    families = {name: GaugeMetricFamily(name, help_text, labels=("tenant",)) for name, (help_text, _) in GAUGES.items()}
    depth = GaugeMetricFamily("organism_queue_depth", "Messages that wait for a start.", labels=("tenant", "agent"))
    waiting = GaugeMetricFamily(
        "organism_waiting_for_people",
        "Dead letters, approvals and indeterminate effects that are open.",
        labels=("tenant", "what"),
    )
    for tenant in tenants:
        for name, (_, measure) in GAUGES.items():
            families[name].add_metric((tenant.id,), measure(tenant))
        for agent in tenant.pump.state.rules.listeners:
            depth.add_metric((tenant.id, agent), tenant.pump.mailboxes.waiting(agent))
        for what, number in asdict(await waiting_for_people(tenant.views)).items():
            waiting.add_metric((tenant.id, what), number)
    return [*families.values(), depth, waiting]


async def model_metrics(views_of: Mapping[str, ViewStore]) -> list[Metric]:
    """The counters of these tenants; a cost is exact in the log, here a float."""
    labels = ("tenant", "model", "served_by")
    calls = CounterMetricFamily("organism_model_calls", "Calls of models.", labels=labels)
    tokens = CounterMetricFamily("organism_model_tokens", "Tokens of prompts and answers.", labels=(*labels, "of"))
    cost = CounterMetricFamily("organism_model_cost_usd", "What calls of models cost, in US dollars.", labels=labels)
    for tenant, views in views_of.items():
        for used in await portions(views, "model"):
            named = (tenant, used.model, used.served_by)
            calls.add_metric(named, used.calls)
            tokens.add_metric((*named, "prompt"), used.input_tokens)
            tokens.add_metric((*named, "answer"), used.output_tokens)
            cost.add_metric(named, float(used.cost))
    return [calls, tokens, cost]
