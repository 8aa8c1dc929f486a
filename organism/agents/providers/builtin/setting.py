"""What a plan of calls is made of, and what it rests on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from organism.agents.providers.builtin.asking import Asked, Clause
from organism.agents.providers.builtin.clockwork import ClockQuestion
from organism.agents.providers.builtin.offers import Offer
from organism.agents.providers.builtin.sum_tree import Sum
from organism.agents.providers.builtin.words import Language


@dataclass(frozen=True, slots=True)
class Planned:
    """A call to make, and why: for which clause, for which sum and how it was said, or which question of the clock."""

    offer: Offer
    arguments: dict[str, Any]
    clause: Clause
    sum: Sum | None = None
    said: str = ""
    clock: ClockQuestion | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """What a plan rests on besides the message.

    ``offers`` are the tools that may be called, ``system`` the instructions, ``earlier`` the message before it.
    ``is_known`` tells whether the talk itself answers a question.
    """

    offers: Sequence[Offer]
    language: Language | None
    system: str
    earlier: Asked | None
    is_known: Callable[[Clause], bool]
