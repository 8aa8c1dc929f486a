"""The figures of a row from those of its rounds: pure functions, tested in tests/bench."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

THOUSAND = 1000
WAITED_SHARE, OTHERS_SHARE = 0.2, 0.1
"""A side that waited for a core for a larger part of a round, while others used more of the cores than this, was not
measured as it is: the round is marked. What waits for its own processes alone is measured as it is."""
QUIET_ROUNDS = 3
"""So many rounds without a mark have a median of their own."""


class Better(Enum):
    """Which way a figure is better."""

    HIGHER = "≥"
    LOWER = "≤"


class Verdict(Enum):
    """How a figure stands to its bounds."""

    AIM = "aim met"
    MUST = "must met"
    MISSED = "MISSED"
    SHOWN = "no bound"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a figure must reach and what it aims at; a row without them is shown for comparison only."""

    must: float
    aim: float
    better: Better = Better.HIGHER


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of some rounds, with the lowest and the highest of them."""

    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """Raises ``ValueError`` for no values: a row without a round has no figure."""
    if not values:
        raise ValueError("Expected at least one round, got none.")
    return Spread(statistics.median(values), min(values), max(values))


def ratios(tops: Sequence[float], unders: Sequence[float]) -> list[float]:
    """Each round's figure over that of its own partner, never over another round's: both saw the same machine."""
    return [top / under for top, under in zip(tops, unders, strict=True)]


def was_busy(waited: float, others: float) -> bool:
    """Whether a round is marked, by the shares of a side."""
    return waited > WAITED_SHARE and others > OTHERS_SHARE


def counting(marks: Sequence[bool]) -> Sequence[int] | None:
    """Which rounds count, by their numbers; None if the machine was too busy for a figure.

    ``marks`` says of each round whether it is marked. If some are, the others must be ``QUIET_ROUNDS`` at least.
    """
    quiet = [number for number, is_marked in enumerate(marks) if not is_marked]
    return quiet if len(quiet) >= min(QUIET_ROUNDS, len(marks)) else None


def verdict(value: float, bounds: Bounds | None) -> Verdict:
    """A figure that equals its bound has met it."""
    if bounds is None:
        return Verdict.SHOWN
    if reaches(value, bounds.aim, bounds.better):
        return Verdict.AIM
    return Verdict.MUST if reaches(value, bounds.must, bounds.better) else Verdict.MISSED


def reaches(value: float, bound: float, better: Better) -> bool:
    return value >= bound if better is Better.HIGHER else value <= bound


def short(value: float) -> str:
    """Three significant digits, thousands with a comma: ``0.203``, ``14.5``, ``21,300``."""
    if value == 0:
        return "0"
    if abs(value) < THOUSAND:
        return f"{value:.3g}"
    digits = len(str(int(abs(value))))
    return f"{round(value, 3 - digits):,.0f}"
