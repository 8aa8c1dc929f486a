"""A process beside the log's own, hired while there is much to do: begun, let go, and missed when it is gone."""

from __future__ import annotations

import asyncio
import os
import sys
from abc import ABC, abstractmethod
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
"""Where the package lies."""
KEPT_VARIABLES: Final = ("PATH", "LD_LIBRARY_PATH", "HOME", "LANG", "TZ")
"""What of the environment it gets: keys and tokens are none of its business."""
END_SECONDS: Final = 2.0
"""So long it may take to end what it is at."""
PAUSE_SECONDS: Final = 10.0
"""So long after one has ended there is none."""


class Hired(ABC):
    """At most one process at a time. It ends with its input, so it outlives nobody.

    ``program`` is the module that it runs, with ``arguments``. ``is_ready`` once it has said so.
    """

    def __init__(self, program: str, arguments: Sequence[str]) -> None:
        self._command = (sys.executable, "-P", "-m", program, *arguments)
        self._loop = asyncio.get_running_loop()
        self._process: Process | None = None
        self._working: asyncio.Task[None] | None = None
        self._rests_until = 0.0
        self._is_leaving = False
        self.is_ready = False

    def hire(self) -> None:
        """Have a process begun, unless there is one or the last one has just ended."""
        if self._working is None and self._loop.time() >= self._rests_until:
            self._working = self._loop.create_task(self._work())

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

    @abstractmethod
    async def _begin(self, command: Sequence[str], environment: Mapping[str, str]) -> Process:
        """Begin the process, connected to this one."""

    @abstractmethod
    async def _hear(self, process: Process) -> None:
        """Take what it says, until it has nothing more to say."""

    @abstractmethod
    def _let_end(self) -> None:
        """End its input, if there is one."""

    @abstractmethod
    def _missed(self) -> None:
        """It is gone: tell who waits for it."""

    async def _work(self) -> None:
        try:
            await self._converse()
        finally:
            self.is_ready = False
            self._process = self._working = None
            self._rests_until = self._loop.time() + PAUSE_SECONDS
            self._missed()

    async def _converse(self) -> None:
        try:
            process = await self._begin(self._command, _environment())
        except OSError:
            return  # no process can be had, which is what the pause is for
        self._process = process
        if self._is_leaving:
            self._let_end()
        await self._hear(process)
        await process.wait()


def _environment() -> dict[str, str]:
    """Enough to run the same program."""
    kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
    places = (str(ROOT), os.environ.get("PYTHONPATH", ""))
    return {**kept, "PYTHONPATH": os.pathsep.join(place for place in places if place)}
