"""What follows a commit that failed (L8)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from organism.errors import CommitUnknown, Fenced, LogDamaged, LogUnavailable, OrganismError
from organism.log.disk import Disk, LastCommit, Memory
from organism.sqlite.driver import Failure

Refusal = Callable[[], OrganismError]  # Makes the error of a refused unit
FIRST_RETRY_SECONDS: Final = 0.1
LAST_RETRY_SECONDS: Final = 5.0


class Recovery:
    """Refuses writes from a failed commit on, until it is known what is on the disk.

    The units of that commit get ``CommitUnknown``: they may be on the disk or not. The writing connection is opened
    again, the WAL moved into the database, and the tail verified against the last acknowledged commit. Unless the disk
    was only full or busy, every other connection is closed meanwhile and reads wait: after a failed fsync no cache can
    be trusted. An attempt that fails is repeated after a growing delay. Then ``begin`` folds what is on the disk,
    writes go on, and ``resume`` gets the head. A log that lost acknowledged units, or that another process took over,
    stays closed.
    """

    def __init__(
        self, store: Disk | Memory, begin: Callable[[LastCommit], Awaitable[None]], resume: Callable[[int], None]
    ) -> None:
        self.refusal: Refusal | None = None
        self._store = store
        self._begin = begin
        self._resume = resume
        self._task: asyncio.Task[None] | None = None

    def start(self, error: Exception) -> OrganismError:
        """A commit failed: refuse all others. Returns the error for its units."""
        if self._store.failure(error) is Failure.FENCED:
            self.refusal = Fenced
            return Fenced()
        reason = self._store.describe(error)
        self.refusal = partial(LogUnavailable, f"The log takes no writes now: {reason}.")
        if self._task is None or self._task.done():  # a checkpoint and a commit may fail together
            self._task = asyncio.get_running_loop().create_task(self._recover(error))
        unknown = CommitUnknown(f"{CommitUnknown()} The reason: {reason}.")
        unknown.__cause__ = error
        return unknown

    async def ended(self) -> None:
        """Wait until the attempts have ended."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def stop(self) -> None:
        """Give up."""
        if self._task is not None:
            self._task.cancel()
            await self.ended()

    async def _recover(self, error: Exception) -> None:
        delay = FIRST_RETRY_SECONDS
        while True:
            try:
                last = await self._store.read_again(entirely=self._store.failure(error) is Failure.BROKEN)
                await self._begin(last)
            except self._store.passing as again:
                error = again
                await asyncio.sleep(delay)
                delay = min(2 * delay, LAST_RETRY_SECONDS)
            except (Fenced, LogDamaged) as final:
                self.refusal = partial(type(final), self._store.describe(final))
                return
            else:
                self.refusal = None
                self._resume(last.head.position)
                return
