"""The projector: a process beside this one that folds the log into rows while there is much to fold.

Rows cost the loop a quarter of its time under load, and nobody may read them before the next ones are written. Another
process reads what was committed from the log's file and writes the rows, on another core and without this interpreter's
lock; here only what is asked for is folded. Its protocol stands in ``projection.py``.
"""

from __future__ import annotations

import asyncio
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

import orjson

from organism.log.hired import Hired


@dataclass(frozen=True, slots=True)
class Reached:
    """The rows up to ``position`` are written; ``greatest`` is the greatest key of each model."""

    position: int
    greatest: Mapping[str, str]


Done = Callable[[Reached | None], None]
"""Told how far the rows have come; None: it is gone, and nobody knows what became of them."""


class Projector(Hired):
    """``arguments`` are those of ``projection.py``."""

    def __init__(self, arguments: Sequence[str]) -> None:
        super().__init__("organism.log.projection", arguments)
        self._done: Done | None = None

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

    async def _begin(self, command: Sequence[str], environment: Mapping[str, str]) -> Process:
        return await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, env=environment)

    async def _hear(self, process: Process) -> None:
        if process.stdout is None:
            return
        async for line in process.stdout:
            said = orjson.loads(line)
            self.is_ready = not self._is_leaving
            self._tell(Reached(said["position"], said["greatest"]))

    def _let_end(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def _missed(self) -> None:
        self._tell(None)

    def _tell(self, reached: Reached | None) -> None:
        if self._done is not None:
            done, self._done = self._done, None
            done(reached)
