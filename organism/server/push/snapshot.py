"""How everything stands: what the agents do now, and the snapshot that a connection begins with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec
from msgspec import Raw

from organism.errors import BadPosition, NotFound, OrganismError
from organism.log.log import EventLog
from organism.model import words
from organism.server.push.filter import Frame
from organism.server.push.frames import AgentChanged, Connected, Resumed, frame_of
from organism.tenants import Tenant
from organism.views.organism import Agent, OrganismRow, WaitingForPeople, completed
from organism.views.read_models import waiting_for_people
from organism.views.views import CHANGED, Page, Query, ViewStore, Where

COALESCE_SECONDS: Final = 0.05
"""Agents' states are read at most twenty times a second."""
ACTIVE_SHOWN: Final = 500
OTHERS_SHOWN: Final = 100
_EVERY_AGENT: Final = Query(order_by="ordinal", limit=1_000_000)
_ACTIVE: Final = Query((Where("status", "=", "active"),), CHANGED, descending=True, limit=ACTIVE_SHOWN)
_OTHERS: Final = Query(
    (Where("status", "in", ["completed", "error", "killed"]),), CHANGED, descending=True, limit=OTHERS_SHOWN
)


class AgentStates:
    """The newest ``agent_state`` of each agent, as of ``position``; ``offer`` gets what changed."""

    def __init__(self, log: EventLog, views: ViewStore, offer: Callable[[Sequence[Frame]], None]) -> None:
        self.position = 0
        self.is_due = asyncio.Event()
        """Set when something may have changed."""
        self._log = log
        self._views = views
        self._offer = offer
        self._latest: Mapping[str, Frame] = {}

    def begin(self) -> None:
        """Somebody watches again: what was known before is old."""
        self.position, self._latest = 0, {}
        self.is_due.set()

    async def follow(self) -> None:
        """Read all agents whenever that is due, and offer what changed."""
        while True:
            await self.is_due.wait()
            self.is_due.clear()
            with suppress(OrganismError):  # the log is closing, which the tail finds out
                head = self._log.head
                page = await self._views.rows("agents", replace(_EVERY_AGENT, at=head))
                self.take(states_of(page.rows), head)
            await asyncio.sleep(COALESCE_SECONDS)

    def take(self, states: Mapping[str, Frame], position: int) -> None:
        """These are the states at a position; others may have been read since."""
        if position >= self.position:
            changed = _changed(self._latest, states)
            self._latest, self.position = states, position
            if changed:
                self._offer(changed)

    def since(self, had: Mapping[str, Frame]) -> list[Frame]:
        """Those that are not as in ``had``, for one who has those."""
        return _changed(had, self._latest)


def states_of(agents: bytes) -> Mapping[str, Frame]:
    """The ``agent_state`` of each of these rows, by its name."""
    return {
        row.name: frame_of(AgentChanged.of_row(row), row.current_thread, (row.name,))
        for row in msgspec.json.decode(agents, type=list[Agent])
    }


def _changed(before: Mapping[str, Frame], after: Mapping[str, Frame]) -> list[Frame]:
    return [frame for name, frame in after.items() if name not in before or before[name].json != frame.json]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything at one ``position``: ``agents`` and ``threads`` as JSON arrays, and the agents' ``states``."""

    position: int
    organism: OrganismRow
    waiting: WaitingForPeople
    agents: bytes
    threads: bytes
    threads_total: int
    states: Mapping[str, Frame]


class SnapshotReader:
    """Reads snapshots of one log. Callers that come while one is read share the next."""

    def __init__(self, log: EventLog, views: ViewStore, states: AgentStates) -> None:
        self._log, self._views = log, views
        self._states = states
        self._reading = asyncio.Lock()
        self._last: Snapshot | None = None

    async def read(self) -> Snapshot:
        """A snapshot at the head of now or later. Raises what reading it raises."""
        head = self._log.head
        async with self._reading:
            if self._last is None or self._last.position < head:
                self._last = await self._read()
            return self._last

    async def _read(self) -> Snapshot:
        """Everything as of the organism's row, whose position moves with every event."""
        views = self._views
        row = await views.row("organism", "organism")
        if row is None:
            raise NotFound("The organism has not started yet.")
        organism = msgspec.json.decode(row, type=OrganismRow)
        at = organism.position
        agents = await views.rows("agents", replace(_EVERY_AGENT, at=at))
        states = states_of(agents.rows)
        self._states.take(states, at)
        active, others = [await views.rows("threads", replace(query, at=at)) for query in (_ACTIVE, _OTHERS)]
        waiting = await waiting_for_people(views, at)
        total = active.total + others.total
        return Snapshot(at, organism, waiting, agents.rows, _joined(active, others), total, states)


def _joined(first: Page, second: Page) -> bytes:
    """Two JSON arrays as one."""
    if not first.count or not second.count:
        return first.rows if first.count else second.rows
    return first.rows[:-1] + b"," + second.rows[1:]


@dataclass(frozen=True, slots=True)
class Start:
    """How a connection begins: its first frame, and the agents' ``states`` in it.

    ``announce`` says whether ``caught_up`` shall follow. ``until`` is the position at which it ends, None for one that
    goes on.
    """

    connected: Connected | Resumed
    states: Mapping[str, Frame] = field(default_factory=dict)
    announce: bool = True
    until: int | None = None

    @property
    def position(self) -> int:
        """What the client has by then."""
        return self.connected.position


async def start_from_snapshot(tenant: Tenant, reader: SnapshotReader, status: words.OrganismStatus) -> Start:
    """For a client that has nothing yet."""
    shown = await reader.read()
    connected = Connected(
        position=shown.position,
        log=tenant.log.timeline,
        organism=completed(shown.organism, shown.waiting, tenant.clock.now_us(), status),
        agents=Raw(shown.agents),
        threads=Raw(shown.threads),
        threads_total=shown.threads_total,
    )
    return Start(connected, shown.states, announce=False)


def start_from_position(log: EventLog, since: int | None, timeline: str | None, until: int | None = None) -> Start:
    """For a client that has the state at ``since``, and wants what follows, or no more of it than ``until``.

    Raises ``BadPosition`` unless these are positions of this log, in this order.
    """
    if timeline is not None and timeline != log.timeline:
        raise BadPosition(
            f"The position belongs to the log {timeline[:40]!r}; this is {log.timeline!r}, restored or new.",
            param="/log",
        )
    if since is None:
        raise BadPosition("`log` says where `since` belongs; send `since` too.", param="/since")
    if since > log.head:
        raise BadPosition(f"The position {since} is ahead of the log; its head is {log.head}.", param="/since")
    if until is not None and not since <= until <= log.head:
        raise BadPosition(
            f"`until` lies between `since`, {since}, and the log's head, {log.head}; came {until}.", param="/until"
        )
    return Start(Resumed(since, log.timeline), until=until)
