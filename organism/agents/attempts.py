"""The attempts of one call: retries while they may help, then the model's fallbacks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from typing import Final

from organism.agents.answer_buffer import AnswerBuffer
from organism.agents.provider import Provider, ProviderError
from organism.agents.roster import Served
from organism.config.settings import Retry
from organism.model.completion import ModelRequest, Part
from organism.pump.spend import Need

SECOND_US: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Pace:
    """Injected time and randomness: ``now`` in µs of a monotonic clock, ``chance`` in [0, 1)."""

    now: Callable[[], int]
    chance: Callable[[], float]
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep


@dataclass(frozen=True, slots=True)
class Plan:
    """A call that was allowed: the models to ask in turn, the request, and what it may use."""

    chain: tuple[Served, ...]
    request: ModelRequest
    need: Need
    retry: Retry
    prompt: str


class TooMany(ProviderError):
    """The configured rate of tokens leaves no room before the call's time is over."""


class Attempts:
    """The attempts of one call: ``sent`` counts them, ``ran_us`` is their time without waiting for a turn.

    ``answering`` is the model whose answer is in the buffer.
    """

    def __init__(self, plan: Plan, answer: AnswerBuffer, pace: Pace) -> None:
        self._plan = plan
        self._answer = answer
        self._pace = pace
        self._left_us = int(plan.need.seconds * SECOND_US)
        self.sent = self.ran_us = 0
        self.answering: Served | None = None

    async def answered(self) -> Served:
        """The model that answered; its answer is in the buffer. Raises ``ProviderError`` if none did.

        The next model is asked after any failure: it may have credit, its package, a larger context.
        """
        failures: list[str] = []
        for served in self._plan.chain:
            try:
                await self._ask(served)
            except ProviderError as error:
                failures.append(f"{served.name}: {error.message}")
                if served is self._plan.chain[-1]:
                    error.message = " ".join(failures)
                    raise
            else:
                return served
        raise ProviderError("unavailable", "There is no model to ask.")

    async def _ask(self, served: Served) -> None:
        tokens = self._plan.need.input_tokens + self._plan.need.output_tokens
        wait = served.rate.take(tokens, self._pace.now()) / SECOND_US
        try:
            if wait > served.model.timeout_s:
                raise TooMany("rate_limited", f"There is room for it in {wait:.0f} s (`rate_limit_tpm`).")
            if wait:
                await self._pace.sleep(wait)
            async with served.used() as provider:
                await self._ask_in_turn(served, provider)
        except (ProviderError, asyncio.CancelledError):
            served.rate.give_back(tokens)
            raise

    async def _ask_in_turn(self, served: Served, provider: Provider) -> None:
        began = self._pace.now()
        ends = began + min(self._left_us, int(served.model.timeout_s * SECOND_US))
        try:
            await self._try(served, provider, ends)
        finally:
            ran = self._pace.now() - began
            self.ran_us += ran
            self._left_us -= ran

    async def _try(self, served: Served, provider: Provider, ends: int) -> None:
        for number in count(1):
            self._answer.begin()
            self.answering = served
            try:
                await self._once(served, provider, ends)
                return
            except ProviderError as error:
                wait_s = self._wait_s(number, error)
                is_over = self._pace.now() + wait_s * SECOND_US >= ends
                if not error.may_retry or number >= self._plan.retry.attempts or is_over:
                    raise
            await self._pace.sleep(wait_s)

    async def _once(self, served: Served, provider: Provider, ends: int) -> None:
        seconds = (ends - self._pace.now()) / SECOND_US
        if seconds <= 0:
            raise ProviderError("timeout", "No time was left for it.")
        self.sent += 1
        parts = provider.stream(self._plan.request.to(served.model.model, seconds))
        try:
            async with asyncio.timeout(seconds):
                await self._receive(parts)
        except TimeoutError:
            raise ProviderError("timeout", f"It did not answer within {seconds:.4g} s.") from None
        finally:
            if isinstance(parts, AsyncGenerator):
                await parts.aclose()

    async def _receive(self, parts: AsyncIterator[Part]) -> None:
        async for part in parts:
            if self._answer.add(part):
                return
        raise ProviderError("malformed", "Its answer has no end.")

    def _wait_s(self, number: int, error: ProviderError) -> float:
        """Exponential backoff with jitter, and not before the provider's ``Retry-After``."""
        retry, chance = self._plan.retry, self._pace.chance()
        grown: float = min(retry.max_delay_s, retry.base_delay_s * 2 ** min(number - 1, 32))
        if error.retry_after_s is not None:
            return error.retry_after_s + retry.base_delay_s * chance
        return grown * (1 + chance) / 2
