"""What models cost: the tenant as a whole, a thread, an agent. From the log alone."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from typing import Any, Final

import orjson
from starlette.responses import Response

from organism.config.check import money
from organism.errors import NotFound
from organism.model.money import exact, plain
from organism.server.http.call import Call, JsonResponse, Route
from organism.server.http.contract import gives
from organism.server.http.lists import AT, MAX_LIMIT, as_of
from organism.server.http.shapes import UsageOfAgent, UsageOfAll, UsageOfThread
from organism.server.json import encoded
from organism.views.usage import TOTAL, empty_usage
from organism.views.views import Query, Row, Where

DAYS_SHOWN: Final = 31
_NAMED: Final = {"agent": "agent", "thread": "thread_id", "day": "day"}
"""By the kind of an account, the field that its name is shown in."""


async def usage(call: Call) -> Response:
    """All calls since the log began, by agent, and by day the newest first."""
    call.allow_query(AT)
    at = await as_of(call)
    row = await call.tenant.views.row("usage", TOTAL, at)
    agents = await _rows(call, Query((Where("kind", "=", "agent"),), "name", limit=MAX_LIMIT, at=at))
    days = await _rows(call, Query((Where("kind", "=", "day"),), "name", descending=True, limit=DAYS_SHOWN, at=at))
    total = empty_usage() if row is None else orjson.loads(row)
    return JsonResponse(encoded({"total": _shown(call, total), "agents": agents, "days": days}))


async def of_thread(call: Call) -> Response:
    """A thread's calls."""
    return await _one(call, "thread", call.path_params["id"])


async def of_agent(call: Call) -> Response:
    """An agent's calls."""
    return await _one(call, "agent", call.path_params["name"])


async def _one(call: Call, kind: str, name: str) -> Response:
    """Who has called nothing has an empty account, if there is somebody of that name."""
    call.allow_query(AT)
    at = await as_of(call)
    row = await call.tenant.views.row("usage", f"{kind} {name}", at)
    if row is None:
        await call.row(f"{kind}s", name, at)
    account = {"kind": kind, "name": name, **empty_usage()} if row is None else orjson.loads(row)
    return JsonResponse(encoded(_shown(call, account)))


async def _rows(call: Call, query: Query) -> list[Row]:
    page = await call.tenant.views.rows("usage", query)
    return [_shown(call, row) for row in orjson.loads(page.rows)]


def _shown(call: Call, row: Row) -> dict[str, Any]:
    """The account as it is shown: under its name, and in euros too where the configuration says what they cost."""
    kind, name = row.pop("kind", TOTAL), row.pop("name", "")
    named = {_NAMED[kind]: name} if kind in _NAMED else {}
    rate = call.process.organism.settings.fx.get("eur_per_usd")
    eur = None if rate is None else plain(exact(Decimal(row["cost_usd"]) * money(rate)))
    return {**named, **row, "cost_eur": eur}


_account = partial(Route, "GET", by_head=True, query=(AT,))

ROUTES: Final = (
    _account("/usage", usage, gives=gives(UsageOfAll)),
    _account("/usage/threads/{id}", of_thread, gives=gives(UsageOfThread), refuses=(NotFound,)),
    _account("/usage/agents/{name}", of_agent, gives=gives(UsageOfAgent), refuses=(NotFound,)),
)
