"""Metrics, for Prometheus to scrape."""

from __future__ import annotations

from typing import Final

from organism.server.call import Answer, Call, Route
from organism.server.contract import Contract, Gives


async def metrics(call: Call) -> Answer:
    """The numbers of the whole process, as text; OpenMetrics for who accepts it."""
    call.allow_query()
    process = call.process
    tenants = tuple(process.organism.tenants.values())
    body, kind = await process.metrics.shown(tenants, process.connections.count, call.header(b"accept"))
    return Answer(body, kind=kind.encode())


NUMBERS: Final = Contract(gives=(Gives(str, kind="text/plain"), Gives(str, kind="application/openmetrics-text")))

ROUTES: Final = (Route("GET", "/metrics", metrics, contract=NUMBERS),)
