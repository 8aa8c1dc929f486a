"""Work that grows no faster than its input: the input is doubled and the runs are compared, on any machine.

What counts is the processor time of this thread, so that a busy machine changes nothing: the shortest of several runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

LEAST: Final = 2 << 10
MOST: Final = 1 << 20
_WINDOW: Final = 3
_MOST_RATIO: Final = 8 * 3.0
"""Over three doublings: linear work takes 8 times as long, quadratic work 64 times."""
_FLOOR_SECONDS: Final = 0.002
"""What takes less is taken for so much: it says more of the clock than of the work."""
_LONG_SECONDS: Final = 0.02
"""What takes so long is measured once: it says enough."""


class Growth:
    """The runs so far, of an input that was doubled from each to the next."""

    def __init__(self) -> None:
        self._taken: list[float] = []

    def fault(self, size: int, seconds: float) -> str:
        """What is wrong with the growth up to this run; nothing: it is linear."""
        taken = self._taken
        taken.append(max(seconds, _FLOOR_SECONDS))
        if len(taken) <= _WINDOW or taken[-1] <= taken[-1 - _WINDOW] * _MOST_RATIO:
            return ""
        return f"{size >> _WINDOW} bytes take {taken[-1 - _WINDOW]:.4f} s, {size} bytes {taken[-1]:.4f} s"


def sizes(most: int = MOST) -> Iterator[int]:
    """Each is double the one before."""
    size = LEAST
    while size <= most:
        yield size
        size *= 2


def growth_fault(prepare: Callable[[int], Callable[[], object]], most: int = MOST) -> str:
    """What is wrong with how work grows; nothing: it is linear. ``prepare`` gives the work on an input of a size.

    It ends at the first window of sizes that grows too fast, before quadratic work takes minutes.
    """
    growth = Growth()
    found = (growth.fault(size, _shortest(prepare(size))) for size in sizes(most))
    return next(filter(None, found), "")


def _shortest(work: Callable[[], object]) -> float:
    least = float("inf")
    for _ in range(3):
        began = time.thread_time()
        work()
        least = min(least, time.thread_time() - began)
        if least > _LONG_SECONDS:
            break
    return least
