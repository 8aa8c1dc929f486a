"""What the agents do now, for viewers: read from the log's rows after a change, at most twenty times a second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import orjson
import structlog

from organism.errors import OrganismError
from organism.log.log import Log, Query
from organism.server.frames import Frame, encode
from organism.server.wire import frame

COALESCE_SECONDS: Final = 0.05
EVERYONE: Final = Query(order_by="ordinal", limit=1_000_000)
_log = structlog.get_logger("organism.server")
_SHOWN: Final = ("state", "current_thread", "paused", "queue_depth")


class States:
    """The newest ``agent_state`` of each agent. ``version`` rises with each change; ``tell`` gets what changed."""

    def __init__(self, log: Log, tell: Callable[[Sequence[Frame], int], None]) -> None:
        self.version = 0
        self._log = log
        self._tell = tell
        self._latest: dict[str, tuple[int, tuple[Any, ...], Frame]] = {}
        self._is_due = False
        self._task: asyncio.Task[None] | None = None

    def stir(self) -> None:
        """Something may have changed: look soon."""
        self._is_due = True
        if self._task is None:
            self._task = asyncio.ensure_future(self._work())
            self._task.add_done_callback(self._worked)

    def rest(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def since(self, version: int) -> list[Frame]:
        """The states that changed after ``version``."""
        return [frame for changed, _, frame in self._latest.values() if changed > version]

    async def read(self) -> bytes:
        """All agents as they stand now, as one JSON array; what changed is told."""
        rows = (await self._log.rows("agents", EVERYONE)).rows
        changed = [row for row in orjson.loads(rows) if self._is_news(row)]
        if changed:
            self.version += 1
            frames = [_frame(row) for row in changed]
            for row, made in zip(changed, frames, strict=True):
                self._latest[row["name"]] = (self.version, _shown(row), made)
            self._tell(frames, self.version)
        return rows

    def _is_news(self, row: dict[str, Any]) -> bool:
        known = self._latest.get(row["name"])
        return known is None or known[1] != _shown(row)

    async def _work(self) -> None:
        while self._is_due:
            self._is_due = False
            with suppress(OrganismError):  # the log is closing; the tail says so to everyone
                await self.read()
            await asyncio.sleep(COALESCE_SECONDS)

    def _worked(self, task: asyncio.Task[None]) -> None:
        if task is not self._task:
            return
        self._task = None
        if (error := task.exception()) is not None:
            _log.error("states_unread", exc_info=error)
        elif self._is_due:  # stirred in the turn between its end and now
            self.stir()


def _shown(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in _SHOWN)


def _frame(row: dict[str, Any]) -> Frame:
    fields = {"agent": row["name"], **{name: row[name] for name in _SHOWN}}
    payload = encode("agent_state", fields)
    return Frame(0, "agent_state", row["current_thread"], frozenset((row["name"],)), frame(payload))
