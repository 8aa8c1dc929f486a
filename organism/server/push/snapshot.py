"""How everything stands: what the agents do now, and the snapshot that a connection begins with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec
from msgspec import Raw

from organism.codec import Codec
from organism.errors import BadPosition, NotFound, OrganismError
from organism.log.log import EventLog
from organism.model import words
from organism.server.approvals import shown_approvals
from organism.server.push.filter import Filter, Frame
from organism.server.push.frames import AgentChanged, Connected, Resumed, frame_of
from organism.tenants import Tenant
from organism.views.organism import (
    AGENTS,
    Agent,
    Organism,
    OrganismRow,
    WaitingForPeople,
    completed,
    shown_agents,
)
from organism.views.read_models import waiting_for_people
from organism.views.views import CHANGED, KEY, Page, Query, ViewStore, Where, cut_payloads

COALESCE_SECONDS: Final = 0.05
"""Agents' states are read at most twenty times a second."""
ACTIVE_SHOWN: Final = 500
OTHERS_SHOWN: Final = 100
OPEN_SHOWN: Final = 100
PAYLOAD_BYTES: Final = 4096
"""Longer payloads and previews are cut unless the client says how long they may be."""
SNAPSHOTS_KEPT: Final = 8
_ACTIVE: Final = Query((Where("status", "=", "active"),), CHANGED, descending=True, limit=ACTIVE_SHOWN)
_OTHERS: Final = Query((Where("status", "<>", "active"),), CHANGED, descending=True, limit=OTHERS_SHOWN)
_OPEN: Final[Mapping[str, Query]] = {
    "approvals": Query((Where("status", "=", "pending"),), "position", descending=True, limit=OPEN_SHOWN),
    "dead_letters": Query((), "died_at", descending=True, limit=OPEN_SHOWN),
    "indeterminate": Query((), "position", descending=True, limit=OPEN_SHOWN),
}


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
                self.take(states_of(shown_agents(await self._views.live_rows(AGENTS, head))), head)
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


def states_of(shown: Iterable[Agent]) -> Mapping[str, Frame]:
    """The ``agent_state`` of each of these rows, by its name."""
    return {row.name: frame_of(AgentChanged.of_row(row), row.current_thread, (row.name,)) for row in shown}


def _changed(before: Mapping[str, Frame], after: Mapping[str, Frame]) -> list[Frame]:
    return [frame for name, frame in after.items() if name not in before or before[name].json != frame.json]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything at one ``position`` that passes a filter, as JSON arrays, and the ``states`` of all agents."""

    position: int
    organism: OrganismRow
    waiting: WaitingForPeople
    agents: bytes
    threads: bytes
    threads_total: int
    approvals: bytes
    dead_letters: bytes
    indeterminate: bytes
    states: Mapping[str, Frame]

    def connected(self, timeline: str, organism: Organism) -> Connected:
        """It as the first frame; ``organism`` is as it is shown."""
        return Connected(
            position=self.position,
            log=timeline,
            organism=organism,
            agents=Raw(self.agents),
            threads=Raw(self.threads),
            threads_total=self.threads_total,
            approvals=Raw(self.approvals),
            dead_letters=Raw(self.dead_letters),
            indeterminate=Raw(self.indeterminate),
        )


async def read_snapshot(views: ViewStore, codec: Codec, wanted: Filter, at: int | None = None) -> Snapshot:
    """Everything as of the organism's row, whose position moves with every event; that of now, or ``at`` a position."""
    row = await views.row("organism", "organism", at)
    if row is None:
        raise NotFound("The organism has not started yet.")
    organism = msgspec.json.decode(row, type=OrganismRow)
    at = organism.position
    every = shown_agents(await views.live_rows(AGENTS, at))
    states = states_of(every)
    agents = msgspec.json.encode([row for row in every if wanted.agents is None or row.name in wanted.agents])
    threads = *_given(KEY, "in", wanted.threads), *_given("participants", "has_any", wanted.agents)
    active, others = [
        await views.rows("threads", replace(query, at=at, where=(*query.where, *threads)))
        for query in (_ACTIVE, _OTHERS)
    ]
    items = *_given("thread_id", "in", wanted.threads), *_given("agent", "in", wanted.agents)
    approvals, dead_letters, indeterminate = [
        (await views.rows(name, replace(query, at=at, where=(*query.where, *items)))).rows
        for name, query in _OPEN.items()
    ]
    most = PAYLOAD_BYTES if wanted.payload_bytes is None else wanted.payload_bytes
    return Snapshot(
        position=at,
        organism=organism,
        waiting=await waiting_for_people(views, at),
        agents=agents,
        threads=_joined(active, others),
        threads_total=active.total + others.total,
        approvals=cut_payloads(msgspec.json.encode(shown_approvals(approvals, codec)), most, "preview"),
        dead_letters=cut_payloads(dead_letters, most),
        indeterminate=indeterminate,
        states=states,
    )


def _given(column: str, op: str, names: frozenset[str] | None) -> tuple[Where, ...]:
    """The condition that one of a filter's lists makes, if it is given."""
    return () if names is None else (Where(column, op, sorted(names)),)


class SnapshotReader:
    """Reads snapshots of one log. Callers that come while one is read share the next."""

    def __init__(self, log: EventLog, views: ViewStore, states: AgentStates) -> None:
        self._log, self._views = log, views
        self._states = states
        self._reading = asyncio.Lock()
        self._last: dict[Filter, Snapshot] = {}  # by filter, all of one position

    async def read(self, codec: Codec, wanted: Filter) -> Snapshot:
        """A snapshot at the head of now or later of what passes. Raises what reading it raises."""
        head = self._log.head
        wanted = Filter(wanted.threads, wanted.agents, payload_bytes=wanted.payload_bytes)  # all that it depends on
        async with self._reading:
            found = self._last.get(wanted)
            if found is None or found.position < head:
                found = await read_snapshot(self._views, codec, wanted)
                self._last = {key: old for key, old in self._last.items() if old.position == found.position}
                if len(self._last) < SNAPSHOTS_KEPT:
                    self._last[wanted] = found
            self._states.take(found.states, found.position)  # whoever is shown them is told only what changes
            return found


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


async def start_from_snapshot(
    tenant: Tenant, reader: SnapshotReader, status: words.OrganismStatus, wanted: Filter
) -> Start:
    """For a client that has nothing yet."""
    found = await reader.read(tenant.pump.state.rules.codec, wanted)
    organism = completed(found.organism, found.waiting, tenant.clock.now_us(), status)
    return Start(found.connected(tenant.log.timeline, organism), found.states, announce=False)


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
