"""How everything stands: the organism's row with what only the process knows, and the snapshot of ``connected``."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from organism.errors import BadPosition, NotFound
from organism.log.log import CHANGED, Log, Page, Query, Where
from organism.server.states import EVERYONE, States
from organism.tenants import Tenant

ACTIVE_SHOWN: Final = 500
OTHERS_SHOWN: Final = 100
_ACTIVE: Final = Query((Where("status", "=", "active"),), CHANGED, descending=True, limit=ACTIVE_SHOWN)
_OTHERS: Final = Query(
    (Where("status", "in", ["completed", "error", "killed"]),), CHANGED, descending=True, limit=OTHERS_SHOWN
)
_SHOWN: Final = (("threads", _ACTIVE), ("threads", _OTHERS), ("agents", EVERYONE))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything at one ``position``: ``agents`` and ``threads`` as JSON arrays, the ``states`` at a version."""

    position: int
    organism: bytes
    agents: bytes
    threads: bytes
    threads_total: int
    states_at: int


def organism_row(row: bytes, now_us: int, status: str = "") -> dict[str, Any]:
    """The API's Organism. ``status`` is what the process says: the log knows running and paused alone."""
    shown: dict[str, Any] = orjson.loads(row)
    started_at = shown.pop("started_at")
    shown["uptime_seconds"] = max(0, now_us - started_at) // 1_000_000
    if status in {"starting", "stopping"}:
        shown["status"] = status
    return shown


class Standing:
    """How one tenant's organism stands. Whoever asks while another reads shares the next reading with all who wait.

    Each reading under load folds a stretch of the log over connections of its own: were there one for each viewer,
    viewers that all come again at once would hold up everyone else.
    """

    def __init__(self, log: Log, states: States) -> None:
        self._log = log
        self._states = states
        self._reading: asyncio.Task[Snapshot] | None = None
        self._next: asyncio.Task[Snapshot] | None = None

    async def read(self) -> Snapshot:
        """A snapshot of a moment after this call. Raises what hinders the reading."""
        if self._next is None:
            self._next = asyncio.ensure_future(self._read_after(self._reading))
            self._next.add_done_callback(_noted)
        return await asyncio.shield(self._next)  # a viewer that goes away does not take it from the others

    async def _read_after(self, other: asyncio.Task[Snapshot] | None) -> Snapshot:
        if other is not None:
            await asyncio.wait([other])
        self._reading, self._next = self._next, None
        return await snapshot(self._log, self._states)


def _noted(reading: asyncio.Task[Snapshot]) -> None:
    """Those who asked were told of a failure; if all of them are gone, nobody needs to be."""
    if not reading.cancelled():
        reading.exception()


async def connected(tenant: Tenant, standing: Standing, status: str) -> tuple[dict[str, Any], int]:
    """What ``connected`` says to one who has nothing yet, and the version of the agents' states in it."""
    shown = await standing.read()
    said = {
        "position": shown.position,
        "log": tenant.log.timeline,
        "organism": organism_row(shown.organism, tenant.clock.now_us(), status),
        "agents": shown.agents,
        "threads": shown.threads,
        "threads_total": shown.threads_total,
    }
    return said, shown.states_at


def resumed(log: Log, since: int | None, timeline: str | None) -> int:
    """``since``, if it is a position of this log. Raises ``BadPosition``."""
    if timeline is not None and timeline != log.timeline:
        raise BadPosition(
            f"The position belongs to the log {timeline[:40]!r}; this is {log.timeline!r}, restored or new.",
            param="/log",
        )
    if since is None:
        raise BadPosition("`log` says where `since` belongs; send `since` too.", param="/since")
    if since > log.head:
        raise BadPosition(f"The position {since} is ahead of the log; its head is {log.head}.", param="/since")
    return since


async def snapshot(log: Log, states: States) -> Snapshot:
    """How everything stands at one position.

    It is read as of the position that the organism's row names. What is read as of the head may see more, if the log
    moves on meanwhile; then it is read again, and is of the past by now. The states are those of then or later.
    """
    organism = await log.row("organism", "organism")
    if organism is None:
        raise NotFound("The organism has not started yet.")
    position, states_at = orjson.loads(organism)["position"], states.version
    while True:
        is_past = log.head > position
        active, others, agents = [await log.rows(model, replace(query, at=position)) for model, query in _SHOWN]
        if is_past or log.head == position:
            total = active.total + others.total
            return Snapshot(position, organism, agents.rows, _joined(active, others), total, states_at)


def _joined(first: Page, second: Page) -> bytes:
    """Two JSON arrays as one."""
    if not first.count or not second.count:
        return first.rows if first.count else second.rows
    return first.rows[:-1] + b"," + second.rows[1:]
