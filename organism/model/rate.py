"""Rates: how much may be used within a time, and how much of that at once."""

from __future__ import annotations


class TokenBucket:
    """``count`` tokens, refilled evenly within ``refill_us``; without a rate, no wait. Times are monotonic, in µs."""

    __slots__ = ("_at", "_left", "_refill_us", "count")

    def __init__(self, count: int, refill_us: int) -> None:
        self.count = count
        self._refill_us = refill_us
        self._left = float(count)
        self._at = 0

    def resize(self, count: int) -> None:
        """Change the rate; tokens that were taken stay taken."""
        self._left += count - self.count
        self.count = count

    def wait_us(self, tokens: int, now: int) -> int:
        """How long until so many can be taken, or all if there are never so many."""
        if not self.count:
            return 0
        missing = min(tokens, self.count) - self.left(now)
        return max(0, int(missing * self._refill_us / self.count))

    def take(self, tokens: int, now: int) -> int:
        """Take tokens; gives how long to wait before using them. Later callers wait longer."""
        wait = self.wait_us(tokens, now)
        self._left = self.left(now) - tokens
        self._at = max(self._at, now)
        return wait

    def give_back(self, tokens: int) -> None:
        """Return tokens that were not used."""
        self._left = min(self.count, self._left + tokens)

    def left(self, now: int) -> float:
        filled = self._left + max(0, now - self._at) * self.count / self._refill_us
        return min(self.count, filled)
