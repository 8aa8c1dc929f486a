"""What a call cost, reported with its answer: the model calls of its thread and of the calls made in it, added up.

The sum is exact, and is rounded up once, to the cent, where it is shown. It is made of the log, so a repetition under
an idempotency key shows the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Final, cast

from organism.config.check import money
from organism.events import vocabulary as events
from organism.model.commands import Injected
from organism.model.completion import CostSource
from organism.model.money import NOTHING, cents
from organism.server.http.call import Call
from organism.views.read_models import portions
from organism.views.usage import InnerCall, dearer
from organism.views.views import Query, Where, rows_of

MOST_INNER: Final = 1000
"""So many calls inside a call are added up."""


async def set_cost_headers(call: Call, sent: Injected, *more: str) -> None:
    """Put the cost of what the call has sent into the headers of its answer, whatever that will be.

    ``more`` are threads that were made for it.
    """
    _set_headers(call, await _cost(call, sent, more))


async def cost_of(call: Call, sent: Injected, *more: str) -> dict[str, str]:
    """The cost as the last event of a stream has it; ``more`` as in ``set_cost_headers``."""
    return {name.replace("-", "_"): said for name, said in (await _cost(call, sent, more)).items()}


async def _cost(call: Call, sent: Injected, more: Iterable[str]) -> dict[str, str]:
    usd, calls = NOTHING, 0
    source: CostSource = "zero"
    within = Where("thread_id", "in", await _threads(call, sent, more))
    for used in await portions(call.tenant.views, "cost_source", (within,)):
        usd, calls = usd + used.cost, calls + used.calls
        source = dearer(source, cast("CostSource", used.name))
    return _shown(call, usd, source, calls)


def set_embedding_cost_headers(call: Call, event: events.TextsEmbedded) -> None:
    """Put what a call of an embedding model cost into the headers, as ``set_cost_headers`` does."""
    _set_headers(call, _shown(call, Decimal(event.cost_usd), event.cost_source, 1))


def _set_headers(call: Call, cost: Mapping[str, str]) -> None:
    call.access.headers.update({f"SPASS-Cost-{name.title()}": said for name, said in cost.items()})


def _shown(call: Call, usd: Decimal, source: CostSource, calls: int) -> dict[str, str]:
    """Without a rate of exchange there are no euros, but of nothing."""
    rate = call.process.organism.settings.fx.get("eur_per_usd", None if usd else 1)
    eur = {} if rate is None else {"eur": cents(usd * money(rate))}
    return {**eur, "usd": cents(usd), "source": source, "sub-calls": str(calls)}


async def _threads(call: Call, sent: Injected, more: Iterable[str]) -> list[str]:
    """The thread, ``more``, and those of the calls of the same token whose parent is this request, or one inside it.

    A caller may use a request id again: what was sent before is of an earlier request.
    """
    threads, requests = [sent.thread_id, *more], [call.request_id]
    for request in requests:
        of_request = Where("parent_request", "=", request), Where("principal", "=", call.who.name)
        after = Where("position", ">", sent.position)
        page = await call.tenant.views.rows("inner_calls", Query((*of_request, after), "position", limit=MOST_INNER))
        for inner in rows_of(page, InnerCall):
            if inner.thread_id not in threads and len(threads) < MOST_INNER:
                threads.append(inner.thread_id)
                requests.append(inner.request_id or "")
    return threads
