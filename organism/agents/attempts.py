"""The attempts of one call: retries, fallbacks and rate limits; and the answer as it arrives."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from itertools import count
from typing import Final

import orjson

from organism.agents.providers import Provider, ProviderError
from organism.agents.providers.messages import tokens_of, tokens_of_call
from organism.agents.registry import ServedModel
from organism.config.settings import Retry
from organism.model.completion import (
    Completion,
    Finish,
    FinishReason,
    ModelRequest,
    Part,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    Usage,
    added_up,
)
from organism.model.money import exact, is_amount
from organism.model.redact import Redactor
from organism.pump.decide import spend
from organism.pump.decide.spend import Cost, Need
from organism.pump.run.model_call import AnswerRestarted, StreamPart
from organism.pump.run.run_stream import SecretFilter

SECOND_US: Final = 1_000_000
CHARS_PER_TOKEN_AT_MOST: Final = 16
"""No readable text has more; an answer that is longer for its tokens is cut off."""
MOST_TOKENS: Final = 1_000_000_000
"""Larger counts of a provider are clipped to this."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Injected time and randomness: ``now`` in µs of a monotonic clock, ``jitter`` in [0, 1)."""

    now: Callable[[], int]
    jitter: Callable[[], float]
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep


@dataclass(frozen=True, slots=True)
class CallPlan:
    """A call that was allowed: the models to ask in order, the request and its digest, and what it may use."""

    chain: tuple[ServedModel, ...]
    request: ModelRequest
    need: Need
    retry: Retry
    prompt_digest: str

    @property
    def tokens(self) -> int:
        return self.need.input_tokens + self.need.output_tokens


class AnswerBuffer:
    """The current attempt's answer: ``on_part`` gets its parts without secrets; ``most_tokens`` bounds it."""

    def __init__(self, redactor: Redactor, most_tokens: int, on_part: Callable[[StreamPart], None]) -> None:
        self._redactor = redactor
        self._most_chars = most_tokens * CHARS_PER_TOKEN_AT_MOST
        self._on_part = on_part
        self._parts: list[Part] = []
        self.begin()

    def begin(self) -> None:
        """Begin an attempt; the parts of the previous one are dropped."""
        if self._parts:
            self._on_part(AnswerRestarted())
        self._parts = []
        self._filter = SecretFilter(self._redactor)
        self._kind: type[TextDelta | ThoughtDelta] = TextDelta
        self._chars = 0

    @property
    def has_begun(self) -> bool:
        return self._chars > 0 or any(isinstance(part, ToolCall) for part in self._parts)

    def add(self, part: Part) -> bool:
        """Add the next part; gives whether the answer is complete."""
        if isinstance(part, TextDelta | ThoughtDelta):
            if type(part) is not self._kind:
                self._flush()
                self._kind = type(part)
            self._chars += len(part.text)
            self._emit_text(self._filter.take(part.text))
        elif isinstance(part, Finish):
            return self._end(part.reason)
        elif isinstance(part, ToolCall):
            self._flush()
            self._emit(self._cleared(part))
        else:
            self._emit(part)
        return self._chars > self._most_chars and self._end("length")

    def _flush(self) -> None:
        self._emit_text(self._filter.rest())

    def _emit_text(self, text: str) -> None:
        if text:
            self._emit(self._kind(text))

    def _emit(self, part: Part) -> None:
        self._parts.append(part)
        self._on_part(part)

    def _end(self, reason: FinishReason) -> bool:
        self._flush()
        self._emit(Finish(reason))
        return True

    def _cleared(self, call: ToolCall) -> ToolCall:
        masked = self._redactor.masked
        given = None if call.input is None else orjson.loads(self._redactor.masked_bytes(orjson.dumps(call.input)))
        return ToolCall(masked(call.id), masked(call.name), given, None if call.raw is None else masked(call.raw))

    def cost(self, plan: CallPlan, served: ServedModel) -> Cost:
        """What the answer costs: by the provider's own counts and cost, else by our estimate and price."""
        usage = next((part for part in reversed(self._parts) if isinstance(part, Usage)), None)
        if usage is not None:
            prompt, written = (max(0, min(n, MOST_TOKENS)) for n in (usage.input_tokens, usage.output_tokens))
        else:
            answer = added_up(self._parts)
            prompt, written = plan.need.input_tokens, tokens_of(answer.text) + tokens_of(answer.thought)
            written += sum(map(tokens_of_call, answer.tool_calls))
        upstream = None if usage is None else usage.cost_usd
        name, provider, price = served.name, served.model.provider, served.model.price
        if upstream is not None and is_amount(upstream):
            return Cost(name, provider, prompt, written, exact(upstream), "upstream", plan.prompt_digest)
        usd = spend.cost(price, prompt, written)
        return Cost(name, provider, prompt, written, usd, "price" if usd else "zero", plan.prompt_digest)

    def completion(self, cost: Cost) -> Completion:
        return added_up(
            self._parts,
            model=cost.model,
            input_tokens=cost.input_tokens,
            output_tokens=cost.output_tokens,
            cost_usd=cost.cost_usd,
            cost_source=cost.cost_source,
            served_by=cost.provider,
        )


class Attempts:
    """The attempts of one call: ``sent`` counts them, ``ran_us`` is their time without waits for rate and slots."""

    def __init__(self, plan: CallPlan, answer: AnswerBuffer, timing: Timing) -> None:
        self._plan = plan
        self._answer = answer
        self._timing = timing
        self._left_us = int(plan.need.seconds * SECOND_US)
        self.sent = self.ran_us = 0
        self.answering: ServedModel | None = None  # whose answer is in the buffer

    async def answered(self) -> ServedModel:
        """The model that answered; after any failure the next one is asked.

        Raises ``ProviderError`` if none did: the first failure that may be over later, else the last one.
        """
        failures: dict[str, ProviderError] = {}
        for served in self._plan.chain:
            try:
                await self._ask(served)
            except ProviderError as error:
                failures[served.name] = error
            else:
                return served
        last = next(reversed(failures.values()))
        raised = next((error for error in failures.values() if error.may_retry), last)
        raised.message = " ".join([f"{name}: {error.message}" for name, error in failures.items()])
        raise raised

    async def _ask(self, served: ServedModel) -> None:
        wait = served.rate.take(self._plan.tokens, self._timing.now()) / SECOND_US
        if wait > served.model.timeout_s:
            served.rate.give_back(self._plan.tokens)
            message = f"There is room for it in {wait:.0f} s (`rate_limit_tpm`)."
            raise ProviderError("rate_limited", message, wait)
        try:
            if wait:
                await self._timing.sleep(wait)
            async with served.used() as provider:
                await self._retry(served, provider)
        except (ProviderError, asyncio.CancelledError):
            served.rate.give_back(self._plan.tokens)
            raise

    async def _retry(self, served: ServedModel, provider: Provider) -> None:
        began = self._timing.now()
        ends = began + min(self._left_us, int(served.model.timeout_s * SECOND_US))
        try:
            for number in count(1):
                self._answer.begin()
                self.answering = served
                try:
                    return await self._attempt(served, provider, ends)
                except ProviderError as error:
                    wait_s = self._wait_s(number, error)
                    is_over = self._timing.now() + wait_s * SECOND_US >= ends
                    if not error.may_retry or number >= self._plan.retry.attempts or is_over:
                        raise
                await self._timing.sleep(wait_s)
        finally:
            ran = self._timing.now() - began
            self.ran_us += ran
            self._left_us -= ran

    async def _attempt(self, served: ServedModel, provider: Provider, ends: int) -> None:
        seconds = (ends - self._timing.now()) / SECOND_US
        if seconds <= 0:
            raise ProviderError("timeout", "No time was left for it.")
        self.sent += 1
        request = self._plan.request.to(served.model.model, seconds)
        try:
            async with aclosing(provider.stream(request)) as parts, asyncio.timeout(seconds):
                async for part in parts:
                    if self._answer.add(part):
                        return
        except TimeoutError:
            raise ProviderError("timeout", f"It did not answer within {seconds:.4g} s.") from None
        raise ProviderError("malformed", "Its answer has no end.")

    def _wait_s(self, number: int, error: ProviderError) -> float:
        """Exponential backoff with jitter, and not before the provider's ``Retry-After``."""
        retry, jitter = self._plan.retry, self._timing.jitter()
        if error.retry_after_s is not None:
            return error.retry_after_s + retry.base_delay_s * jitter
        grown: float = min(retry.max_delay_s, retry.base_delay_s * 2 ** min(number - 1, 32))
        return grown * (1 + jitter) / 2
