"""What a call of a model is, what is heard of it, and how it ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from organism.config.settings import Listener
from organism.events.vocabulary import StepError
from organism.model.completion import ChatMessage, CompleteOptions, Completion, CostSource, Part
from organism.model.thread import Message


@dataclass(slots=True)
class ModelCall:
    """One ``complete``: step ``step`` of ``message``. ``plan`` is what ``Models.reserve`` has prepared."""

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
    """How a call ended: by a completion or an error, after ``attempts``. Without ``cost`` nothing was spent."""

    completion: Completion | None
    error: StepError | None
    attempts: int
    duration_us: int
    cost: Cost | None = None


@dataclass(frozen=True, slots=True)
class Anew:
    """An attempt failed after some of its parts were given: the answer begins again with the parts that follow."""


Told = Part | Anew
"""What is heard of a call while it runs."""
