"""Work that grows no faster than its input: the input is doubled and the runs are compared, on any machine.

What counts is the processor time of this thread, so that a busy machine changes nothing: the shortest of several runs.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

LEAST: Final = 2 << 10
MOST: Final = 1 << 20
_DOUBLINGS: Final = 3
_MOST_RATIO: Final = 8 * 3.0
"""Over three doublings: linear work takes 8 times as long, quadratic work 64 times."""
_FLOOR_SECONDS: Final = 0.002
"""What takes less is taken for so much: it says more of the clock than of the work."""


class Growth:
    """The shortest runs so far, by the size of their input."""

    def __init__(self) -> None:
        self._shortest: dict[int, float] = {}

    def fault(self, size: int, seconds: float) -> str:
        """What is wrong with the growth up to this run; nothing: it is linear. What looks wrong can be run again."""
        self._shortest[size] = min(self._shortest.get(size, seconds), seconds)
        before = size >> _DOUBLINGS
        least = max(self._shortest.get(before, self._shortest[size]), _FLOOR_SECONDS)
        if self._shortest[size] <= least * _MOST_RATIO:
            return ""
        return f"{before} bytes take {least:.4f} s, {size} bytes {self._shortest[size]:.4f} s"


def sizes(most: int = MOST) -> Iterator[int]:
    """Each is double the one before."""
    size = LEAST
    while size <= most:
        yield size
        size *= 2


@contextmanager
def no_collector() -> Iterator[None]:
    """Without Python's collector of cycles, whose runs say more of what else is in memory."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def growth_fault(prepare: Callable[[int], Callable[[], object]], most: int = MOST) -> str:
    """What is wrong with how work grows; nothing: it is linear. ``prepare`` gives the work on an input of a size.

    It ends at the first size that took too long, before quadratic work takes minutes.
    """
    growth = Growth()
    with no_collector():
        for size in sizes(most):
            work = prepare(size)
            faults = [growth.fault(size, _seconds(work)) for _ in range(2)]
            if all(faults) and (fault := growth.fault(size, _seconds(work))):
                return fault
    return ""


def _seconds(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began
