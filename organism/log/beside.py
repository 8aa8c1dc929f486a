"""A connection of the loop's own thread, for reads that are over before another thread would have woken up.

A read in another thread waits for that thread, then for the interpreter's lock, then for the loop: with a busy loop
that is milliseconds, and a page of fifty rows takes a tenth of one. Nobody knows beforehand what a read takes, so it is
begun here and broken off when its time is over; another thread then does it again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, TypeVar

from organism.log.connect import Connector
from organism.log.driver import Connection

T = TypeVar("T")
QUICK_SECONDS: Final = 0.002
"""So much of the processor's time may a read in the loop's thread take."""
WAIT_SECONDS: Final = 0.01
"""So long may it take in all: it may have to wait for the disk, or for the interpreter's lock."""
LOOK_STEPS: Final = 1000
"""So many steps of a statement, some ten microseconds, are taken between two looks at the clock."""
NEVER: Final = float("inf")


class TakesTime(Exception):
    """A read was broken off: it is not one for the loop's thread."""


class Beside:
    """Opened when it is first needed; everything is done at once."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._connection: Connection | None = None
        self._work_end = self._end = NEVER
        self._is_late = False

    def near(self, work: Callable[..., T], *arguments: Any) -> T:
        """``work(connection, *arguments)``, however long it takes: for the few rows that a decision needs."""
        try:
            return work(self._opened(), *arguments)
        except self._connector.driver.errors as error:
            if self._is_late:
                raise TakesTime from error
            raise self._connector.explain(error) from error

    def quick(self, work: Callable[..., T], *arguments: Any) -> T:
        """The same. Raises ``TakesTime`` if it is not over soon."""
        self._work_end, self._end = time.thread_time() + QUICK_SECONDS, time.monotonic() + WAIT_SECONDS
        try:
            return self.near(work, *arguments)
        finally:
            self._work_end = self._end = NEVER
            self._is_late = False

    def close(self) -> None:
        """Close the connection; the next read opens another one."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _opened(self) -> Connection:
        if self._connection is None:
            self._connection = self._connector.to_read()
            self._connection.set_progress_handler(self._look, LOOK_STEPS)
        return self._connection

    def _look(self) -> bool:
        """Whether to break off what runs."""
        self._is_late = time.thread_time() > self._work_end or time.monotonic() > self._end
        return self._is_late
