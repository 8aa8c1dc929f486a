"""What wakes the pump and its handlings later: one timer for all that is due, and signals.

Time in which a pause holds something up does not count for it.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from itertools import count
from typing import Final

TICK_SECONDS: Final = 0.05

OnTick = Callable[[int, int], bool]


class Timers:
    """A heap of what is due when (µs of the log's time); it ticks only while something is due or ``on_tick`` asks.

    ``on_tick(now, passed)`` is called after what was due; it says whether it wants another tick.
    """

    __slots__ = ("_heap", "_last", "_now", "_number", "_scheduled", "_stopped", "on_tick")

    def __init__(self, now: Callable[[], int]) -> None:
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._number = count()
        self._now = now
        self._last = 0
        self._scheduled: asyncio.TimerHandle | None = None
        self._stopped = False
        self.on_tick: OnTick = lambda _now, _passed: False

    def add(self, due_us: int, act: Callable[[], None]) -> None:
        """Call ``act`` then; it looks itself whether there is still something to do."""
        heapq.heappush(self._heap, (due_us, next(self._number), act))
        self.ensure_ticking()

    def ensure_ticking(self) -> None:
        """Tick from now on, if it does not yet."""
        if self._scheduled is None and not self._stopped:
            self._last = self._now()
            self._scheduled = asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)

    def _tick(self) -> None:
        self._scheduled = None
        now = self._now()
        passed, self._last = now - self._last, now
        while self._heap and self._heap[0][0] <= now:
            heapq.heappop(self._heap)[2]()
        if (self.on_tick(now, passed) or self._heap) and self._scheduled is None and not self._stopped:
            self._scheduled = asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)

    def stop(self) -> None:
        """Forget everything that is due, and tick no more."""
        self._stopped = True
        self._heap.clear()
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None


class Signal:
    """Those who wait when it is fired are woken, once; nothing is kept for those who come later."""

    __slots__ = ("_waiters",)

    def __init__(self) -> None:
        self._waiters: list[asyncio.Future[None]] = []

    async def wait(self) -> None:
        """Wait for the next time that it is fired."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    def fire(self) -> None:
        """Wake all who wait."""
        if self._waiters:
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)
