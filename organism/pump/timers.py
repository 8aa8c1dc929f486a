"""What is due later: retries, and the ends of asks, approvals and handlings' running time.

One tick for all, and none while nothing is due. Time in which a pause holds something up does not count for it (spec
1.5).
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from itertools import count
from typing import Final, Protocol

from organism.model.thread import Message, Step

TICK_SECONDS: Final = 0.05


class Alarm(Protocol):
    """Who wants to be told when its time has come."""

    def due(self) -> None:
        """It has."""


Due = Message | Step | Alarm


class Timers:
    """A heap of what is due when (µs of the log's time).

    ``on_tick(now, passed, due)`` gets what came due since the last tick.
    """

    __slots__ = ("_heap", "_last", "_now", "_number", "_on_tick", "_scheduled", "_stopped", "is_busy")

    def __init__(
        self, now: Callable[[], int], on_tick: Callable[[int, int, list[Due]], None], is_busy: Callable[[], bool]
    ) -> None:
        self._heap: list[tuple[int, int, Due]] = []
        self._number = count()
        self._now = now
        self._last = 0
        self._on_tick = on_tick
        self._scheduled: asyncio.TimerHandle | None = None
        self._stopped = False
        self.is_busy = is_busy

    def add(self, due_us: int, item: Due) -> None:
        """``item`` is due then; adding it again later is allowed, whoever is told checks whether it still matters."""
        heapq.heappush(self._heap, (due_us, next(self._number), item))
        self.ensure()

    @property
    def is_ticking(self) -> bool:
        """Whether a tick is to come."""
        return self._scheduled is not None

    def ensure(self) -> None:
        """Tick from now on, if it does not yet."""
        if self._scheduled is None and not self._stopped:
            self._last = self._now()
            self._scheduled = asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)

    def _tick(self) -> None:
        self._scheduled = None
        now = self._now()
        due: list[Due] = []
        while self._heap and self._heap[0][0] <= now:
            due.append(heapq.heappop(self._heap)[2])
        passed, self._last = now - self._last, now
        self._on_tick(now, passed, due)
        if (self._heap or self.is_busy()) and self._scheduled is None and not self._stopped:
            self._scheduled = asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)

    def clear(self) -> None:
        """Forget everything that is due."""
        self._heap.clear()

    def stop(self) -> None:
        """Tick no more."""
        self._stopped = True
        self.clear()
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None
