"""A decision: a unit in the making. It is made without awaiting, so each sees the state that the one before it left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from msgspec import field

from organism.events.record import Actor, Content, Record, Unit
from organism.events.vocabulary import (
    Event,
    MessageHandled,
    MessageSent,
    MessageStarted,
    Outcome,
    StepError,
    StepStarted,
    ThreadCompleted,
    ThreadCreated,
    ThreadFailed,
    ThreadReopened,
)
from organism.model.ids import Ids
from organism.model.thread import Message, Step, Thread
from organism.pump.mailboxes import Mailboxes
from organism.pump.rules import Rules
from organism.pump.state import Folded

NO_REPLY: Final = StepError("no_reply", "Nothing is left that could answer.")
DECODED_PER_MAILBOX: Final = 256
"""Decoded payloads kept for each mailbox; what waits beyond is read from the log at its start."""

E = TypeVar("E", bound=Event)


class State:
    """What decisions rest on. ``now`` gives the log's time in µs."""

    __slots__ = ("boxes", "confirms", "folded", "ids", "now", "routing", "rules", "spend")

    def __init__(self, folded: Folded, rules: Rules, ids: Ids, now: Callable[[], int]) -> None:
        self.folded = folded
        self.routing, self.spend, self.confirms = folded.routing, folded.spend, folded.confirms
        self.rules = rules
        self.ids = ids
        self.now = now
        self.boxes = Mailboxes(rules.limits.max_concurrent_handlers)
        for listener in rules.listeners.values():
            self.boxes.box(listener.name, listener.max_concurrent, paused=listener.name in self.routing.paused_agents)
        self.boxes.paused = self.routing.paused

    def decide(self, thread: Thread | None, cause: Message | None = None, actor: Actor | None = None) -> Decision:
        """Begin a decision on a thread (None: on the organism), caused by a message's handling or by an actor."""
        thread_id = thread.id if thread is not None else None
        if cause is None:
            return Decision(thread_id, [], self.now(), {}, None, None, actor, state=self, thread=thread)
        return Decision(thread_id, [], self.now(), {}, cause.id, cause.correlation, actor, state=self, thread=thread)


Tell = Callable[["Decision"], None]


class Decision(Unit, kw_only=True, eq=False):
    """A unit, and what follows once it is on disk."""

    state: State
    thread: Thread | None
    sent: list[tuple[Message, Record[MessageSent]]] = field(default_factory=list)  # its new open messages
    ended: list[Message] = field(default_factory=list)  # those that it closed
    stops: Sequence[Callable[[], object]] = ()  # to call once it is on disk, first
    starts: Sequence[Message] = ()  # to begin then
    resumed: Sequence[Message] = ()  # to go on then
    recorded: Sequence[Step] = ()  # steps that it ended
    results: Sequence[tuple[Step, Record[Any]]] = ()  # those that have a result, with the record that holds it
    ends: Sequence[str] = ()  # threads that it ended
    tell: Tell | None = None  # to call last
    failed: Exception | None = None  # why it never will be on disk

    def add(self, event: E, content: Content | None = None, thread: str | None = None) -> Record[E]:
        """Add an event and fold it; the log gives its record its position."""
        record = Record(event, content, thread or self.thread_id, self.at, self.cause, self.correlation, self.actor)
        self.records.append(record)
        self.state.folded.fold(record)
        return record

    def open_thread(self, thread_id: str, event: ThreadCreated | ThreadReopened) -> None:
        """The decision is on a thread that begins, or begins again."""
        self.thread_id = thread_id
        if isinstance(event, ThreadCreated):
            self.expect[thread_id] = 0
        self.add(event)
        self.thread = self.state.routing.threads[thread_id]

    def put(self, record: Record[MessageSent], payload: Any, generation: int) -> None:
        """A message that was just sent joins its receiver's mailbox, with its decoded payload if there is room."""
        state = self.state
        message = state.routing.messages[record.event.message]
        boxes = state.boxes
        if boxes.boxes[message.to].waiting < DECODED_PER_MAILBOX:
            message.payload = payload
            message.generation = generation
        boxes.put(message)
        self.sent.append((message, record))

    def handled(self, message: Message, outcome: Outcome) -> None:
        """A message's handling ended."""
        duration = self.at - message.started_at if message.running else 0
        self.add(MessageHandled(message.id, message.to, outcome, duration), thread=message.thread.id)
        self.ended.append(message)

    def find_unknown(self, message: Message) -> bool:
        """Mark each unsafe effect of an ended handling that was still running: its outcome is unknown."""
        unknown = [step for step in (message.steps or {}).values() if step.ok is None and step.effect == "unsafe"]
        for step in unknown:
            if not step.unknown:
                named = message.id, message.to, step.number, step.kind, step.input
                found = StepStarted(*named, effect=step.effect, key=step.key, unknown=True)
                self.add(found, thread=message.thread.id)
        return bool(unknown)

    def record(self, step: Step, error: StepError | None = None, content: Content | None = None) -> None:
        """A step of a handling got its result; ``content`` is its JSON."""
        record = self.add(step.recorded(error), content, step.message.thread.id)
        step = (step.message.steps or {}).get(step.number, step)  # the fold's own, if it has made one just now
        if content is not None:
            self.set_result(step, record)
        self.end_step(step)
        handling = step.message.handling
        if handling is not None and handling.step_ended(step):
            self.resumed = (*self.resumed, step.message)

    def answer(self, step: Step, record: Record[MessageSent], payload: Any) -> None:
        """The message that was just sent answers an ask: it is handled with it."""
        self.add(MessageHandled(record.event.message, record.event.to, "answered", duration=0))
        step.result = payload
        self.set_result(step, record)
        self.record(step)

    def set_result(self, step: Step, record: Record[Any]) -> None:
        """The step's result is the content of this record."""
        self.results = (*self.results, (step, record))

    def end_step(self, step: Step) -> None:
        """The step is recorded by this unit."""
        step.is_written = False
        self.recorded = (*self.recorded, step)

    def start(self, message: Message) -> None:
        """A message has its slot and its line."""
        listener = self.state.rules.listeners.get(message.to)
        started = MessageStarted(
            message.id,
            message.to,
            attempt=message.starts + 1,
            deadline=self.at + (int(listener.timeout_s * 1_000_000) if listener is not None else 0),
            version=listener.version if listener is not None else "",
            after=message.after,
        )
        thread = message.thread
        self.add(started, thread=thread.id)
        if thread is not self.thread and thread.head:
            self.expect[thread.id] = thread.head

    def close(self) -> None:
        """Complete the unit: unanswerable asks, what may go on, what may start, the end of the thread."""
        state = self.state
        for message in self.ended:
            ask = message.ask
            if ask is not None and ask.open == 0 and ask.ok is None:
                self.record(ask, NO_REPLY)
        boxes = state.boxes
        if boxes.fair_share is not None:
            boxes.fair_share(boxes)
        if boxes.resuming:
            self.resumed = (*self.resumed, *boxes.resumed())
        if boxes.ready:
            self.starts = boxes.starts()
            for message in self.starts:
                self.start(message)
        thread = self.thread
        if thread is not None:
            if thread.open == 0 and thread.id in state.routing.threads:
                self._end(thread)
            if thread.head:
                self.expect[thread.id] = thread.head

    def _end(self, thread: Thread) -> None:
        parent, todos = thread.parent, thread.todos or {}
        if thread.failed:
            self.add(ThreadFailed(thread.reason, parent, todos))
        else:
            self.add(ThreadCompleted(parent, todos))
        self.ends = (thread.id,)
