"""What models cost, as decisions rest on it: the accounts of each run, thread and day, which budgets bound.

Calls of embedding models are no agent's: the account of the tenant alone has them.

A call is reserved before it is made (``budget_reserved``) and settled when it is over (``budget_settled``); in between
its reservation counts like money spent, whichever day it is. A day is one of UTC; what is settled belongs to the day on
which it was settled. Runs and threads that are over are forgotten (``forget``).
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from decimal import Decimal
from typing import Final, NamedTuple

from msgspec import field

from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Record
from organism.model.ids import session_of
from organism.model.money import NOTHING

DAY_US: Final = 86_400_000_000
ROOM: Final = 256
"""Accounts of runs and threads kept before those that are over are forgotten."""


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
    """What was spent, and what is reserved for calls under way."""

    spent: Amount = ZERO
    reserved: Amount = ZERO

    @property
    def used(self) -> Amount:
        """What is spent or reserved."""
        return self.spent.plus(self.reserved) if self.reserved.calls else self.spent


EMPTY: Final = Account()


class Reservation(NamedTuple):
    """A reservation that is not settled, and its thread."""

    thread: str
    event: events.BudgetReserved


def amount_of(event: events.BudgetReserved | events.BudgetSettled) -> Amount:
    """The amount that a reservation or a settlement names: that of one call."""
    return Amount(event.tokens, Decimal(event.cost_usd), 1, event.duration)


class Spending(Entity):
    """The state. ``agents``, ``sessions`` and ``tenant`` hold what was spent on ``day``, a number of days since 1970.

    ``sessions`` are those that have a budget. ``open`` has the reservations of each message, or call of an embedding
    model.
    """

    open: dict[str, list[Reservation]] = field(default_factory=dict)
    runs: dict[str, Account] = field(default_factory=dict)
    threads: dict[str, Account] = field(default_factory=dict)
    agents: dict[str, Account] = field(default_factory=dict)
    sessions: dict[str, Account] = field(default_factory=dict)
    tenant: Account = EMPTY
    day: int = 0
    room: int = ROOM

    def reservation(self, message: str, step: int) -> Reservation | None:
        """The reservation of this step, if it is open."""
        return next((each for each in self.open.get(message, ()) if each.event.step == step), None)

    def run(self, message: str) -> Account:
        """The account of a message's handling, all its attempts together."""
        return self.runs.get(message, EMPTY)

    def thread(self, thread: str) -> Account:
        """The account of a thread since it was created, while it is active."""
        return self.threads.get(thread, EMPTY)

    def agent_on(self, agent: str, at: int) -> Account:
        return self._on(self.agents.get(agent, EMPTY), at)

    def session_on(self, session: str, at: int) -> Account:
        return self._on(self.sessions.get(session, EMPTY), at)

    def tenant_on(self, at: int) -> Account:
        return self._on(self.tenant, at)

    def _on(self, account: Account, at: int) -> Account:
        return account if at // DAY_US <= self.day else Account(ZERO, account.reserved)

    def is_full(self) -> bool:
        return len(self.runs) + len(self.threads) >= self.room

    def forget(self, messages: Container[str], threads: Container[str]) -> None:
        """Forget runs and threads that are not open any more, unless something is still reserved for them."""
        self.runs = {key: each for key, each in self.runs.items() if key in messages or each.reserved.calls}
        self.threads = {key: each for key, each in self.threads.items() if key in threads or each.reserved.calls}
        self.room = max(ROOM, 2 * (len(self.runs) + len(self.threads)))

    def reserved(self, record: Record[events.BudgetReserved], session: str | None = None) -> None:
        """Reserve what a call may use; ``session`` has a budget that bounds it."""
        self._turn(record.at)
        if session is not None:
            self.sessions.setdefault(session, EMPTY)
        event = record.event
        reservation = Reservation(record.thread or "", event)
        self.open.setdefault(event.message, []).append(reservation)
        self._book(reservation, ZERO, amount_of(event))

    def settled(self, record: Record[events.BudgetSettled]) -> None:
        """Settle a call with what it used. Only the first settlement counts."""
        self._turn(record.at)
        event = record.event
        reservation = self.reservation(event.message, event.step)
        if reservation is not None:
            self.open[event.message].remove(reservation)
            if not self.open[event.message]:
                del self.open[event.message]
            self._book(reservation, amount_of(event), ZERO.less(amount_of(reservation.event)))

    def thread_reopened(self, record: Record[events.ThreadReopened]) -> None:
        """A thread's limit covers all its lives: it is reopened with what it has used."""
        if tokens := record.event.tokens:
            self.threads[record.thread or ""] = Account(Amount(tokens))

    def _turn(self, at: int) -> None:
        """Begin a new day if it has come: nothing is spent on it yet."""
        if at // DAY_US > self.day:
            self.day = at // DAY_US
            self.agents, self.sessions = _still_reserved(self.agents), _still_reserved(self.sessions)
            self.tenant = Account(ZERO, self.tenant.reserved)

    def _book(self, reservation: Reservation, spent: Amount, more_reserved: Amount) -> None:
        message, agent = reservation.event.message, reservation.event.agent
        self.tenant = _booked(self.tenant, spent, more_reserved)
        if not agent:  # a call of an embedding model is of no run
            return
        self.runs[message] = _booked(self.run(message), spent, more_reserved)
        self.threads[reservation.thread] = _booked(self.thread(reservation.thread), spent, more_reserved)
        self.agents[agent] = _booked(self.agents.get(agent, EMPTY), spent, more_reserved)
        session = session_of(reservation.thread)
        if session is not None and session in self.sessions:
            self.sessions[session] = _booked(self.sessions[session], spent, more_reserved)


def _still_reserved(accounts: Mapping[str, Account]) -> dict[str, Account]:
    """The accounts on a new day: nothing is spent yet."""
    return {name: Account(ZERO, each.reserved) for name, each in accounts.items() if each.reserved.calls}


def _booked(account: Account, spent: Amount, more_reserved: Amount) -> Account:
    return Account(account.spent if spent is ZERO else account.spent.plus(spent), account.reserved.plus(more_reserved))
