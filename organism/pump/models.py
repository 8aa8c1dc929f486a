"""The port by which the pump calls models; the gateway of ``organism/agents`` implements it.

A model call is two decisions with the call between them. The first reserves what the call may cost at most, in the unit
that begins its step; the second settles what it did cost, in the unit that records its step. So what is spent is never
known later than what was answered, and a call that dies in between is found by its reservation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

from organism.config.settings import Listener
from organism.model.completion import ChatMessage, CompleteOptions, Completion, CostSource, Part
from organism.model.thread import Message
from organism.pump.decision import Decision


@dataclass(slots=True)
class ModelCall:
    """One ``complete`` of a handling: step ``step`` of ``message``, for ``listener`` under the rules it began with.

    ``plan`` is what the implementation of ``Models`` prepared when the call was reserved.
    """

    message: Message
    listener: Listener
    step: int
    messages: Sequence[ChatMessage]
    options: CompleteOptions
    plan: Any = None

    @property
    def key(self) -> str:
        """The name of its reservation; the same after a restart."""
        return f"{self.message.id}/{self.step}"


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
    """How a call ended: the ``completion``, or the error that it is recorded as. ``attempts`` counts what was sent.

    Without ``cost`` nothing was spent.
    """

    completion: Completion | None
    error: dict[str, str] | None
    attempts: int
    duration_us: int
    cost: Cost | None = None


@dataclass(frozen=True, slots=True)
class Anew:
    """An attempt failed after some of its parts were given: the answer begins again with the parts that follow."""


Told = Part | Anew
"""What is heard of a call while it runs."""


class Models(Protocol):
    """Calls models. ``reserve`` decides and never waits; ``call`` waits and decides nothing."""

    def reserve(self, decision: Decision, call: ModelCall) -> None:
        """Add ``budget_reserved`` to the decision that begins the step.

        Raises ``CompleteError`` if the call is refused (allow-list, depth, rate, budget, leak); nothing was added then.
        """

    async def call(self, call: ModelCall, tell: Callable[[Told], None]) -> Outcome:
        """Make the call, with its retries and fallbacks; ``tell`` hears its parts as they come, in the loop's thread.

        What it hears is shown to people at once: it went through the leak check. Raises nothing but ``CancelledError``.
        """
