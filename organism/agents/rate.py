"""Rate: how many tokens a minute go to one model. A minute's worth may come at once, what is beyond that waits."""

from __future__ import annotations

from typing import Final

MINUTE_US: Final = 60_000_000


class Rate:
    """A bucket that holds the tokens of one minute and fills as time goes by; with ``per_minute`` 0 nothing waits.

    Times are in µs of a clock that does not go back. A call that is larger than the bucket passes when it is full.
    """

    __slots__ = ("_at", "_left", "per_minute")

    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute
        self._left = float(per_minute)
        self._at = 0

    def resize(self, per_minute: int) -> None:
        """So many from now on; what was taken stays taken."""
        self._left += per_minute - self.per_minute
        self.per_minute = per_minute

    def wait_us(self, tokens: int, now: int) -> int:
        """How long so many tokens would have to wait."""
        if not self.per_minute:
            return 0
        missing = min(tokens, self.per_minute) - self._left_at(now)
        return max(0, int(missing * MINUTE_US / self.per_minute))

    def take(self, tokens: int, now: int) -> int:
        """Take them; gives how long to wait before they are used. Whoever comes later waits longer."""
        wait = self.wait_us(tokens, now)
        self._left = self._left_at(now) - tokens
        self._at = max(self._at, now)
        return wait

    def give_back(self, tokens: int) -> None:
        """So many of those that were taken were not used."""
        self._left = min(self.per_minute, self._left + tokens)

    def _left_at(self, now: int) -> float:
        filled = self._left + max(0, now - self._at) * self.per_minute / MINUTE_US
        return min(self.per_minute, filled)
