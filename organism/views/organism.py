"""The organism and its listeners: what each is, what it does now, what waits for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, UnsetType, field

from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Record
from organism.model import words
from organism.model.ids import CONSOLE
from organism.model.thread import WAITS
from organism.model.times import iso
from organism.views.views import Keys, PrivateFields, ReadModel, Stored

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
            )
        elif row is None:
            continue
        elif kind in COUNTED:
            counter, step = COUNTED[kind]
            if not (isinstance(event, events.ThreadKilled) and event.ended):  # a thread that had ended was counted then
                setattr(row, counter, getattr(row, counter) + step)
        elif kind in STATUS:
            row.status = STATUS[kind]
        elif isinstance(event, events.OrganismReloaded):
            row.agent_count = len(event.listeners)
    if row is not None:
        row.position = records[-1].position
    rows["organism"] = row


ORGANISM: ReadModel[OrganismRow] = ReadModel(
    name="organism", version=1, types=frozenset(events.EVENTS.values()), fold=fold, is_live=True, row=OrganismRow
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


DECLARED: Final = frozenset(events.Declared.__struct_fields__) & frozenset(Agent.__struct_fields__)
"""What a row shows of its listener as it was declared."""
OpenSteps = dict[str, dict[str, str]]  # message → step → kind


class Handlings(PrivateFields):
    """A listener's messages that are not ended yet.

    ``running``: message → thread of each handling under way, in the order of their starts. ``waits``: of those, the
    steps they wait in (an ``effect``: for an operator). ``parked``: the same for messages that wait for a start, since
    a restart takes up the open steps again. ``failed``: the last handling failed for good. ``gone``: a reload or a
    start took the listener away; its row stays until nothing of it is open.
    """

    ordinal: int = 0
    running: dict[str, str] = field(default_factory=dict)
    waits: OpenSteps = field(default_factory=dict)
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
                rows[key] = _listed(key, rows[key], listed.get(key), is_start=is_start)
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
    return row if row.public.queue_depth or row.private.running else None


def _listed(
    key: str, row: AgentRow | None, listed: tuple[int, events.Declared] | None, *, is_start: bool
) -> AgentRow | None:
    """With a start a new life begins: what ran when the last one ended waits for a start again."""
    if row is not None and is_start:
        row.public.queue_depth += len(row.private.running)
        row.private.parked.update(row.private.waits)
        row.private.running, row.private.waits = {}, {}
    if listed is not None:
        ordinal, listener = listed
        row = row or Stored(Agent(name=key), Handlings())
        for name in DECLARED:
            setattr(row.public, name, getattr(listener, name))
        row.public.peers = list(listener.peers)
        row.private.ordinal, row.private.gone = ordinal, UNSET
        _settle(row)
        return row
    if row is None:
        return None
    row.private.gone = True
    _settle(row)
    return _unless_gone(row)


def _settle(row: AgentRow) -> None:
    """What follows from the rest: ``state`` and ``current_thread`` (that of the latest start still open)."""
    running = row.private.running
    if running:
        row.public.current_thread = running[next(reversed(running))]
        row.public.state = "processing" if len(running) > len(row.private.waits) else "waiting"
    else:
        row.public.current_thread = None
        row.public.state = "paused" if row.public.paused else "error" if row.private.failed else "idle"


def _message_sent(row: AgentRow, record: Record[events.MessageSent]) -> None:
    """A reply that answers an ask goes to the handling that waits for it, so it never waits for a start."""
    row.public.message_count += 1
    if record.event.answers is None:
        row.public.queue_depth += 1


def _message_started(row: AgentRow, record: Record[events.MessageStarted]) -> None:
    message, running = record.event.message, row.private.running
    if message in running:
        del running[message]
    elif row.public.queue_depth:  # what was sent to an unlisted tool, before a reload named it, was not counted
        row.public.queue_depth -= 1
    running[message] = row.public.current_thread = record.stream
    if row.private.parked and message in row.private.parked:
        row.private.waits[message] = row.private.parked.pop(message)
    row.public.state = "processing" if len(running) > len(row.private.waits) else "waiting"
    row.public.last_activity = iso(record.at)


def _message_handled(row: AgentRow, record: Record[events.MessageHandled]) -> None:
    """``answered`` ended no handling, and ``unread`` ran none: neither says how the last one went."""
    outcome = record.event.outcome
    if outcome == "answered":
        return
    _end(row, record.event.message)
    if outcome != "unread":
        row.private.failed = False
    row.public.last_activity = iso(record.at)
    if not row.private.running or row.public.current_thread == record.thread or row.private.waits:
        _settle(row)


def _end(row: AgentRow, message: str) -> None:
    running = row.private.running
    if message in running:
        del running[message]
    elif row.public.queue_depth:
        row.public.queue_depth -= 1
    if row.private.waits:
        row.private.waits.pop(message, None)
    if row.private.parked:
        row.private.parked.pop(message, None)


def _message_lost(row: AgentRow, record: Record[events.MessageDropped | events.MessageDead]) -> None:
    """It died, or was dropped with its thread, which is no failure of the handler's."""
    _end(row, record.event.message)
    if isinstance(record.event, events.MessageDead):
        row.private.failed = True
        row.public.last_activity = iso(record.at)
    _settle(row)


def _message_retried(row: AgentRow, record: Record[events.MessageRetried]) -> None:
    """It waits for its next attempt, which asks again; only what became of an unsafe effect stays an open question."""
    message = record.event.message
    del row.private.running[message]
    row.public.queue_depth += 1
    open_steps = row.private.waits.pop(message, {})
    effects = {step: kind for step, kind in open_steps.items() if kind == "effect"}
    if effects:
        row.private.parked[message] = effects
    row.public.last_activity = iso(record.at)
    _settle(row)


def _step_started(row: AgentRow, record: Record[events.StepStarted]) -> None:
    """An effect is the handling's own work until it is found ``unknown``; then an operator is waited for."""
    event = record.event
    if event.kind in WAITS or event.unknown:
        steps = row.private.waits if event.message in row.private.running else row.private.parked
        steps.setdefault(event.message, {})[str(event.step)] = event.kind
    row.public.last_activity = iso(record.at)
    _settle(row)


def _step_ended(row: AgentRow, record: Record[events.StepRecorded | events.StepResolved]) -> None:
    message, step = record.event.message, str(record.event.step)
    for steps in (row.private.waits, row.private.parked):
        if message in steps:
            steps[message].pop(step, None)
            if not steps[message]:
                del steps[message]
    row.public.last_activity = iso(record.at)
    _settle(row)


def _paused_or_resumed(row: AgentRow, record: Record[events.AgentPaused | events.AgentResumed]) -> None:
    row.public.paused = isinstance(record.event, events.AgentPaused)
    _settle(row)


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
    version=1,
    types=KEYS,
    fold=fold_agents,
    row=Agent,
    private=Handlings,
    columns={"ordinal": "INTEGER", "name": "TEXT", "state": "TEXT", "last_activity": "TEXT"},
    is_live=True,
)
