"""The projector: a process beside this one that folds the log into rows while there is much to fold.

Rows cost the loop a quarter of its time under load, and nobody may read them before the next ones are written. Another
process reads what was committed from the log's file and writes the rows, on another core and without this interpreter's
lock; here only what is asked for is folded. Its protocol stands in ``projection.py``.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson

ROOT: Final = Path(__file__).parents[2]
"""Where the package lies."""
KEPT_VARIABLES: Final = ("PATH", "LD_LIBRARY_PATH", "HOME", "LANG", "TZ")
"""What of the environment it gets: keys and tokens are none of its business."""
END_SECONDS: Final = 2.0
"""So long it may take to end what it is at."""
PAUSE_SECONDS: Final = 10.0
"""So long after one has ended there is none."""


@dataclass(frozen=True, slots=True)
class Reached:
    """The rows up to ``position`` are written; ``greatest`` is the greatest key of each model."""

    position: int
    greatest: Mapping[str, str]


Done = Callable[[Reached | None], None]
"""Told how far the rows have come; None: it is gone, and nobody knows what became of them."""


class Projector:
    """At most one process at a time, hired when it is needed. ``arguments`` are those of ``projection.py``."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._arguments = arguments
        self._loop = asyncio.get_running_loop()
        self._process: Process | None = None
        self._working: asyncio.Task[None] | None = None
        self._done: Done | None = None
        self._rests_until = 0.0
        self._is_leaving = False
        self.is_ready = False

    def hire(self) -> None:
        """Have a process begun, unless there is one or the last one has just ended."""
        if self._working is None and self._loop.time() >= self._rests_until:
            self._working = self._loop.create_task(self._work())

    def project(self, head: int, done: Done) -> None:
        """Have the rows written up to ``head``. It has to be ready, and one wish at a time."""
        self._done = done
        if self._process is None or self._process.stdin is None:
            return
        try:
            self._process.stdin.write(b"%d\n" % head)
        except (RuntimeError, OSError):  # it is about to be known that it is gone
            with suppress(ProcessLookupError):
                self._process.kill()

    async def dismiss(self) -> None:
        """Let it end what it is at; return once it is gone, and who waits was told."""
        working = self._working
        if working is None:
            return
        self.is_ready, self._is_leaving = False, True
        self._let_end()
        await asyncio.wait([working], timeout=END_SECONDS)
        if not working.done() and self._process is not None:
            self._process.kill()
        await asyncio.wait([working])
        self._is_leaving = False

    async def _work(self) -> None:
        try:
            await self._converse()
        finally:
            self.is_ready = False
            self._process = self._working = None
            self._rests_until = self._loop.time() + PAUSE_SECONDS
            self._tell(None)

    async def _converse(self) -> None:
        try:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "organism.log.projection", *self._arguments),
                stdin=PIPE,
                stdout=PIPE,
                env=_environment(),
            )
        except OSError:
            return  # no process can be had, which is what the pause is for
        self._process = process
        if self._is_leaving:
            self._let_end()
        if process.stdout is not None:
            async for line in process.stdout:
                said = orjson.loads(line)
                self.is_ready = not self._is_leaving
                self._tell(Reached(said["position"], said["greatest"]))
        await process.wait()

    def _let_end(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def _tell(self, reached: Reached | None) -> None:
        if self._done is not None:
            done, self._done = self._done, None
            done(reached)


def _environment() -> dict[str, str]:
    """Enough to run the same program."""
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    places = (str(ROOT), os.environ.get("PYTHONPATH", ""))
    return {**kept, "PYTHONPATH": os.pathsep.join(place for place in places if place)}
