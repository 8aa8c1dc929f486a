"""The writer of decisions: appends each to the log as one unit, and acts on it once it is on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from organism.errors import LogUnavailable, OrganismError
from organism.events.record import Unit
from organism.log.log import EventLog
from organism.pump.decide.decision import Decision, OnWritten
from organism.pump.state import FoldedState, State
from organism.views.views import ViewStore


class Wakeup(asyncio.Event):
    """Wakes all current waiters each time it is fired; a later waiter waits for the next time."""

    def fire(self) -> None:
        """Wake all waiters."""
        self.set()
        self.clear()


class Callbacks(NamedTuple):
    """What a writer calls: ``on_made`` may add to a decision before it is written, ``on_disk`` acts on it afterwards.

    ``on_broken``: state and log may differ, so the state is to be folded again.
    """

    on_made: Callable[[Decision], None]
    on_disk: Callable[[Decision], None]
    on_broken: Callable[[BaseException], None]


class Writer:
    """Writes decisions."""

    def __init__(self, log: EventLog, views: ViewStore, state: State, callbacks: Callbacks) -> None:
        self.log, self.views = log, views
        self.state = state
        self._on_made, self._on_disk, self.on_broken = callbacks
        self.is_over = False
        self._loop = asyncio.get_running_loop()
        self._written = self._settled = 0
        self._settles = Wakeup()

    def write(self, decision: Decision, on_written: OnWritten | None = None) -> None:
        """Complete the decision and append it; ``on_written`` is called once it is on disk."""
        decision.on_written = on_written
        decision.then = self._then
        decision.close_asks()
        if decision.thread is not None:
            decision.end_thread(decision.thread)
        self._on_made(decision)
        decision.close()
        if not decision.records:
            self._on_disk(decision)
            return
        try:
            if self.is_over:  # its state was discarded: another one is folded from the log
                raise LogUnavailable
            self.log.append(decision)
        except (OrganismError, TypeError, ValueError) as error:  # the latter two: a handler gave what is not JSON
            self._lost(decision, error)
            return
        self._written += 1
        _note_heads(decision, self.state.folded)

    async def commit(self, decision: Decision) -> Decision:
        """``write``, then wait until it is on disk. Cancelling the wait does not undo the unit."""
        done: asyncio.Future[Decision] = self._loop.create_future()
        self.write(decision, partial(_settle, done))
        return await done

    @property
    def pending(self) -> int:
        """How many written units are neither on disk nor lost yet."""
        return self._written - self._settled

    async def settled(self) -> None:
        """Wait until every decision made so far is on disk or lost."""
        written = self._written
        while self._settled < written:
            await self._settles.wait()

    def _then(self, unit: Unit, error: Exception | None) -> None:
        assert isinstance(unit, Decision)  # noqa: S101 - the pump appends no other; narrows the type
        self._settled += 1
        self._settles.fire()
        if error is None:
            try:
                self._on_disk(unit)
            except Exception as fault:  # noqa: BLE001 - a fault of the pump itself: its state is folded again
                self._lost(unit, fault)
        else:
            self._lost(unit, error)

    def _lost(self, unit: Decision, error: Exception) -> None:
        self.on_broken(error)
        unit.failed = error
        if unit.on_written is not None:
            unit.on_written(unit)


def _note_heads(decision: Decision, folded: FoldedState) -> None:
    """Note the new last position of each active thread, and of each session with open turns."""
    stream_id, stream = None, None
    for record in decision.records:
        if record.thread is not stream_id:
            stream_id = record.thread
            stream = folded.stream(stream_id) if stream_id is not None else None
        if stream is not None:
            stream.head = record.position


def _settle(done: asyncio.Future[Decision], unit: Decision) -> None:
    """Break the cycle of unit and future, which each injection would otherwise leave to the garbage collector."""
    unit.on_written = None
    if done.done():
        return
    if unit.failed is None:
        done.set_result(unit)
    else:
        done.set_exception(unit.failed)
