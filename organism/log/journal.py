"""What every engine does alike: take units in, commit them in groups, tell their authors, wake followers."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from itertools import takewhile
from typing import Final

from organism.errors import LogUnavailable, OrganismError
from organism.log.batch import Batch, Intake
from organism.log.log import EventFilter, wants
from organism.log.snapshots import LiveRows
from organism.model.events import Event, Unit
from organism.model.redact import Redactor

Refusal = Callable[[], OrganismError]
"""Makes the error that a refused unit gets."""
EARLY_UNITS: Final = 32
"""So many units do not wait for the end of the loop's iteration: the disk works on them while the rest is made."""
TAIL_BYTES: Final = 1 << 16
"""Who follows reads a commit at once; more would push what is needed out of the processor's cache."""
CATCH_UP_EVENTS: Final = 1000

ReadPast = Callable[[int, int, EventFilter | None, int], Awaitable[list[Event]]]
"""(after, until, wanted, limit) → events, from the disk."""


class Tail:
    """Commits of the last ``TAIL_BYTES``; followers of what is older read it from the disk."""

    __slots__ = ("_bytes", "_commits", "_news", "head", "is_closed")

    def __init__(self, head: int) -> None:
        self.head = head
        self._commits: deque[tuple[list[Event], int]] = deque()
        self._bytes = 0
        self._news = asyncio.Event()
        self.is_closed = False

    def keep(self, events: list[Event], size: int) -> None:
        """A commit is on disk; ``wake`` lets the followers know."""
        self._commits.append((events, size))
        self._bytes += size
        while self._bytes > TAIL_BYTES and len(self._commits) > 1:
            self._bytes -= self._commits.popleft()[1]
        self.head = events[-1].position

    def skip_to(self, head: int) -> None:
        """What lies before ``head`` is on disk but not here."""
        self._commits.clear()
        self._bytes = 0
        self.head = head
        self.wake()

    def wake(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    def close(self) -> None:
        """Every follower ends once it has given what is here."""
        self.is_closed = True
        self.wake()

    async def follow(self, after: int, wanted: EventFilter | None, read: ReadPast) -> AsyncIterator[list[Event]]:
        """Every event after ``after``, once and in order; lists are shared by all followers and must not be changed."""
        is_wanted = None if wanted is None or not (wanted.threads or wanted.types) else wants(wanted)
        position = after
        while True:
            if position >= self.head:
                if self.is_closed:
                    return
                await self._news.wait()
                continue
            commits = self._after(position)
            if commits is None:
                head = self.head
                events = await read(position, head, wanted, CATCH_UP_EVENTS)
                position = events[-1].position if len(events) == CATCH_UP_EVENTS else head
                yield events
                continue
            for events in commits:
                position = events[-1].position
                yield events if is_wanted is None else [event for event in events if is_wanted(event)]

    def _after(self, position: int) -> list[list[Event]] | None:
        """The commits after ``position``, oldest first; None if some of it is not here any more."""
        newest_first = takewhile(lambda events: events[-1].position > position, (c[0] for c in reversed(self._commits)))
        commits = list(newest_first)[::-1]
        if not commits or commits[0][0].position > position + 1:
            return None
        if commits[0][0].position <= position:
            commits[0] = [event for event in commits[0] if event.position > position]
        return commits


class Journal(ABC):
    """The front of a log: ``append`` and what follows from it, in the loop's thread.

    An engine says how a batch is written.
    A commit begins at the end of the loop's iteration after the one in which the first unit was appended, so that it
    has what follows from that at once, or as soon as the one before it has ended; it takes all that was appended until
    then. A commit that takes too long makes the log unavailable until it has ended; what waits for it goes on waiting.
    ``on_lost`` is called with the true head after a failed commit, once the log takes writes again: what was decided on
    top of the failed units has to be decided again.
    """

    def __init__(self, intake: Intake, live: LiveRows, timeline: str, last_at: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._intake = intake
        self._live = live
        self._tail = Tail(intake.last)
        self._timeline = timeline
        self._last_at = last_at
        self._refusal: Refusal | None = None
        self._is_due = False
        self._is_writing = False
        self._drained: asyncio.Future[None] | None = None
        self.on_lost: Callable[[int], None] | None = None
        self.on_stalled: Callable[[], None] | None = None
        self._is_stalled = False

    @property
    def head(self) -> int:
        return self._tail.head

    @property
    def last_at(self) -> int:
        return self._last_at

    @property
    def timeline(self) -> str:
        return self._timeline

    @property
    def available(self) -> bool:
        return self._refusal is None and not self._is_stalled

    def conceal(self, redactor: Redactor) -> None:
        self._intake.redactor = redactor

    def append(self, unit: Unit) -> None:
        """Queue the unit for the next commit; its outcome comes by ``unit.then``.

        Raises ``StalePosition`` (nothing was queued), ``LogUnavailable`` or ``Fenced``.
        """
        if self._refusal is not None:
            raise self._refusal()
        self._intake.take(unit)
        if not self._is_writing:
            if not self._is_due:
                self._is_due = True
                self._loop.call_soon(self._loop.call_soon, self._begin)
            elif len(self._intake.batch.units) >= EARLY_UNITS:
                self._begin()

    async def commit(self, unit: Unit) -> int:
        """``append``, then wait; gives the position of the unit's last event, or raises what ``then`` got."""
        outcome: asyncio.Future[int] = self._loop.create_future()

        def tell(done: Unit, error: Exception | None) -> None:
            if outcome.cancelled():
                return
            if error is None:
                outcome.set_result(done.last)
            else:
                outcome.set_exception(error)

        unit.then = tell
        self.append(unit)
        return await outcome

    @abstractmethod
    def _write(self, batch: Batch) -> None:
        """Begin to write the batch; ``_committed`` or a failure is called in the loop's thread once it is known."""

    def _begin(self) -> None:
        """A commit begins with all that was appended until now, unless one is under way."""
        self._is_due = False
        if self._is_writing:
            return
        if self._refusal is None and self._intake.batch.units:
            self._is_writing = True
            self._write(self._intake.swap())
        elif self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    async def _drain(self) -> None:
        """Return once nothing waits for the disk; nothing more is taken then."""
        while self._is_due or self._is_writing:
            self._drained = self._drained or self._loop.create_future()
            await asyncio.shield(self._drained)
            self._drained = None
        self._refusal = self._refusal or partial(LogUnavailable, "The log is closed.")

    def _committed(self, batch: Batch) -> None:
        """The batch is on disk: what waits goes at once, then everyone hears of this one."""
        self._is_writing = False
        self._begin()
        self._last_at = batch.units[-1].events[-1].at
        events = batch.events()
        self._intake.commit(batch.last)
        self._tail.keep(events, batch.size)
        try:
            _tell(iter(batch.units), None)
        finally:
            self._tail.wake()
            self._live.take(events)  # last: so a fold that raises keeps no one waiting

    def _stall(self) -> None:
        self._is_stalled = True
        if self.on_stalled is not None:
            self.on_stalled()

    def _refuse(self, refusal: Refusal, failed: Batch, error: OrganismError) -> None:
        """No more writes until ``_admit``. The units of ``failed`` hear ``error``, those that wait the refusal."""
        self._refusal = refusal
        waiting = self._intake.swap()
        self._intake.void(waiting, failed)
        self._is_writing = False
        self._begin()
        _tell(iter(failed.units), error)
        _tell(iter(waiting.units), refusal())

    def _admit(self, head: int, last_at: int) -> None:
        """Writes go on after ``head``, the truth that was read from the disk; some of it may be news here."""
        self._last_at = last_at
        self._intake.last = head
        self._intake.commit(head)
        self._tail.skip_to(head)
        self._refusal = None
        if self.on_lost is not None:
            self.on_lost(head)


def _tell(units: Iterator[Unit], error: OrganismError | None) -> None:
    """Call each unit's ``then`` in order. One that raises does not keep the others from being called."""
    try:
        for unit in units:
            if unit.then is not None:
                unit.then(unit, error)
    finally:
        rest = list(units)
        if rest:
            asyncio.get_running_loop().call_soon(_tell, iter(rest), error)
