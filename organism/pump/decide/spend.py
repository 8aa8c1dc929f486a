"""Spend: what a model call may cost, which must fit what is left of each budget, and what it did cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final, Literal, NamedTuple

from organism.config.settings import Listener, Price, Spend
from organism.events import vocabulary as events
from organism.model.commands import ReserveEmbedding
from organism.model.completion import CompleteError, CompleteOptions, Completion, CostSource
from organism.model.ids import SYSTEM_CHAT
from organism.model.money import NOTHING, plain, priced
from organism.model.thread import Message
from organism.pump.decide.decision import Decision
from organism.pump.prompt import PromptMessage
from organism.pump.spending import Amount, Reservation

SURELY_WRITTEN: Final = 4096
"""Tokens that every model can write in one answer."""
LEAST_ANSWER: Final = 16
"""Tokens. A call for which fewer are left is not worth its prompt."""
LOST: Final = events.StepError(
    "lost", "The process died or the thread was killed while the call was under way; all that was reserved counts."
)
_MILLION: Final = Decimal(1_000_000)


@dataclass(slots=True)
class ModelCall:
    """One ``complete``: step ``step`` of ``message``. ``plan`` is what ``Models.reserve`` has prepared."""

    message: Message
    listener: Listener
    step: int
    messages: Sequence[PromptMessage]
    options: CompleteOptions
    plan: object = None


@dataclass(frozen=True, slots=True)
class Cost:
    """What a call has used, and of which model. ``prompt`` is the digest of what was sent."""

    model: str
    provider: str
    input_tokens: int
    output_tokens: int
    cost_usd: Decimal
    cost_source: CostSource
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended: by a completion or an error, after ``attempts``. Without ``cost`` nothing was spent."""

    completion: Completion | None
    error: events.StepError | None
    attempts: int
    duration_us: int
    cost: Cost | None = None


@dataclass(frozen=True, slots=True)
class Need:
    """What a call may use at most, ``price`` being its dearest model's; a length that ``is_asked`` for is not cut."""

    model: str
    provider: str
    price: Price
    input_tokens: int
    output_tokens: int
    seconds: float
    is_asked: bool

    @property
    def least(self) -> int:
        """Of an answer shorter than that the call is of no use."""
        return self.output_tokens if self.is_asked else min(self.output_tokens, LEAST_ANSWER)


class Bound(NamedTuple):
    """A budget that bounds a call: whose it is, where it is set, its limit, and how much is spent or reserved."""

    whose: str
    where: str
    most: Spend
    used: Amount


def bounds(decision: Decision, call: ModelCall) -> Iterator[Bound]:
    """Every budget that the call must fit into."""
    spend, message, agent = decision.state.folded.spend, call.message, call.listener.name
    own, thread, at = call.listener.budget, call.message.thread, decision.at
    tenant = decision.state.config.budget
    most = Spend(tokens=decision.state.rules.limits.max_tokens_per_thread)
    run = spend.run(message.id).used
    yield Bound("This run", f"`budget.run` of {agent}", own.run, run)
    yield Bound("This run", "`budget.run` of the tenant", tenant.run, run)
    if thread.turn is not None and thread.turn.budget is not None:
        turn, day = (_spend(thread.turn.budget.get(name, {})) for name in ("run", "day"))
        yield Bound("This turn", "`budget.run` of the session", turn, spend.thread(thread.id).used)
        yield Bound("The session today", "`budget.day` of the session", day, spend.session_on(thread.owner, at).used)
    if agent != SYSTEM_CHAT or message.id != message.correlation:  # a request of its caller's is as long as it is
        yield Bound("This thread", "`limits.max_tokens_per_thread`", most, spend.thread(thread.id).used)
    yield Bound(f"{agent} today", f"`budget.day` of {agent}", own.day, spend.agent_on(agent, at).used)
    yield Bound("The tenant today", "`budget.day` of the tenant", tenant.day, spend.tenant_on(at).used)


def reserve_embedding(decision: Decision, asked: ReserveEmbedding) -> None:
    """Reserve what a call of an embedding model may use. Raises ``CompleteError`` (``budget_exhausted``)."""
    price, at = Price(asked.input_usd_per_million), decision.at
    need = Need(asked.model, asked.provider, price, asked.tokens, 0, asked.seconds, is_asked=True)
    tenant = decision.state.config.budget.day
    today = Bound(
        "The tenant today", "`budget.day` of the tenant", tenant, decision.state.folded.spend.tenant_on(at).used
    )
    _add_reserved(decision, (asked.call, "", 0), fitted(need, iter((today,))), None)


def settle_embedding(decision: Decision, call: str, embedded: events.TextsEmbedded) -> None:
    """Record the call of an embedding model and what it used, unless it was settled already, as lost."""
    reservation = decision.state.folded.spend.reservation(call, 0)
    if reservation is not None:
        decision.add(embedded)
        tokens, usd = embedded.input_tokens, embedded.cost_usd
        decision.add(events.BudgetSettled(call, "", 0, tokens, usd, embedded.duration))


def settle_lost_embeddings(decision: Decision) -> None:
    """A new life begins: the calls of embedding models that were under way are lost, and count as spent."""
    open_calls = decision.state.folded.spend.open.values()
    for lost in [reservation.event for of_message in open_calls for reservation in of_message]:
        if lost.agent:
            continue
        source: Literal["price", "zero"] = "price" if Decimal(lost.cost_usd) else "zero"
        event = events.TextsEmbedded(
            model=lost.model,
            provider=lost.provider,
            texts=0,
            input_tokens=lost.input_tokens,
            cost_usd=lost.cost_usd,
            cost_source=source,
            duration=lost.duration,
            error=LOST,
        )
        settle_embedding(decision, lost.message, event)


def _spend(given: Mapping[str, int | str]) -> Spend:
    """Bounds as a session's settings have them."""
    tokens, usd, calls, seconds = (given.get(name) for name in ("tokens", "usd", "calls", "seconds"))
    return Spend(
        tokens=None if tokens is None else int(tokens),
        usd=None if usd is None else Decimal(usd),
        calls=None if calls is None else int(calls),
        seconds=None if seconds is None else float(seconds),
    )


def fitted(need: Need, budgets: Iterator[Bound]) -> Need:
    """The need, reduced to what is left where that is allowed. Raises ``CompleteError`` (``budget_exhausted``)."""
    for bound in budgets:
        need = _fitted(need, bound)
    return need


def _fitted(need: Need, bound: Bound) -> Need:
    most, used = bound.most, bound.used
    if most.calls is not None and used.calls >= most.calls:
        raise _exhausted(bound, f"{most.calls} calls", f"{used.calls}", "one more")
    seconds, tokens = need.seconds, need.output_tokens
    if most.seconds is not None:
        seconds = min(seconds, most.seconds - used.duration / 1_000_000)
        if seconds <= 0:
            raise _exhausted(bound, f"{most.seconds:g} s of calls", f"{used.duration / 1_000_000:g} s", "more")
    if most.tokens is not None:
        tokens = _share(need, tokens, most.tokens - used.tokens - need.input_tokens)
        if tokens < need.least:
            needs = f"{need.input_tokens + need.least} more"
            raise _exhausted(bound, f"{most.tokens} tokens", f"{used.tokens}", needs)
    if most.usd is not None:
        tokens = _share(need, tokens, _affordable(need, most.usd - used.usd))
        if tokens < need.least:
            needs = f"{plain(cost(need.price, need.input_tokens, need.least))} more"
            raise _exhausted(bound, f"{plain(most.usd)} USD", plain(used.usd), needs)
    if tokens == need.output_tokens and seconds == need.seconds:
        return need
    return replace(need, output_tokens=tokens, seconds=seconds)


def _share(need: Need, tokens: int, left: int) -> int:
    """How long the answer may be with so much left: all if the length was asked for, else a quarter, or one answer."""
    return min(tokens, left if need.is_asked else max(left // 4, min(left, SURELY_WRITTEN)))


def _affordable(need: Need, left: Decimal) -> int:
    """How many tokens of an answer can be paid after the prompt; -1 if not even the prompt can."""
    left -= priced(need.input_tokens, need.price.input_usd_per_million)
    if left < 0:
        return -1
    price = need.price.output_usd_per_million
    return int(left * _MILLION // price) if price else need.output_tokens


def _exhausted(bound: Bound, most: str, used: str, needs: str) -> CompleteError:
    left = f"{used} is spent or held for calls under way, and this one may need {needs}"
    return CompleteError("budget_exhausted", f"{bound.whose} may use {most} ({bound.where}); {left}.")


def cost(price: Price, input_tokens: int, output_tokens: int) -> Decimal:
    """What so many tokens cost, in US dollars."""
    return priced(input_tokens, price.input_usd_per_million) + priced(output_tokens, price.output_usd_per_million)


def reserve(decision: Decision, call: ModelCall, need: Need) -> None:
    """Reserve what the call may use at most. What an earlier try of the same step still reserves counts as spent."""
    settle_lost(decision, call.message, call.step)
    _add_reserved(decision, (call.message.id, call.message.to, call.step), need, call.message.thread.id)


def _add_reserved(decision: Decision, named: tuple[str, str, int], need: Need, thread: str | None) -> None:
    event = events.BudgetReserved(
        *named,
        model=need.model,
        provider=need.provider,
        input_tokens=need.input_tokens,
        output_tokens=need.output_tokens,
        tokens=need.input_tokens + need.output_tokens,
        cost_usd=plain(cost(need.price, need.input_tokens, need.output_tokens)),
        duration=int(need.seconds * 1_000_000),
    )
    decision.add(event, thread=thread)


def settle(decision: Decision, call: ModelCall, outcome: Outcome) -> None:
    """Record the call and what it used in place of the reservation, unless it was settled already."""
    reservation = decision.state.folded.spend.reservation(call.message.id, call.step)
    if reservation is not None:
        _settle(decision, reservation, outcome)


def settle_lost(decision: Decision, message: Message, step_number: int | None = None) -> None:
    """Count the reservations of a message's open calls (of one step, if it is given) as spent: those calls are lost."""
    for reservation in tuple(decision.state.folded.spend.open.get(message.id, ())):
        if step_number in {None, reservation.event.step}:
            _settle_lost(decision, reservation)


def _settle_lost(decision: Decision, reservation: Reservation) -> None:
    reserved = reservation.event
    cost_usd = Decimal(reserved.cost_usd)
    spent = Cost(
        reserved.model,
        reserved.provider,
        reserved.input_tokens,
        reserved.output_tokens,
        cost_usd,
        "price" if cost_usd else "zero",
    )
    _settle(decision, reservation, Outcome(None, LOST, 1, reserved.duration, spent))


def _settle(decision: Decision, reservation: Reservation, outcome: Outcome) -> None:
    """``model_called`` is for people, ``budget_settled`` for the budgets."""
    reserved = reservation.event
    named = reserved.message, reserved.agent, reserved.step
    spent = outcome.cost or Cost(reserved.model, reserved.provider, 0, 0, NOTHING, "zero")
    cost_usd = plain(spent.cost_usd)
    called = events.ModelCalled(
        *named,
        model=spent.model,
        provider=spent.provider,
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        cost_usd=cost_usd,
        cost_source=spent.cost_source,
        attempts=outcome.attempts,
        duration=outcome.duration_us,
        prompt=spent.prompt,
        error=outcome.error,
    )
    decision.add(called, thread=reservation.thread)
    tokens = spent.input_tokens + spent.output_tokens
    decision.add(events.BudgetSettled(*named, tokens, cost_usd, outcome.duration_us), thread=reservation.thread)
