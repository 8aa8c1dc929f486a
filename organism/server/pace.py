"""At most so many in so many seconds: a window that slides, so that no moment allows twice as many."""

from __future__ import annotations

from collections import deque


class Window:
    """Remembers when the last ``count`` were. Times are in seconds, of any clock that does not go back."""

    __slots__ = ("_seconds", "_times", "count")

    def __init__(self, count: int, seconds: float) -> None:
        self.count = count
        self._seconds = seconds
        self._times: deque[float] = deque(maxlen=count)

    def wait(self, now: float) -> float:
        """In how many seconds there is room for another one; 0 if there is now."""
        if len(self._times) < self.count:
            return 0.0
        return max(0.0, self._times[0] + self._seconds - now)

    def note(self, now: float) -> None:
        """There was one."""
        self._times.append(now)
