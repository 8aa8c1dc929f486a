"""The gateway: the one way to a model. It implements ``Models`` (``pump/run/model_call.py``) for one tenant.

allow-list ─▶ depth ─▶ leak check ─▶ rate ─▶ budget ─▶ (on disk) ─▶ provider ─▶ leak check ─▶ cost ─▶ (on disk)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import ceil
from typing import Any, Final

import orjson

from organism.agents.attempts import SECOND_US, AnswerBuffer, Attempts, CallPlan, Timing
from organism.agents.providers import ProviderError
from organism.agents.providers.messages import prompt_digest, tokens_beside_messages, tokens_of_message
from organism.agents.registry import ModelRegistry, ServedModel, connected
from organism.config.settings import Listener, Price
from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.model.completion import CompleteError, ModelRequest
from organism.model.money import NOTHING
from organism.model.redact import Redactor
from organism.model.thread import Message
from organism.pump.decide import spend
from organism.pump.decide.decision import Decision
from organism.pump.decide.gates import PrincipalOf
from organism.pump.decide.spend import Cost, ModelCall, Need, Outcome
from organism.pump.prompt import PromptMessage, SentMessage, json_of
from organism.pump.run.model_call import StreamPart

LEAST_LEFT: Final = 1024
"""Tokens for an answer where the estimated prompt fills the context; the provider counts it exactly."""
PORTION_BYTES: Final = 1 << 15
"""So much of a prompt is searched for secrets before the loop gets a turn: 0.3 ms, or 2 ms if all of it is masked."""
MOST_ERROR_CHARS: Final = 2000
MOST_RUNS: Final = 3
"""How deep runs may be nested, the outermost included."""


class Gateway(Entity):
    """One tenant's gateway. The rights of a principal are read again at each call."""

    _registry: ModelRegistry
    _redactor: Redactor
    _timing: Timing
    _principal_of: PrincipalOf

    async def prepare(self, call: ModelCall) -> None:
        """See ``Models``."""
        is_long = sum(len(message.json) for message in call.messages) > PORTION_BYTES
        for portion in _portions(self._unmasked(call)):
            self._mask(portion)
            if is_long:  # also where all is known: writing the digest has taken long, and so will reserving
                await asyncio.sleep(0)

    def _unmasked(self, call: ModelCall) -> list[PromptMessage]:
        """The messages that may hold a secret which was not looked for."""
        generation = self._redactor.generation
        return [each for each in call.messages if each.sent is None or each.sent.generation != generation]

    def _mask(self, messages: Sequence[PromptMessage]) -> None:
        """Make what is sent of the messages. Most hold no secret, which one search through all of them tells."""
        redactor = self._redactor
        may_mask = redactor.may_mask(b"\n".join(message.json for message in messages))
        for message in messages:
            sent, json, may_leak = message.given, message.json, False
            if may_mask and redactor.may_mask(json):
                sent = redactor.value(sent)
                json = json_of(sent)
                may_leak = redactor.may_hold(json)
            message.sent = SentMessage(sent, json, tokens_of_message(sent), redactor.generation, may_leak)

    def reserve(self, decision: Decision, call: ModelCall) -> None:
        rules = decision.state.rules
        chain = self._allowed(call)
        check_depth(call.message, rules.listeners)
        self._mask(self._unmasked(call))  # none, unless a secret came after it was prepared
        sent = [message.sent for message in call.messages if message.sent is not None]
        request = self._request(call, sent)
        need = _need(chain, request, sum(each.tokens for each in sent) + tokens_beside_messages(request))
        _check_rate(chain, need, decision.at)
        need = spend.fitted(need, spend.bounds(decision, call))
        spend.reserve(decision, call, need)
        if not need.is_asked and need.output_tokens <= spend.SURELY_WRITTEN:  # many refuse more than they can write
            request = replace(request, max_tokens=need.output_tokens)
        digest = prompt_digest((each.json for each in sent), request)
        call.plan = CallPlan(chain, request, need, rules.retry, digest)

    def _allowed(self, call: ModelCall) -> tuple[ServedModel, ...]:
        """The models to ask in order: those of the configuration that the root's principal may use now (S5)."""
        name = call.options.get("model") or call.listener.model
        if not name:
            raise _not_allowed(f"{call.listener.name} names no model: give it one, `model: NAME`, in organism.yaml.")
        chain = self._registry.chain(name) if isinstance(name, str) else ()
        if not chain:
            raise _not_allowed(f"There is no model {str(name)[:80]!r} under `models` in organism.yaml.")
        holder = call.message.root.principal
        if holder is None:
            return chain
        principal = self._principal_of(holder)
        if principal is None:
            raise _not_allowed(f"This follows from an injection by the token {holder!r}, which is not valid any more.")
        if principal.models is None:
            return chain
        if name not in principal.models:
            raise _not_allowed(f"The token {holder!r}, from whose injection this follows, may not use {name!r}.")
        return tuple(served for served in chain if served.name in principal.models)

    def _request(self, call: ModelCall, sent: Sequence[SentMessage]) -> ModelRequest:
        options = call.options
        most = options.get("max_tokens")
        if most is not None and (not isinstance(most, int) or most < 1):
            raise CompleteError("upstream_error", f"`max_tokens` is a whole number from 1; {most!r} came.")
        request = ModelRequest(
            "",
            tuple(each.message for each in sent),
            tuple(options.get("tools", ())),
            options.get("response_format"),
            options.get("temperature", 0.0),
            most,
            parameters=options.get("parameters", {}),
        )
        doubtful = [each.message for each in sent if each.may_leak]
        self._refuse_leaks(doubtful, request.tools, request.response_format, request.parameters)
        return request

    def _refuse_leaks(self, *parts: Any) -> None:
        """Raise ``CompleteError`` (``leak_refused``) if a live secret is left (S23, S30); never say which."""
        for part in parts:
            sent = orjson.dumps(part)
            if self._redactor.holds(sent) or self._redactor.holds_token(sent):
                raise CompleteError(
                    "leak_refused",
                    "The tools or the answer's schema hold a live secret of this installation; take it out of them.",
                )

    async def call(self, call: ModelCall, on_part: Callable[[StreamPart], None]) -> Outcome:
        """See ``Models``."""
        plan = call.plan
        assert isinstance(plan, CallPlan)  # noqa: S101 - `reserve` made it; narrows the type
        answer = AnswerBuffer(self._redactor, plan.need.output_tokens, on_part)
        attempts = Attempts(plan, answer, self._timing)
        try:
            served = await attempts.answered()
        except ProviderError as error:
            cost = Cost(plan.need.model, plan.need.provider, 0, 0, NOTHING, "zero", plan.prompt_digest)
            if attempts.answering is not None and answer.has_begun:
                cost = answer.cost(plan, attempts.answering)
            return Outcome(None, self._recorded(error), attempts.sent, attempts.ran_us, cost)
        cost = answer.cost(plan, served)
        served.rate.give_back(max(0, plan.tokens - cost.input_tokens - cost.output_tokens))
        return Outcome(answer.completion(cost), None, attempts.sent, attempts.ran_us, cost)

    def _recorded(self, error: ProviderError) -> events.StepError:
        """The error as it is recorded: a server may have written anything, so secrets are taken out."""
        message = self._redactor.text(error.message)[:MOST_ERROR_CHARS]
        wait_s = None if error.retry_after_s is None else ceil(error.retry_after_s)
        return events.StepError(error.code, message, is_final=not error.may_retry, retry_after_s=wait_s)


def _not_allowed(message: str) -> CompleteError:
    return CompleteError("model_not_in_allowlist", message)


def check_depth(message: Message, listeners: Mapping[str, Listener]) -> None:
    """Raise ``CompleteError`` (``recursion_depth_exceeded``) if ``MOST_RUNS`` runs are nested around the handling."""
    depth, ask = message.root.depth, message.ask
    while ask is not None:
        asker = ask.message
        listener = listeners.get(asker.to)
        is_agent = listener is not None and listener.is_agent
        depth += is_agent or any(step.kind == "complete" for step in (asker.steps or {}).values())
        ask = asker.ask
    if depth >= MOST_RUNS:
        raise CompleteError(
            "recursion_depth_exceeded",
            f"{message.to} would think within {depth} runs that wait for it; at most {MOST_RUNS} lie in each other.",
        )


def _need(chain: tuple[ServedModel, ...], request: ModelRequest, prompt: int) -> Need:
    """The most that the call may use, whichever model answers; ``prompt`` are the request's own tokens."""
    first, asked = chain[0], request.max_tokens
    prices = [served.model.price for served in chain]
    return Need(
        model=first.name,
        provider=first.model.provider,
        price=Price(
            max(each.input_usd_per_million for each in prices), max(each.output_usd_per_million for each in prices)
        ),
        input_tokens=prompt,
        output_tokens=asked or max(first.model.context_window - prompt, LEAST_LEFT),
        seconds=sum(served.model.timeout_s for served in chain),
        is_asked=asked is not None,
    )


def _check_rate(chain: tuple[ServedModel, ...], need: Need, now: int) -> None:
    """Raise ``CompleteError`` (``rate_limit_exceeded``) if the call would have to wait too long for every model."""
    tokens, first = need.input_tokens + need.output_tokens, chain[0]
    if all(served.rate.wait_us(tokens, now) / SECOND_US > served.model.timeout_s for served in chain):
        wait_s = first.rate.wait_us(tokens, now) / SECOND_US
        raise CompleteError(
            "rate_limit_exceeded",
            f"{first.name} takes {first.rate.count} tokens a minute (`rate_limit_tpm`); "
            f"there is room for this call in {wait_s:.0f} s.",
            retry_after_s=ceil(wait_s),
        )


def _portions(messages: Iterable[PromptMessage]) -> Iterator[list[PromptMessage]]:
    """The messages in portions of at least ``PORTION_BYTES``; the last one is smaller, and may be empty."""
    portion, size_bytes = list[PromptMessage](), 0
    for message in messages:
        portion.append(message)
        size_bytes += len(message.json)
        if size_bytes >= PORTION_BYTES:
            yield portion
            portion, size_bytes = [], 0
    yield portion


class Gateways:
    """Makes the gateways of all tenants, which share the models. ``jitter`` gives a number in [0, 1)."""

    def __init__(
        self,
        redactor: Redactor,
        jitter: Callable[[], float],
        environment: Mapping[str, str],
    ) -> None:
        self._redactor = redactor
        self._jitter = jitter
        self.registry = ModelRegistry(partial(connected, environment=environment))

    def of_tenant(self, now: Callable[[], int], principal_of: PrincipalOf) -> Gateway:
        """A tenant's gateway. ``now`` gives its log's time in µs."""
        return Gateway(self.registry, self._redactor, Timing(now, self._jitter), principal_of)
