"""What models cost: the budgets that calls are held to, and the accounts that people read.

A call is reserved before it is made (``budget_reserved``) and settled when it is over (``budget_settled``); in between
its reservation counts like money spent, whichever day it is. A day is one of UTC; what is settled belongs to the day on
which it was settled. Of runs and threads that are over nothing need be kept: see ``forget``.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple

from msgspec import field

from organism.log.log import Keys, ReadModel, Row, fold_each
from organism.events.entity import Entity
from organism.model.events import Event
from organism.model.money import NOTHING, plain
from organism.model.times import iso

DAY_US: Final = 86_400_000_000
ROOM: Final = 256  # So many runs and threads are kept before those that are over are looked for


class Amount(NamedTuple):
    """What calls use: tokens, dollars, their number, and time in µs."""

    tokens: int = 0
    usd: Decimal = NOTHING
    calls: int = 0
    duration: int = 0

    def plus(self, other: Amount) -> Amount:
        tokens, usd, calls, duration = other
        return Amount(self.tokens + tokens, self.usd + usd, self.calls + calls, self.duration + duration)

    def less(self, other: Amount) -> Amount:
        tokens, usd, calls, duration = other
        return Amount(self.tokens - tokens, self.usd - usd, self.calls - calls, self.duration - duration)


ZERO: Final = Amount()


class Account(NamedTuple):
    """What somebody has spent, and what is held for calls under way."""

    spent: Amount = ZERO
    held: Amount = ZERO

    @property
    def used(self) -> Amount:
        """What is gone, or may be."""
        return self.spent.plus(self.held) if self.held.calls else self.spent


EMPTY: Final = Account()


class Held(NamedTuple):
    """A reservation that is not settled: its thread, and the data of its event."""

    thread: str
    data: Mapping[str, Any]


def amount_of(data: Mapping[str, Any]) -> Amount:
    """The amount that a reservation or a settlement names: that of one call."""
    return Amount(data["tokens"], Decimal(data["cost_usd"]), 1, data["duration"])


def key_of(data: Mapping[str, Any]) -> str:
    return f"{data['message']}/{data['step']}"


class Spend(Entity):
    """The state. ``agents`` and ``tenant`` hold what was spent on ``day``, a number of days since 1970."""

    open: dict[str, Held] = field(default_factory=dict)
    runs: dict[str, Account] = field(default_factory=dict)
    threads: dict[str, Account] = field(default_factory=dict)
    agents: dict[str, Account] = field(default_factory=dict)
    tenant: Account = EMPTY
    day: int = 0
    room: int = ROOM

    def run(self, message: str) -> Account:
        """The account of a message's handling, all its attempts together."""
        return self.runs.get(message, EMPTY)

    def thread(self, thread: str) -> Account:
        """The account of a thread since its birth, as long as it is active."""
        return self.threads.get(thread, EMPTY)

    def agent_on(self, agent: str, at: int) -> Account:
        return self._on(self.agents.get(agent, EMPTY), at)

    def tenant_on(self, at: int) -> Account:
        return self._on(self.tenant, at)

    def _on(self, account: Account, at: int) -> Account:
        return account if at // DAY_US <= self.day else Account(ZERO, account.held)

    def is_full(self) -> bool:
        return len(self.runs) + len(self.threads) >= self.room

    def forget(self, messages: Container[str], threads: Container[str]) -> None:
        """Forget runs and threads that are not open any more, unless something is still held for them."""
        self.runs = {key: kept for key, kept in self.runs.items() if key in messages or kept.held.calls}
        self.threads = {key: kept for key, kept in self.threads.items() if key in threads or kept.held.calls}
        self.room = max(ROOM, 2 * (len(self.runs) + len(self.threads)))

    def reserved(self, event: Event) -> None:
        """A call will be made: it may use this much."""
        self._turn(event.at)
        held = Held(event.thread or "", event.data)
        self.open[key_of(event.data)] = held
        self._book(held, ZERO, amount_of(event.data))

    def settled(self, event: Event) -> None:
        """The call is over: it has used this much. Only the first word on it counts."""
        self._turn(event.at)
        held = self.open.pop(key_of(event.data), None)
        if held is not None:
            self._book(held, amount_of(event.data), ZERO.less(amount_of(held.data)))

    def thread_reopened(self, event: Event) -> None:
        """A thread's bound is for all its lives: it comes back with what it has used."""
        if tokens := event.data.get("tokens", 0):
            self.threads[event.thread or ""] = Account(Amount(tokens))

    def _turn(self, at: int) -> None:
        """A new day: nothing was spent on it yet."""
        if at // DAY_US > self.day:
            self.day = at // DAY_US
            self.agents = {name: Account(ZERO, kept.held) for name, kept in self.agents.items() if kept.held.calls}
            self.tenant = Account(ZERO, self.tenant.held)

    def _book(self, held: Held, spent: Amount, more_held: Amount) -> None:
        message, agent = held.data["message"], held.data["agent"]
        self.runs[message] = _booked(self.run(message), spent, more_held)
        self.threads[held.thread] = _booked(self.thread(held.thread), spent, more_held)
        self.agents[agent] = _booked(self.agents.get(agent, EMPTY), spent, more_held)
        self.tenant = _booked(self.tenant, spent, more_held)


def _booked(account: Account, spent: Amount, more_held: Amount) -> Account:
    return Account(account.spent if spent is ZERO else account.spent.plus(spent), account.held.plus(more_held))


# Usage: calls, tokens, money and time, of the tenant, each agent, each thread and each day (of UTC). The calls
# themselves say it (``model_called``), those included that failed or died: what they used is spent. ``models`` divides
# the same by the model that answered and the provider that served it. ``model_seconds`` is the time of the calls.

TOTAL: Final = "total"
DAY_CHARS: Final = len("2026-01-15")


def _accounts(event: Event) -> Sequence[str]:
    """A kind and a name, which has no space before it."""
    data = event.data
    return (TOTAL, f"agent {data['agent']}", f"thread {event.thread}", f"day {iso(event.at)[:DAY_CHARS]}")


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


def _used(key: str, row: Row | None, event: Event) -> Row:
    if row is None:
        kind, _, name = key.partition(" ")
        row = {"kind": kind, "name": name, **empty_usage(), "_us": 0}
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


_USAGE_KEYS: Final[Mapping[str, Keys]] = {"model_called": _accounts}

USAGE = ReadModel(
    name="usage",
    version=2,
    types=_USAGE_KEYS,
    fold=fold_each(_USAGE_KEYS, _used),
    columns={"kind": "TEXT", "name": "TEXT"},
    indexes=(("kind", "name"),),
)
