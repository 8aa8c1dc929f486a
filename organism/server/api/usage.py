"""What models cost: the tenant as a whole, a thread, an agent. From the log alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Annotated, Any, Final, Literal, NamedTuple

from msgspec import Meta, field
from msgspec.structs import asdict
from starlette.responses import Response

from organism.config.check import money
from organism.config.settings import Spend
from organism.errors import InvalidField, NotFound
from organism.events.entity import Entity
from organism.model import words
from organism.model.money import NOTHING, exact, plain
from organism.model.times import iso
from organism.pump.spending import DAY_US, Amount
from organism.pump.spending import Account as SpentToday
from organism.server.http.call import Call, JsonResponse, Route, Tag, tagged
from organism.server.http.contract import gives
from organism.server.http.lists import AT, LAST_US, as_of
from organism.server.http.rights import READ, Right
from organism.tenants import Tenant
from organism.views.read_models import portions
from organism.views.usage import DAY, HOUR, Account, ModelUsage, account, accounts
from organism.views.views import Begin, Where

DAYS_SHOWN: Final = 31
BILLED: Final = ("from", "to", "granularity")
COUNTED: Final = ("calls", "failed_calls", "input_tokens", "output_tokens", "tokens")


Unit = Literal["tokens", "usd", "calls", "seconds"]


class Usage(Entity, kw_only=True):
    """Calls of models: how many, what they used and cost, and how long they took."""

    calls: words.Count
    failed_calls: Annotated[words.Count, Meta(description="Those that gave no answer, or died with the process.")]
    input_tokens: words.Count
    output_tokens: words.Count
    tokens: Annotated[words.Count, Meta(description="Both together.")]
    cost_usd: words.Money
    cost_eur: Annotated[words.Money | None, Meta(description="By `fx.eur_per_usd` of organism.yaml; null without it.")]
    model_seconds: Annotated[float, Meta(ge=0, examples=[1.5])]
    last_called: words.Time | None
    models: Annotated[list[ModelUsage], Meta(description="The same by the model that answered.")]


class UsageOfAgent(Usage, kw_only=True):
    """An agent's calls."""

    agent: words.AgentName


class UsageOfThread(Usage, kw_only=True):
    """A thread's calls."""

    thread_id: words.ThreadId


class UsageOfDay(Usage, kw_only=True):
    """The calls of one day."""

    day: Annotated[str, Meta(description="Of UTC.", pattern=r"^\d{4,}-\d\d-\d\d$", examples=["2026-01-15"])]


class DayBudget(Entity, kw_only=True):
    """A bound of what may be spent on a day of UTC, and how near it is."""

    of: Literal["tenant", "agent"]
    name: Annotated[str, Meta(description="Of the tenant or the agent.", examples=["default"])]
    unit: Unit
    limit: Annotated[float, Meta(ge=0, examples=[5])]
    used: Annotated[float, Meta(ge=0, description="Spent, or reserved for calls under way.", examples=[1.25])]
    resets_at: words.Time


class UsageOfAll(Entity, kw_only=True):
    """All calls since the log began."""

    total: Usage
    agents: Annotated[list[UsageOfAgent], Meta(description="By name, the first 500.")]
    days: Annotated[list[UsageOfDay], Meta(description="The newest 31 with calls, newest first.")]
    budgets: Annotated[list[DayBudget], Meta(description="What bounds today, the tenant's first; none with `at`.")]


class Bucket(Usage, kw_only=True):
    """The calls of an hour or a day."""

    start: Annotated[words.Time, Meta(description="Of the hour or day.", extra_json_schema={"format": "date-time"})]


class BilledTotal(Entity, kw_only=True):
    """The sum of the buckets."""

    calls: words.Count
    failed_calls: words.Count
    input_tokens: words.Count
    output_tokens: words.Count
    tokens: words.Count
    cost_usd: words.Money
    cost_eur: words.Money | None


class Billed(Entity, kw_only=True):
    """What models cost in a span."""

    since: words.Time = field(name="from")
    to: words.Time
    granularity: Literal["hour", "day"]
    total: BilledTotal
    buckets: Annotated[list[Bucket], Meta(description="The oldest first; those without a call are left out.")]


async def usage(call: Call) -> Response:
    """All calls since the log began, by agent, and by day the newest first."""
    call.allow_query(AT)
    at = await as_of(call)
    by_agent = await portions(call.tenant.views, "agent", at=at)
    days = accounts(await portions(call.tenant.views, DAY, at=at))[: -DAYS_SHOWN - 1 : -1]
    shown = UsageOfAll(
        total=Usage(**_used(call, account("", by_agent))),
        agents=[UsageOfAgent(agent=each.name, **_used(call, each)) for each in accounts(by_agent)],
        days=[UsageOfDay(day=each.name, **_used(call, each)) for each in days],
        budgets=_budgets(call.tenant) if at is None else [],  # the past has no configuration to compare with
    )
    return JsonResponse(shown)


def _budgets(tenant: Tenant) -> list[DayBudget]:
    now, state = tenant.clock.now_us(), tenant.pump.state
    spend = state.folded.spend
    listeners = sorted(state.rules.listeners.items())
    budgets: list[tuple[Literal["tenant", "agent"], str, Spend, SpentToday]] = [
        ("tenant", tenant.id, state.config.budget.day, spend.tenant_on(now)),
        *(("agent", name, each.budget.day, spend.agent_on(name, now)) for name, each in listeners),
    ]
    resets_at = iso((now // DAY_US + 1) * DAY_US)
    return [
        DayBudget(of=of, name=name, unit=unit, limit=float(limit), used=used, resets_at=resets_at)
        for of, name, most, today in budgets
        for unit, limit, used in _bounded(most, today.used)
    ]


def _bounded(most: Spend, used: Amount) -> Iterator[tuple[Unit, Decimal | float, float]]:
    """Each bound that there is, by its unit, and what of it is used."""
    bounds: tuple[tuple[Unit, Decimal | float | None, Decimal | float], ...] = (
        ("tokens", most.tokens, used.tokens),
        ("usd", most.usd, used.usd),
        ("calls", most.calls, used.calls),
        ("seconds", most.seconds, used.duration / 1_000_000),
    )
    return ((unit, limit, float(spent)) for unit, limit, spent in bounds if limit is not None)


async def of_thread(call: Call) -> Response:
    """A thread's calls."""
    shown = await _account_of(call, "threads", "thread_id", call.path_params["id"])
    return JsonResponse(UsageOfThread(thread_id=shown.name, **_used(call, shown)))


async def of_agent(call: Call) -> Response:
    """An agent's calls."""
    shown = await _account_of(call, "agents", "agent", call.path_params["name"])
    return JsonResponse(UsageOfAgent(agent=shown.name, **_used(call, shown)))


async def _account_of(call: Call, kind: str, column: str, name: str) -> Account:
    """Who has called nothing has an empty account, if there is somebody of that name."""
    call.allow_query(AT)
    at = await as_of(call)
    summed = await portions(call.tenant.views, column, (Where(column, "=", name),), at)
    if not summed:
        await call.row(kind, name, at)
    return account(name, summed)


class Span(NamedTuple):
    """An hour or a day: its length in µs, and what of a call's time names it; ``rest`` completes that."""

    us: int
    name: Begin
    rest: str

    def start(self, at: int) -> str:
        return iso(at)[: self.name.chars] + self.rest


SPANS: Final = {"hour": Span(DAY_US // 24, HOUR, ":00:00Z"), "day": Span(DAY_US, DAY, "T00:00:00Z")}


async def billing(call: Call) -> Response:
    """What models cost in each hour or day of at most 31 days, without those in which none was called.

    They are whole hours or days, from the one of ``from`` to the last one that begins before ``to``.
    """
    given = call.parameters()
    kind = given.get("granularity", "day")
    since, until = _asked_span(given, call.tenant.clock.now_us())
    span = SPANS[kind]
    since, until = since // span.us * span.us, -(-until // span.us) * span.us
    within = (Where("at", ">=", iso(since)), Where("at", "<", iso(until)))
    rows = accounts(await portions(call.tenant.views, span.name, within))
    shown = Billed(
        since=span.start(since),
        to=span.start(until),
        granularity=kind,
        total=_sum(call, rows),
        buckets=[Bucket(start=row.name + span.rest, **_used(call, row)) for row in rows],
    )
    return JsonResponse(shown)


def _asked_span(given: Mapping[str, Any], now_us: int) -> tuple[int, int]:
    """From when to when (µs), by default the 31 days up to now. Raises ``InvalidField``."""
    most = DAYS_SHOWN * DAY_US
    until = given.get("to", now_us)
    since = given.get("from", max(0, until - most))
    if not 0 <= since < until <= LAST_US - DAY_US:
        raise InvalidField("`from` is before `to`, and both are of the years 1970 to 9999.", param="query.from")
    if until - since > most:
        raise InvalidField(f"At most {DAYS_SHOWN} days are shown at once.", param="query.from")
    return since, until


def _sum(call: Call, rows: Sequence[Account]) -> BilledTotal:
    cost_usd = plain(sum((Decimal(row.cost_usd) for row in rows), NOTHING))
    counted = {name: sum(getattr(row, name) for row in rows) for name in COUNTED}
    return BilledTotal(cost_usd=cost_usd, cost_eur=_in_euros(call, cost_usd), **counted)


def _used(call: Call, used: Account) -> dict[str, Any]:
    """The fields of its ``Usage``: in euros too where the configuration says what they cost."""
    counted = asdict(used)
    del counted["name"]
    return {**counted, "cost_eur": _in_euros(call, used.cost_usd)}


def _in_euros(call: Call, cost_usd: str) -> str | None:
    rate = call.process.organism.settings.fx.get("eur_per_usd")
    return None if rate is None else plain(exact(Decimal(cost_usd) * money(rate)))


NARROW: Final = {
    "from": Annotated[words.Time, Meta(description="By default 31 days before `to`.")],
    "to": Annotated[words.Time, Meta(description="By default now.")],
    "granularity": Annotated[Literal["hour", "day"], Meta(description="By default `day`.")],
}
_account = partial(Route, right=READ, by_head=True, query=(AT,))

ROUTES: Final = tagged(
    Tag("usage", __doc__),
    _account("GET /usage", usage, gives=gives(UsageOfAll), by_head=False, by_body=True),  # a day ends without an event
    _account(
        "GET /usage/threads/{id}",
        of_thread,
        right=Right("read", {"id": "thread"}),
        gives=gives(UsageOfThread),
        refuses=(NotFound,),
    ),
    _account(
        "GET /usage/agents/{name}",
        of_agent,
        right=Right("read", {"name": "agent"}),
        gives=gives(UsageOfAgent),
        refuses=(NotFound,),
    ),
)
FOR_CLIENTS: Final = tagged(
    Tag("billing", "What models cost, by hour or by day."),
    Route("GET /billing/usage", billing, right=READ, gives=gives(Billed), query=BILLED, narrow=NARROW),
)
"""Mounted below /v1."""
