"""The gateway: the one way to a model. It implements ``pump.models.Models`` for one tenant.

 allow-list ─▶ depth ─▶ leak check ─▶ rate ─▶ budget ─▶ (on disk) ─▶ provider ─▶ leak check ─▶ cost ─▶ (on disk)

What stands before the first "on disk" is decided in the unit that begins the step and refuses the call as a whole; what
follows it may be tried again, or elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from organism.agents.attempts import SECOND_US, Attempts, Pace, Plan, TooMany
from organism.agents.hearing import Hearing
from organism.agents.leaks import cleared, hold_back
from organism.agents.nesting import hold_depth
from organism.agents.provider import ProviderError
from organism.agents.providers.counting import tokens_of_request
from organism.agents.providers.replay import prompt_digest
from organism.agents.roster import Roster, Served
from organism.config.settings import Budget, Price
from organism.model.completion import CompleteError, CostSource, ModelRequest
from organism.model.money import NOTHING, exact
from organism.model.principal import Principal
from organism.model.redact import Redactor
from organism.pump import spend
from organism.pump.models import ModelCall, Outcome, Told
from organism.pump.spend import Cost, Need
from organism.pump.unit import Decision

LEAST_LEFT: Final = 1024
"""Tokens for an answer where the estimate leaves none of the context: the provider knows better what the prompt is."""
STALE: Final = 256
MOST_SAID: Final = 2000


@dataclass(frozen=True, slots=True)
class TenantRules:
    """What holds for the calls of one tenant, asked anew at each.

    ``principal`` gives who has that name by now, None if nobody has; ``budget`` bounds the runs and days of all agents.
    """

    principal: Callable[[str], Principal | None]
    budget: Callable[[], Budget]


class Gateway:
    """Calls models for one tenant."""

    def __init__(self, roster: Roster, redactor: Redactor, pace: Pace, tenant: TenantRules) -> None:
        self._roster = roster
        self._redactor = redactor
        self._pace = pace
        self._tenant = tenant
        self._plans: dict[str, Plan] = {}
        self._costs: dict[str, Cost] = {}

    # -- before

    def reserve(self, decision: Decision, call: ModelCall) -> None:
        """See ``Models``."""
        rules = decision.state.rules
        way = self._allowed(call)
        hold_depth(call.message, rules.listeners)
        request = self._request(call)
        need = _need(way, request)
        _hold_rate(way, need, decision.at)
        need = spend.fitted(need, spend.bounds(decision, call, self._tenant.budget()))
        spend.reserve(decision, call, need)
        self._forget(decision)
        if not need.is_asked and need.output_tokens <= spend.SURELY_WRITTEN:  # many refuse more than they can write
            request = replace(request, max_tokens=need.output_tokens)
        self._plans[call.key] = Plan(way, request, need, rules.retry, prompt_digest(request))

    def _allowed(self, call: ModelCall) -> tuple[Served, ...]:
        """The models to ask in turn: those of the configuration that the root's principal may use by now (S5)."""
        name = call.options.get("model") or call.listener.model
        if not name:
            raise _not_allowed(f"{call.listener.name} names no model: give it one, `model: NAME`, in organism.yaml.")
        way = self._roster.way(name) if isinstance(name, str) else ()
        if not way:
            raise _not_allowed(f"There is no model {str(name)[:80]!r} under `models` in organism.yaml.")
        holder = call.message.root.principal
        if holder is None:
            return way
        principal = self._tenant.principal(holder)
        if principal is None:
            raise _not_allowed(f"This follows from an injection by the token {holder!r}, which is not valid any more.")
        if principal.models is None:
            return way
        if name not in principal.models:
            raise _not_allowed(f"The token {holder!r}, from whose injection this follows, may not use {name!r}.")
        return tuple(served for served in way if served.name in principal.models)

    def _request(self, call: ModelCall) -> ModelRequest:
        options = call.options
        most = options.get("max_tokens")
        if most is not None and (not isinstance(most, int) or most < 1):
            raise CompleteError("upstream_error", f"`max_tokens` is a whole number from 1; {most!r} came.")
        request = ModelRequest(
            "",
            cleared(self._redactor, call.messages),
            tuple(options.get("tools", ())),
            options.get("response_format"),
            options.get("temperature", 0.0),
            most,
        )
        hold_back(self._redactor, request.messages, request.tools, request.response_format)
        return request

    def _forget(self, decision: Decision) -> None:
        """Of calls that were killed nobody settles anything here."""
        if len(self._plans) >= STALE:
            held = decision.state.routing.spend.open
            self._plans = {key: plan for key, plan in self._plans.items() if key in held}
            self._costs = {key: cost for key, cost in self._costs.items() if key in held}

    # -- the call

    async def call(self, call: ModelCall, tell: Callable[[Told], None]) -> Outcome:
        """See ``Models``."""
        plan = self._plans[call.key]
        hearing = Hearing(self._redactor, plan.need.output_tokens, tell)
        attempts = Attempts(plan, hearing, self._pace)
        try:
            served = await attempts.answered()
        except ProviderError as error:
            self._costs[call.key] = _partial(plan, attempts.heard, hearing)
            return Outcome(None, self._told(error), attempts.sent, attempts.ran_us)
        cost = self._costs[call.key] = _cost(plan, served, hearing)
        served.rate.give_back(max(0, plan.need.input_tokens + plan.need.output_tokens - _tokens(cost)))
        return Outcome(hearing.completion(served.name, cost), None, attempts.sent, attempts.ran_us)

    def _told(self, error: ProviderError) -> dict[str, str]:
        """The error as it is recorded. What a server said may be anything; no secret of ours is in it."""
        code = "upstream_timeout" if error.fault == "timeout" else "upstream_error"
        if isinstance(error, TooMany):
            code = "rate_limit_exceeded"
        return {"code": code, "message": self._redactor.text(error.message)[:MOST_SAID]}

    # -- after

    def settle(self, decision: Decision, call: ModelCall, outcome: Outcome) -> None:
        """See ``Models``."""
        plan = self._plans.pop(call.key, None)
        cost = self._costs.pop(call.key, None)
        if plan is not None:
            spend.settle(decision, call, outcome, cost or _no_cost(plan))


def _not_allowed(message: str) -> CompleteError:
    return CompleteError("model_not_in_allowlist", message)


def _need(way: tuple[Served, ...], request: ModelRequest) -> Need:
    """What the call may use at most, whichever of the models answers."""
    prompt, first = tokens_of_request(request), way[0].model
    asked = request.max_tokens
    prices = [served.model.price for served in way]
    price = Price(
        max(price.input_usd_per_million for price in prices), max(price.output_usd_per_million for price in prices)
    )
    return Need(
        model=way[0].name,
        provider=first.provider,
        price=price,
        input_tokens=prompt,
        output_tokens=asked or max(first.context_window - prompt, LEAST_LEFT),
        seconds=sum(served.model.timeout_s for served in way),
        is_asked=asked is not None,
    )


def _hold_rate(way: tuple[Served, ...], need: Need, now: int) -> None:
    """Raise ``CompleteError`` (``rate_limit_exceeded``) if the call's turn would come too late at every model."""
    tokens, first = need.input_tokens + need.output_tokens, way[0]
    if all(served.rate.wait_us(tokens, now) / SECOND_US > served.model.timeout_s for served in way):
        raise CompleteError(
            "rate_limit_exceeded",
            f"{first.name} takes {first.rate.per_minute} tokens a minute (`rate_limit_tpm`); "
            f"there is room for this call in {first.rate.wait_us(tokens, now) / SECOND_US:.0f} s.",
        )


def _cost(plan: Plan, served: Served, hearing: Hearing) -> Cost:
    """What the answer costs: as the provider says, else by the model's price."""
    prompt, answer = hearing.tokens(plan.need.input_tokens)
    named = hearing.upstream_usd
    usd = exact(named) if named is not None else spend.cost(served.model.price, prompt, answer)
    model, provider = served.name, served.model.provider
    source: CostSource = "upstream" if named is not None else "price" if usd else "zero"
    return Cost(model, provider, prompt, answer, usd, source, plan.prompt)


def _partial(plan: Plan, heard: Served | None, hearing: Hearing) -> Cost:
    """What a call costs that failed: nothing if no answer had begun, else what had come of the model last heard."""
    return _cost(plan, heard, hearing) if heard is not None and hearing.has_begun else _no_cost(plan)


def _no_cost(plan: Plan) -> Cost:
    return Cost(plan.need.model, plan.need.provider, 0, 0, NOTHING, "zero", plan.prompt)


def _tokens(cost: Cost) -> int:
    return cost.input_tokens + cost.output_tokens
