"""The log's clock, and the text forms of times. Internally a time is an int: UTC in µs since 1970."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache


def iso(at: int) -> str:
    """``at`` (µs since 1970, not negative) as ISO 8601 in UTC with six digits: ``2026-01-11T22:47:57.000042Z``.

    Such texts sort like their times.
    """
    return f"{_second(at // 1_000_000)}.{at % 1_000_000:06d}Z"


def milliseconds(us: int) -> float:
    """A duration in µs as the API says it."""
    return us / 1000


def spoken(at: int) -> str:
    """``at`` (µs since 1970) for error texts: ``2026-01-11 22:47:57 UTC``."""
    return f"{datetime.fromtimestamp(at // 1_000_000, UTC):%Y-%m-%d %H:%M:%S} UTC"


@lru_cache(maxsize=16)
def _second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


class LogClock:
    """The log's time, one clock for all parts (G14).

    It begins at the last event's time, runs with the monotonic clock, and jumps forward to the wall clock, never back.
    """

    __slots__ = ("_ahead", "_last", "_monotonic_ns", "_wall_ns")

    def __init__(self, wall_ns: Callable[[], int], monotonic_ns: Callable[[], int], begins_at_us: int = 0) -> None:
        self._wall_ns = wall_ns
        self._monotonic_ns = monotonic_ns
        self._last = begins_at_us
        self._ahead = begins_at_us * 1000 - monotonic_ns()

    def begin_at(self, at_us: int) -> None:
        """Continue from ``at_us``, where the log ends."""
        self._last = max(self._last, at_us)
        self._ahead = max(self._ahead, at_us * 1000 - self._monotonic_ns())

    def now_us(self) -> int:
        """The log's time in µs since 1970, UTC; it never decreases."""
        monotonic = self._monotonic_ns()
        ahead = self._wall_ns() - monotonic
        if ahead > self._ahead:  # noqa: PLR1730 - each decision asks, and a call of max() costs as much as the rest
            self._ahead = ahead
        now = (monotonic + self._ahead) // 1000
        if now > self._last:  # noqa: PLR1730 - as above
            self._last = now
        return self._last
