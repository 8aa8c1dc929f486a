"""The watchdog: a handler that blocks the loop without saying so is reported within a second, with its lines (G7)."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

import structlog

from organism.config.tracebacks import lines_of_frame, text_of
from organism.events import vocabulary as events
from organism.pump.decide.decision import Decision
from organism.pump.writer import Writer

BLOCKED_SECONDS: Final = 0.7
CHECK_SECONDS: Final = 0.2
IDLE: Final = ("/asyncio/runners.py", "/selectors.py")
"""Where an idle loop is: then nothing blocks it, but the machine gives it no time."""


class Watchdog:
    """Checks from its own thread that the loop turns. A blocked loop's stack goes to both logs."""

    def __init__(self, writable: Callable[[], Writer | None], blocked_seconds: float) -> None:
        """``writable`` gives the tenant's writer if it takes an event now, or None.

        A loop that has not turned for ``blocked_seconds`` is blocked.
        """
        self._writable = writable
        self._blocked_seconds = blocked_seconds
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._turned = time.monotonic()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self._logger = structlog.get_logger("organism")

    def start(self) -> None:
        """Watch from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Watch no more."""
        self._stopped.set()

    def _watch(self) -> None:
        reported = False
        self._ask()
        asked_at = time.monotonic()
        while not self._stopped.wait(CHECK_SECONDS):
            if self._turned >= asked_at:
                reported = False
                asked_at = time.monotonic()
                self._ask()
            elif not reported and time.monotonic() - asked_at > self._blocked_seconds:
                reported = self._report(asked_at)

    def _ask(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._answer)

    def _answer(self) -> None:
        self._turned = time.monotonic()

    def _report(self, since: float) -> bool:
        frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001 - the only way to see another thread's stack
        if frame is None or frame.f_code.co_filename.endswith(IDLE):
            return False
        writer = self._writable()
        modules = writer.state.rules.settings.modules if writer is not None else None
        stack = text_of(lines_of_frame(frame, modules))
        self._logger.error("loop_blocked", seconds=round(time.monotonic() - since, 1), traceback=stack)
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._record, since, stack)
        return True

    def _record(self, since: float, stack: str) -> None:
        writer = self._writable()
        if writer is None:
            return
        decision = Decision.on(writer.state, None)
        decision.add(events.LoopBlocked(int((time.monotonic() - since) * 1_000_000), stack))
        writer.write(decision)
