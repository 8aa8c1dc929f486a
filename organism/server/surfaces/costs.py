"""What a call cost, told with its answer: the model calls of its thread and of the calls made in it, added up.

The sum is exact, and is rounded up once, to the cent, where it is told. It is made of the log, so a repetition under
an idempotency key is told the same.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from decimal import Decimal
from typing import Final

import orjson

from organism.config.check import money
from organism.errors import OrganismError
from organism.events import vocabulary as events
from organism.model.commands import Injected
from organism.model.completion import CostSource
from organism.model.money import NOTHING, cents
from organism.model.run import RunEntry
from organism.server.http.call import Call
from organism.server.surfaces.run import begun
from organism.views.usage import USAGE, InnerCall, dearer
from organism.views.views import Query, Where, rows_of

MOST_INNER: Final = 1000
"""So many calls inside a call are added up."""


async def tell_cost(call: Call, sent: Injected) -> None:
    """Tell the cost of what the call has sent in the headers of its answer, whatever that will be."""
    _tell(call, await _told(call, sent))


async def cost_of(call: Call, sent: Injected) -> dict[str, str]:
    """What is told of the cost in the last event of a stream."""
    return {name.replace("-", "_"): said for name, said in (await _told(call, sent)).items()}


async def begun_or_costed(
    call: Call, sent: Injected, entries: AsyncGenerator[RunEntry, None]
) -> AsyncGenerator[RunEntry, None]:
    """The entries, once the run has begun; with the error of one that has not, what it cost is told."""
    try:
        return await begun(entries)
    except OrganismError:
        await tell_cost(call, sent)
        raise


async def with_cost(call: Call, sent: Injected, parts: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The Server-Sent Events, and one more at their end, ``spass.cost``."""
    async with aclosing(parts):
        async for part in parts:
            yield part
    yield b"event: spass.cost\ndata: %b\n\n" % orjson.dumps(await cost_of(call, sent))


async def _told(call: Call, sent: Injected) -> dict[str, str]:
    usd, calls = NOTHING, 0
    source: CostSource = "zero"
    for thread in await _threads(call, sent):
        row = await call.tenant.views.private_row(USAGE, f"thread {thread}")
        if row is not None:
            usd, calls = usd + Decimal(row.public.cost_usd), calls + row.public.calls
            source = dearer(source, row.private.source)
    return _shown(call, usd, source, calls)


def tell_embedding(call: Call, event: events.TextsEmbedded) -> None:
    """Tell what a call of an embedding model cost, as ``tell_cost`` does."""
    _tell(call, _shown(call, Decimal(event.cost_usd), event.cost_source, 1))


def _tell(call: Call, told: Mapping[str, str]) -> None:
    call.access.headers.update({f"SPASS-Cost-{name.title()}": said for name, said in told.items()})


def _shown(call: Call, usd: Decimal, source: CostSource, calls: int) -> dict[str, str]:
    """Without a rate of exchange no euros are told, but of nothing."""
    rate = call.process.organism.settings.fx.get("eur_per_usd", None if usd else 1)
    eur = {} if rate is None else {"eur": cents(usd * money(rate))}
    return {**eur, "usd": cents(usd), "source": source, "sub-calls": str(calls)}


async def _threads(call: Call, sent: Injected) -> list[str]:
    """The thread, and those of the calls of the same token that named this request, or one inside it, as their parent.

    A caller may use a request id again: what was sent before is of an earlier request.
    """
    threads, requests = [sent.thread_id], [call.request_id]
    for request in requests:
        of_request = Where("parent_request", "=", request), Where("principal", "=", call.who.name)
        after = Where("position", ">", sent.position)
        page = await call.tenant.views.rows("inner_calls", Query((*of_request, after), "position", limit=MOST_INNER))
        for inner in rows_of(page, InnerCall):
            if inner.thread_id not in threads and len(threads) < MOST_INNER:
                threads.append(inner.thread_id)
                requests.append(inner.request_id or "")
    return threads
