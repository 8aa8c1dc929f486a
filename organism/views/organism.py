"""The organism and its listeners: what each is, what it does now, what waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, UnsetType, field
from msgspec.structs import replace

from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Record
from organism.model import words
from organism.model.ids import CONSOLE
from organism.model.times import iso
from organism.views.handlings import OpenHandling, WaitsFor, foremost, waits_for
from organism.views.views import Keys, PrivateFields, ReadModel, Stored
from organism.views.who import By, by

COUNTED: Final[Mapping[type[events.Event], tuple[str, int]]] = {
    events.MessageSent: ("total_messages", 1),
    events.ThreadCreated: ("active_threads", 1),
    events.ThreadReopened: ("active_threads", 1),
    events.ThreadCompleted: ("active_threads", -1),
    events.ThreadFailed: ("active_threads", -1),
    events.ThreadKilled: ("active_threads", -1),
}
Status = Literal["running", "paused"]
STATUS: Final[Mapping[type[events.Event], Status]] = {
    events.OrganismPaused: "paused",
    events.OrganismResumed: "running",
}


class OrganismRow(Entity):
    """The organism, but for what only the process knows.

    ``position`` is that of the log's last event. ``started_at`` is in µs, for the server to count ``uptime_seconds``.
    """

    name: str
    status: Status
    agent_count: words.Count
    active_threads: int
    total_messages: words.Count
    version: words.Version
    position: words.Position
    started_at: int
    paused_by: By | None = None
    paused_at: str | None = None


class WaitingForPeople(Entity):
    """How much waits for a person."""

    approvals: words.Count
    dead_letters: words.Count
    indeterminate: words.Count
    foreign_tools: Annotated[words.Count, Meta(description="Tools that their MCP servers have changed.")]


class Organism(Entity, kw_only=True):
    """The organism as a whole."""

    name: Annotated[str, Meta(examples=["hello-world"])]
    status: words.OrganismStatus
    uptime_seconds: words.Count
    agent_count: words.Count
    active_threads: words.Count
    total_messages: words.Count
    version: words.Version
    position: Annotated[words.Position, Meta(description="The head of the log.")]
    waiting_for_people: WaitingForPeople
    paused_by: Annotated[By | None, Meta(description="Who paused it, if it is paused and that is known.")]
    paused_at: words.Time | None


def completed(row: OrganismRow, waiting: WaitingForPeople, now_us: int, status: words.OrganismStatus) -> Organism:
    """The organism as it is shown. ``status`` is the process's: the log knows running and paused only."""
    return Organism(
        name=row.name,
        status=status if status in {"starting", "stopping"} else row.status,
        uptime_seconds=max(0, now_us - row.started_at) // 1_000_000,
        agent_count=row.agent_count,
        active_threads=row.active_threads,
        total_messages=row.total_messages,
        version=row.version,
        position=row.position,
        waiting_for_people=waiting,
        paused_by=row.paused_by,
        paused_at=row.paused_at,
    )


def fold(rows: dict[str, OrganismRow | None], records: Sequence[Record[events.Event]]) -> None:
    """The organism's one row after the events; there is none before its first start."""
    row = rows["organism"]
    for record in records:
        event = record.event
        kind = type(event)
        if isinstance(event, events.OrganismStarted):
            row = OrganismRow(
                name=event.name,
                status="running" if row is None else row.status,  # counts and a pause outlive the process
                agent_count=len(event.listeners),
                active_threads=0 if row is None else row.active_threads,
                total_messages=0 if row is None else row.total_messages,
                version=event.version,
                position=record.position,
                started_at=record.at,
                paused_by=None if row is None else row.paused_by,
                paused_at=None if row is None else row.paused_at,
            )
        elif row is None:
            continue
        elif kind in COUNTED:
            counter, step = COUNTED[kind]
            if not (isinstance(event, events.ThreadKilled) and event.ended):  # a thread that had ended was counted then
                setattr(row, counter, getattr(row, counter) + step)
        elif kind in STATUS:
            row.status = STATUS[kind]
            is_paused = row.status == "paused"
            row.paused_by, row.paused_at = (by(record), iso(record.at)) if is_paused else (None, None)
        elif isinstance(event, events.OrganismReloaded):
            row.agent_count = len(event.listeners)
    if row is not None:
        row.position = records[-1].position
    rows["organism"] = row


ORGANISM: ReadModel[OrganismRow] = ReadModel(
    name="organism", version=2, types=frozenset(events.EVENTS.values()), fold=fold, is_live=True, row=OrganismRow
)

# The listeners.


class Agent(Entity, kw_only=True):
    """A listener, and what it does now."""

    name: words.AgentName
    description: Annotated[str, Meta(examples=["Greets whoever is named"])] = ""
    is_agent: bool = False
    peers: Annotated[list[words.AgentName], Meta(description="Whom it may write to.")] = field(default_factory=list)
    payload_class: Annotated[str, Meta(examples=["handlers.hello.Greeting"])] = ""
    state: words.AgentState = "idle"
    current_thread: Annotated[words.ThreadId | None, Meta(description="That of the latest start still open.")] = None
    queue_depth: Annotated[words.Count, Meta(description="What waits for a start, retries too.")] = 0
    last_activity: words.Time | None = None
    paused: Annotated[bool, Meta(description="True from the pause on, though something may still run.")] = False
    message_count: words.Count = 0
    model: Annotated[str, Meta(examples=["default"])] | None = None
    version: words.Version | None = None
    handlings: Annotated[list[OpenHandling], Meta(description="Those under way, the oldest first, at most five.")] = (
        field(default_factory=list)
    )
    open_handlings: Annotated[words.Count, Meta(description="How many are under way.")] = 0
    oldest_waiting_at: Annotated[
        words.Time | None, Meta(description="Since when the oldest waits of what waits for a start.")
    ] = None
    paused_by: Annotated[By | None, Meta(description="Who paused it, if it is paused and that is known.")] = None
    paused_at: words.Time | None = None
    group: Annotated[str | None, Meta(description="Which others it is shown with, if it says.")] = None


DECLARED: Final = frozenset(events.Declared.__struct_fields__) & frozenset(Agent.__struct_fields__)
"""What a row shows of its listener as it was declared."""
HANDLINGS_SHOWN: Final = 5
Queued = tuple[str | None, int]  # The payload's type, and since when it waits for a start (µs)
OpenSteps = dict[str, dict[str, WaitsFor]]  # message → step → what it waits for


class Handlings(PrivateFields):
    """A listener's messages that are not ended yet.

    ``queued`` are those that wait for a start, ``running`` each handling under way, both in the order in which that
    began. ``waits``: of what runs, the steps in which it waits for others; ``effects``: those that are its own work.
    ``parked``: the same of messages that wait for a start, since a restart takes up the open steps again. ``failed``:
    the last handling failed for good. ``gone``: a reload or a start took the listener away; its row stays until
    nothing of it is open.
    """

    ordinal: int = 0
    queued: dict[str, Queued] = field(default_factory=dict)
    running: dict[str, OpenHandling] = field(default_factory=dict)
    waits: OpenSteps = field(default_factory=dict)
    effects: OpenSteps = field(default_factory=dict)
    parked: OpenSteps = field(default_factory=dict)
    failed: bool = False
    gone: bool | UnsetType = UNSET


AgentRow = Stored[Agent, Handlings]


def _agent(record: Record[Any]) -> Sequence[str]:
    """The listener that it is about; the outside is none."""
    return (record.event.agent,) if record.event.agent != CONSOLE else ()


def _receiver(record: Record[events.MessageSent]) -> Sequence[str]:
    return (record.event.to,) if record.event.to != CONSOLE else ()


def _listeners(record: Record[events.OrganismStarted | events.OrganismReloaded]) -> Sequence[str]:
    """Every listener that there is from now on, and those that there were until now."""
    return (*(listener.name for listener in record.event.listeners), *record.event.removed)


def fold_agents(rows: dict[str, AgentRow | None], records: Sequence[Record[Any]]) -> None:
    """The listeners after the events; None for one that is not configured and of which nothing is open."""
    for record in records:
        if isinstance(record.event, LISTING):
            listed = {listener.name: (at, listener) for at, listener in enumerate(record.event.listeners)}
            is_start = isinstance(record.event, events.OrganismStarted)
            for key in _listeners(record):
                row = rows[key]
                if is_start and row is not None:
                    _stop(row, record.at)
                rows[key] = _listed(key, row, listed.get(key))
        elif (keys := KEYS.get(type(record.event))) is not None:
            for key in keys(record):
                rows[key] = _after(rows[key], record)


def _after(row: AgentRow | None, record: Record[Any]) -> AgentRow | None:
    if row is None:
        return None
    kind = type(record.event)
    FOLDS[kind](row, record)
    return _unless_gone(row) if row.private.gone and kind not in OPENING else row


def _unless_gone(row: AgentRow) -> AgentRow | None:
    return row if row.private.queued or row.private.running else None


def _stop(row: AgentRow, at: int) -> None:
    """A new life begins: what ran when the last one ended waits for a start again."""
    private = row.private
    for message, handling in private.running.items():
        private.queued[message] = (handling.payload_type, at)
        if steps := private.waits.pop(message, {}) | private.effects.pop(message, {}):
            private.parked[message] = steps
    private.running = {}


def _listed(key: str, row: AgentRow | None, listed: tuple[int, events.Declared] | None) -> AgentRow | None:
    if listed is not None:
        ordinal, listener = listed
        row = row or Stored(Agent(name=key), Handlings())
        for name in DECLARED:
            setattr(row.public, name, getattr(listener, name))
        row.public.peers = list(listener.peers)
        row.private.ordinal, row.private.gone = ordinal, UNSET
        return row
    if row is None:
        return None
    row.private.gone = True
    return _unless_gone(row)


def _complete(row: AgentRow) -> None:
    """Set what follows from the handlings, ``current_thread`` too (that of the latest start still open)."""
    public, running, queued = row.public, row.private.running, row.private.queued
    public.queue_depth = len(queued)
    public.oldest_waiting_at = iso(next(iter(queued.values()))[1]) if queued else None
    public.open_handlings = len(running)
    public.handlings = list(islice(running.values(), HANDLINGS_SHOWN))
    for handling in public.handlings:
        handling.waits_for = _wait(row.private, handling.message_id)
    if running:
        public.current_thread = running[next(reversed(running))].thread_id
        public.state = "processing" if len(running) > len(row.private.waits) else "waiting"
    else:
        public.current_thread = None
        public.state = "paused" if public.paused else "error" if row.private.failed else "idle"


def shown_agents(rows: Iterable[AgentRow]) -> list[Agent]:
    """The listeners as they are shown, in the order of organism.yaml."""
    return [row.public for row in sorted(rows, key=lambda row: (row.private.ordinal, row.public.name))]


def handlings_of(rows: Iterable[AgentRow], thread: str) -> list[OpenHandling]:
    """The thread's handlings under way, the oldest first, of the rows of all listeners."""
    found = [
        replace(handling, waits_for=_wait(row.private, handling.message_id))
        for row in rows
        for handling in row.private.running.values()
        if handling.thread_id == thread
    ]
    return sorted(found, key=lambda each: each.started_at)


def _wait(private: Handlings, message: str) -> WaitsFor | None:
    """What a handling waits for."""
    if message not in private.waits and message not in private.effects:
        return None
    return foremost((*private.waits.get(message, {}).values(), *private.effects.get(message, {}).values()))


def _message_sent(row: AgentRow, record: Record[events.MessageSent]) -> None:
    """A reply that answers an ask goes to the handling that waits for it, so it never waits for a start."""
    event = record.event
    row.public.message_count += 1
    if event.answers is None:
        row.private.queued[event.message] = (event.type, record.at)


def _message_started(row: AgentRow, record: Record[events.MessageStarted]) -> None:
    event, private = record.event, row.private
    message, now = event.message, iso(record.at)
    before = private.running.pop(message, None)
    if before is None:  # what was sent to an unlisted tool, before a reload named it, was not queued
        payload_type, _ = private.queued.pop(message, (None, 0))
    else:
        payload_type = before.payload_type
    private.running[message] = OpenHandling(message, record.stream, event.agent, payload_type, event.attempt, now)
    if private.parked and message in private.parked:
        for step, wait in private.parked.pop(message).items():
            _steps(row, wait).setdefault(message, {})[step] = wait
    row.public.last_activity = now


def _message_handled(row: AgentRow, record: Record[events.MessageHandled]) -> None:
    """``answered`` ended no handling, and ``unread`` ran none: neither says how the last one went."""
    outcome = record.event.outcome
    if outcome == "answered":
        return
    _end(row, record.event.message)
    if outcome != "unread":
        row.private.failed = False
    row.public.last_activity = iso(record.at)


def _end(row: AgentRow, message: str) -> None:
    """It runs and waits no more."""
    private = row.private
    if private.running.pop(message, None) is None:
        private.queued.pop(message, None)
    if private.waits:
        private.waits.pop(message, None)
    if private.effects:
        private.effects.pop(message, None)
    if private.parked:
        private.parked.pop(message, None)


def _message_lost(row: AgentRow, record: Record[events.MessageDropped | events.MessageDead]) -> None:
    """It died, or was dropped with its thread, which is no failure of the handler's."""
    _end(row, record.event.message)
    if isinstance(record.event, events.MessageDead):
        row.private.failed = True
        row.public.last_activity = iso(record.at)


def _message_retried(row: AgentRow, record: Record[events.MessageRetried]) -> None:
    """It waits for its next attempt, which asks again; only what became of an unsafe effect stays an open question."""
    message, private = record.event.message, row.private
    handling, open_steps = private.running[message], private.waits.get(message, {})
    _end(row, message)
    private.queued[message] = (handling.payload_type, record.at)
    effects = {step: wait for step, wait in open_steps.items() if wait.effect is not None}
    if effects:
        private.parked[message] = effects
    row.public.last_activity = iso(record.at)


def _step_started(row: AgentRow, record: Record[events.StepStarted]) -> None:
    """An effect is the handling's own work until it is found ``unknown``; then an operator is waited for."""
    event, wait = record.event, waits_for(record)
    if wait is not None:
        message, step = event.message, str(event.step)
        _forget(row.private.effects, message, step)
        steps = _steps(row, wait) if message in row.private.running else row.private.parked
        steps.setdefault(message, {})[step] = wait
    row.public.last_activity = iso(record.at)


def _step_ended(row: AgentRow, record: Record[events.StepRecorded | events.StepResolved]) -> None:
    message, step = record.event.message, str(record.event.step)
    for steps in (row.private.waits, row.private.effects, row.private.parked):
        _forget(steps, message, step)
    row.public.last_activity = iso(record.at)


def _steps(row: AgentRow, wait: WaitsFor) -> OpenSteps:
    """The steps of what runs that this one belongs to."""
    return row.private.effects if wait.kind == "effect" else row.private.waits


def _forget(steps: OpenSteps, message: str, step: str) -> None:
    if message in steps:
        steps[message].pop(step, None)
        if not steps[message]:
            del steps[message]


def _paused_or_resumed(row: AgentRow, record: Record[events.AgentPaused | events.AgentResumed]) -> None:
    public = row.public
    public.paused = isinstance(record.event, events.AgentPaused)
    public.paused_by, public.paused_at = (by(record), iso(record.at)) if public.paused else (None, None)


LISTING: Final = (events.OrganismStarted, events.OrganismReloaded)
FOLDS: Final[Mapping[type[events.Event], Callable[[AgentRow, Record[Any]], None]]] = {
    events.MessageSent: _message_sent,
    events.MessageStarted: _message_started,
    events.MessageHandled: _message_handled,
    events.MessageDropped: _message_lost,
    events.MessageDead: _message_lost,
    events.MessageRetried: _message_retried,
    events.StepStarted: _step_started,
    events.StepRecorded: _step_ended,
    events.StepResolved: _step_ended,
    events.AgentPaused: _paused_or_resumed,
    events.AgentResumed: _paused_or_resumed,
}

KEYS: Final[Mapping[type[events.Event], Keys]] = {
    **dict.fromkeys(LISTING, _listeners),
    **dict.fromkeys(FOLDS, _agent),
    events.MessageSent: _receiver,
}
OPENING: Final = frozenset({events.MessageSent, events.MessageStarted})
"""With these something of the listener is open, so its row stays."""

AGENTS: ReadModel[AgentRow] = ReadModel(
    name="agents",
    version=2,
    types=KEYS,
    fold=fold_agents,
    row=Agent,
    private=Handlings,
    complete=_complete,
    columns={"ordinal": "INTEGER", "name": "TEXT", "state": "TEXT", "last_activity": "TEXT"},
    is_live=True,
)
