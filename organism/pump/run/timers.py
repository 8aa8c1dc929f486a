"""Timers: act when something is due. What is due when is in the folded state, so that a restart finds it again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from organism.events.entity import Entity
from organism.events.vocabulary import StepError
from organism.pump.decide import gates
from organism.pump.routing import RETRY, Due
from organism.pump.run.mailboxes import Mailboxes
from organism.pump.writer import Writer

TICK_SECONDS: Final = 0.05
TIMED_OUT: Final = StepError("timeout", "There was no answer in time.")

OnTick = Callable[[int, int], bool]


class Timers(Entity):
    """Looks at each tick what is due. It ticks while something will be, or ``on_tick(now, passed)`` wants it (µs)."""

    _writer: Writer
    _mailboxes: Mailboxes
    _on_tick: OnTick
    _last: int = 0
    _scheduled: asyncio.TimerHandle | None = None
    _is_stopped: bool = False

    def ensure_ticking(self) -> None:
        """Tick from now on, if it does not yet."""
        if self._scheduled is None and not self._is_stopped:
            self._last = self._writer.state.now()
            self._schedule()

    def _schedule(self) -> None:
        self._scheduled = asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)

    def _tick(self) -> None:
        self._scheduled = None
        state = self._writer.state
        now = state.now()
        passed, self._last = now - self._last, now
        while (due := state.routing.next_due(now)) is not None:
            self._act(due)
        if (self._on_tick(now, passed) or state.routing.due) and self._scheduled is None and not self._is_stopped:
            self._schedule()

    def _act(self, due: Due) -> None:
        """Start the message again, or end the ask or approval that nobody has answered."""
        state = self._writer.state
        message = state.routing.messages[due.message]
        decision = state.decide(message.thread, message)
        if due.step == RETRY:
            self._mailboxes.wake(message.id)
        else:
            step = state.routing.step(due.message, due.step)
            assert step is not None  # noqa: S101 - it is due; narrows the type
            if step.kind == "approve":
                gates.expire(decision, step)
            else:
                decision.record(step, TIMED_OUT)
        self._writer.write(decision)

    def stop(self) -> None:
        """Tick no more."""
        self._is_stopped = True
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None
