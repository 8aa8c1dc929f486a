"""Active threads in memory, as ``pump/state.py`` folds them: their open messages, calls and steps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import field

from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Record
from organism.model.ids import session_of
from organism.model.run import BLOCKS

WAITS: Final[frozenset[events.StepKind]] = frozenset({"ask", "approve", "complete"})
"""Kinds of steps in which a handler waits for somebody else."""
CONSENT: Final = 0
"""The number of the step that asks a person whether the message may be handled; it precedes all others."""
ROOTS_KEPT: Final = 256
"""After this many injections a thread forgets the roots that no open message follows from."""


NO_ROOT: Final = events.Root()
NO_AUTHORS: Final[frozenset[str]] = frozenset()


class Turn(Entity):
    """What a thread is to its session: the turn that ``message`` asks for, which ``waits`` for the turns before it.

    ``budget`` is the session's.
    ``said`` counts the messages that it has brought into the session; ``authors`` names whose text may be in them, once
    the message is handled.
    """

    message: str
    on_busy: events.OnBusy
    waits: bool
    budget: events.SessionBudget | None = None
    said: int = 0
    authors: frozenset[str] = frozenset()


class Session(Entity):
    """A session with open turns, in their order: only the first runs. ``number`` counts all turns that it ever had."""

    number: int
    head: int = 0
    turns: list[str] = field(default_factory=list)


class Thread(Entity):
    """An active thread. ``failed`` counts the dead letters of failed handlings."""

    id: str
    failed: int = 0
    reason: str = ""
    paused: bool = False
    head: int = 0
    parent: str | None = None
    todos: dict[str, events.Todo] | None = None
    roots: dict[str, events.Root] | None = None
    """Its injections by correlation, except those of the host program."""
    turn: Turn | None = None

    @property
    def owner(self) -> str:
        """Whose its contents are: its session's, if it is a turn of one."""
        return session_of(self.id) or self.id

    @property
    def is_blocked(self) -> bool:
        """Whether none of its messages may start."""
        return self.paused or (self.turn is not None and self.turn.waits)

    def begin_chain(self, correlation: str | None, root: events.Root, open_messages: Iterable[Message]) -> None:
        """Note the root of an injected message, for all that follows from it."""
        if correlation is None or root == NO_ROOT:
            return
        if self.roots is not None and len(self.roots) % ROOTS_KEPT == 0:
            followed = {message.correlation for message in open_messages}
            self.roots = {key: kept for key, kept in self.roots.items() if key in followed}
        self.roots = self.roots or {}
        self.roots[correlation] = root


class Call(Entity):
    """The context of a request: who waits for its answer, and the call around it. Private to the pump."""

    id: str
    caller: str
    parent: Call | None
    step: Step | None = None
    ask: Step | None = None


class PlainStep(Entity):
    """A step of a handling, recorded or under way, without the message that it belongs to.

    ``open`` counts the open messages in an ask's branch: when none is left, no answer can come any more. ``expires``
    and ``stopped_at``, since when its clock stands still, are in µs; ``content_at`` is the position of its result.
    ``request`` is the message that an ask sent; ``lost`` is the error that it gets if nothing answers it, once a
    message of its branch is a dead letter. ``place`` is where the handler calls it (``pump/run/branches.py``),
    ``began`` when it was (µs), ``ended_at`` the position at which its result was recorded. ``to`` is whom an ask asks,
    ``model`` the one called.
    """

    number: int
    kind: events.StepKind
    input: str
    ok: bool | None = None
    error: events.StepError | None = None
    content_at: int = 0
    open: int = 0
    effect: events.StepEffect = ""
    key: str = ""
    approval: str = ""
    expires: int = 0
    stopped_at: int = 0
    unknown: bool = False
    request: str = ""
    lost: events.StepError | None = None
    place: str = ""
    ended_at: int = 0
    to: str = ""
    model: str = ""
    began: int = 0


class Step(PlainStep, kw_only=True):
    """A step of an open message's handling."""

    message: Message

    def recorded(self, error: events.StepError | None = None) -> events.StepRecorded:
        """The event that records it."""
        named = self.message.id, self.message.to, self.number, self.kind, self.input
        of = self.effect, self.approval, self.key, self.to, self.model
        return events.StepRecorded(*named, error, self.place, *of)

    def stop_clock(self, at: int) -> None:
        """Stop its clock at that time, unless it is stopped."""
        if not self.stopped_at:
            self.stopped_at = at

    def run_clock(self, at: int) -> None:
        """Restart its stopped clock: it expires later by the time in between."""
        self.expires += at - self.stopped_at if self.expires else 0
        self.stopped_at = 0


class Shown(Entity):
    """The part of a message's run that is in the log.

    ``counts`` says how often each entry is there, by its type and ``id``; a block counts when it ends. ``open`` names
    the blocks that have begun and not ended, by kind and ``id``.
    """

    counts: dict[str, int] = field(default_factory=dict)
    open: dict[str, None] = field(default_factory=dict)

    def take(self, kind: str, entry_id: str) -> None:
        """Add an entry."""
        block, _, part = kind.partition("_")
        if block in BLOCKS and part in {"start", "delta"}:
            self.open[f"{block} {entry_id}"] = None
            return
        if block in BLOCKS and part == "end":
            self.open.pop(f"{block} {entry_id}", None)
        name = f"{kind} {entry_id}"
        self.counts[name] = self.counts.get(name, 0) + 1

    def retry(self) -> None:
        """Another attempt begins, whose errors are its own: they are shown next to those of the attempts before."""
        for name in [name for name in self.counts if name.startswith("error ")]:
            del self.counts[name]


class PlainMessage(Entity):
    """An open message, without what it leads to: its thread, call and steps.

    ``digest`` is its content's, which is checked by it when it is read; without it the whole unit must be read.
    ``authors`` names whose text it may contain, agents and listeners that bring text from outside, and never changes;
    ``read`` names those whose text its handling has read since, in answers to its asks. ``first`` is the message that
    it repeats as a replayed dead letter. ``places`` has the number of each of its steps by their place; in an older
    log a step has none, and its message goes on ``by_number``.
    """

    id: str
    sender: str
    to: str
    type: str
    depth: int
    reply: bool
    authors: frozenset[str]
    position: int
    digest: str
    correlation: str | None
    read: frozenset[str] = NO_AUTHORS
    starts: int = 0
    failures: int = 0
    deaths: int = 0
    running: bool = False
    started_at: int = 0
    next_at: int = 0
    after: events.After = ""
    shown: Shown | None = None
    first: str = ""
    places: dict[str, int] | None = None
    by_number: bool = False


class Message(PlainMessage, kw_only=True):
    """An open message. ``call`` is the call in which a request was sent, or in which a reply is handled.

    ``step`` is the step that waits for its answer, ``ask`` the nearest ask above it.
    """

    thread: Thread
    call: Call | None = None
    step: Step | None = None
    ask: Step | None = None
    steps: dict[int, Step] | None = None

    @classmethod
    def sent(cls, record: Record[events.MessageSent], thread: Thread) -> Message:
        """The message that was sent."""
        event = record.event
        return cls(
            event.message,
            event.sender,
            event.to,
            event.type,
            event.depth,
            event.reply,
            frozenset(event.authors) if event.authors else NO_AUTHORS,
            record.position,
            record.digest,
            record.correlation,
            first=event.first,
            thread=thread,
        )

    @property
    def effects_key(self) -> str:
        """What the keys of its effects begin with: the same when it is a replayed dead letter."""
        return self.first or self.id

    @property
    def root(self) -> events.Root:
        """The injection that it follows from."""
        return (self.thread.roots or {}).get(self.correlation or "", NO_ROOT)

    def shows(self) -> Shown:
        """The part of its run that is in the log, made on first use."""
        self.shown = self.shown or Shown()
        return self.shown

    def is_indeterminate(self) -> bool:
        """Whether the outcome of one of its unsafe effects is unknown."""
        return self.steps is not None and any(step.unknown for step in self.steps.values())

    def awaits_consent(self) -> bool:
        """Whether a person is being asked whether it may be handled."""
        return self.steps is not None and CONSENT in self.steps and self.steps[CONSENT].ok is None

    def is_waiting_in_step(self) -> bool:
        """Whether its handler waits in an ask, an approval or a model call, and so runs no code."""
        return self.steps is not None and any(step.ok is None and step.kind in WAITS for step in self.steps.values())


def stopped_steps(message: Message, *, is_paused: bool) -> Iterable[Step]:
    """The steps whose clocks this message stops.

    A pause stops its own waiting steps and the asks that wait for it. A question whether it may be handled stops the
    asks alone: the question expires by itself.
    """
    if is_paused:
        yield from (step for step in (message.steps or {}).values() if step.ok is None and step.kind in WAITS)
    if is_paused or message.awaits_consent():
        yield from asks_above(message)


def asks_above(message: Message) -> Iterable[Step]:
    """The asks that wait for an answer from the message's branch, nearest first."""
    ask, seen = message.ask, set[Step]()
    while ask is not None and ask not in seen:
        seen.add(ask)
        yield ask
        ask = ask.message.ask
