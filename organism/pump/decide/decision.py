"""A decision: a unit in the making. It is made without awaiting, so each sees the state that the previous one left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from msgspec import field

from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Actor, Content, Record, Unit
from organism.model.ids import session_of
from organism.model.thread import Message, Step, Thread
from organism.pump.state import State

NO_REPLY: Final = events.StepError("no_reply", "Nothing is left that could answer.")

E = TypeVar("E", bound=events.Event)


OnWritten = Callable[["Decision"], None]


class Arrival(Entity):
    """A message that waits for its start from now on; if it was just sent, with its record and decoded payload."""

    message: Message
    record: Record[events.MessageSent] | None = None
    payload: Any = None
    generation: int = 0  # of the rules

    def on_disk(self) -> None:
        """The message is in the log and can be read from there."""
        if self.record is not None:
            self.message.position, self.message.digest = self.record.position, self.record.digest


class StepEnd(Entity):
    """A step has its result, recorded by ``record``: the content of another one, if any, and its decoded ``value``."""

    step: Step
    record: Record[events.Event]
    content: Record[events.Event] | None = None
    value: Any = None


class Decision(Unit, kw_only=True, eq=False):
    """A unit, and what to do once it is on disk."""

    state: State
    thread: Thread | None
    arrivals: list[Arrival] = field(default_factory=list)
    ended: list[Message] = field(default_factory=list)  # those that it closed
    stops: Sequence[Callable[[], object]] = ()  # to call once it is on disk, first
    starts: Sequence[Message] = ()  # to begin then
    resumed: Sequence[Message] = ()  # to go on then
    recorded: Sequence[StepEnd] = ()  # steps that it ended
    on_written: OnWritten | None = None  # to call last
    failed: Exception | None = None  # why it never will be on disk

    @classmethod
    def on(
        cls, state: State, thread: Thread | None, cause: Message | None = None, actor: Actor | None = None
    ) -> Decision:
        """Begin a decision on a thread (None: on the organism), caused by a message's handling or by an actor."""
        thread_id = thread.id if thread is not None else None
        if cause is None:
            return cls(thread_id, [], state.now(), {}, None, None, actor, state=state, thread=thread)
        return cls(thread_id, [], state.now(), {}, cause.id, cause.correlation, actor, state=state, thread=thread)

    def add(self, event: E, content: Content | None = None, thread: str | None = None) -> Record[E]:
        """Add an event and fold it; the log gives its record its position."""
        record = Record(event, content, thread or self.thread_id, self.at, self.cause, self.correlation, self.actor)
        self.records.append(record)
        self.state.folded.fold(record)
        return record

    def add_of(self, message: Message, event: E) -> Record[E]:
        """Add an event of an open message: in its thread, with its correlation, whatever the decision is about."""
        thread = message.thread.id
        record = Record(event, None, thread, self.at, self.cause, message.correlation, self.actor)
        self.records.append(record)
        self.state.folded.fold(record)
        return record

    def add_to_session(self, session_id: str, event: events.SessionEvent, content: Content | None = None) -> None:
        """Add an event to a session's stream, which must be at its last known position."""
        session = self.state.folded.sessions.get(session_id)
        if session is not None and session.head:
            self.expect[session_id] = session.head
        self.add(event, content, session_id)

    def open_thread(self, thread_id: str, event: events.ThreadCreated | events.ThreadReopened) -> None:
        """Begin or reopen the thread that the decision is on."""
        self.thread_id = thread_id
        if isinstance(event, events.ThreadCreated):
            self.expect[thread_id] = 0
        self.add(event)
        self.thread = self.state.folded.threads[thread_id]

    def put(self, record: Record[events.MessageSent], payload: Any, generation: int) -> None:
        """Queue the message that was just sent."""
        message = self.state.folded.messages[record.event.message]
        self.arrivals.append(Arrival(message, record, payload, generation))

    def queue(self, message: Message) -> None:
        """Queue a message of an earlier life."""
        self.arrivals.append(Arrival(message))

    def handled(self, message: Message, outcome: events.Outcome) -> None:
        """End the handling of a message."""
        duration, attempt = (self.at - message.started_at, message.starts) if message.running else (0, 0)
        self.add(events.MessageHandled(message.id, message.to, outcome, duration, attempt), thread=message.thread.id)
        self.ended.append(message)

    def find_unknown(self, message: Message) -> bool:
        """Mark each unsafe effect that still ran when the handling ended as unknown; returns whether there is any."""
        unknown = [step for step in (message.steps or {}).values() if step.ok is None and step.effect == "unsafe"]
        for step in unknown:
            if not step.unknown:
                named = message.id, message.to, step.number, step.kind, step.input
                found = events.StepStarted(
                    *named, effect=step.effect, key=step.key, unknown=True, place=step.place, began=step.began
                )
                self.add(found, thread=message.thread.id)
        return bool(unknown)

    def record(
        self, step: Step, error: events.StepError | None = None, content: Content | None = None, value: Any = None
    ) -> None:
        """Record the result of a step: ``content`` is its JSON, ``value`` the same decoded."""
        record = self.add(step.recorded(error), content, step.message.thread.id)
        step = (step.message.steps or {}).get(step.number, step)  # the one in the state, if the fold has just made it
        self.end_step(StepEnd(step, record, record if content is not None else None, value))

    def answer(self, step: Step, record: Record[events.MessageSent], payload: Any) -> None:
        """The message that was just sent answers an ask, which ends both."""
        self.add(events.MessageHandled(record.event.message, record.event.to, "answered", duration=0))
        recorded = self.add(step.recorded(), None, step.message.thread.id)
        self.end_step(StepEnd(step, recorded, record, payload))

    def end_step(self, end: StepEnd) -> None:
        """Note that this unit records a step."""
        self.recorded = (*self.recorded, end)

    def start(self, message: Message) -> None:
        """Start a message, which has its slot and its line."""
        listener = self.state.rules.listeners.get(message.to)
        started = events.MessageStarted(
            message.id,
            message.to,
            attempt=message.starts + 1,
            deadline=self.at + (int(listener.timeout_s * 1_000_000) if listener is not None else 0),
            version=listener.version if listener is not None else "",
            after=message.after,
        )
        thread = message.thread
        self.add_of(message, started)
        if thread is not self.thread and thread.head:
            self.expect[thread.id] = thread.head

    def close_asks(self) -> None:
        """Fail each ask that no open message can answer any more."""
        for message in self.ended:
            ask = message.ask
            if ask is not None and ask.open == 0 and ask.ok is None:
                self.record(ask, ask.lost or NO_REPLY)

    def end_thread(self, thread: Thread, outcome: events.TurnOutcome = "completed") -> None:
        """End the thread if nothing of it is open; ``outcome`` is how a turn ends that has not failed."""
        if self.state.folded.open_in(thread) or thread.id not in self.state.folded.threads:
            return
        parent, todos = thread.parent, thread.todos or {}
        if thread.failed:
            self.add(events.ThreadFailed(thread.reason, parent, todos), thread=thread.id)
        else:
            self.add(events.ThreadCompleted(parent, todos), thread=thread.id)
        self.end_turn(thread, "failed" if thread.failed else outcome)

    def end_turn(self, thread: Thread, outcome: events.TurnOutcome) -> None:
        """The thread has ended: if it is a turn of a session, the next one may run."""
        session_id = session_of(thread.id)
        if thread.turn is not None and session_id is not None:
            turn = thread.turn
            self.add_to_session(
                session_id, events.TurnEnded(thread.id, outcome, turn.said, tuple(sorted(turn.authors)))
            )

    def close(self) -> None:
        """Complete the unit: set the positions that it depends on."""
        if self.thread is not None and self.thread.head:
            self.expect[self.thread.id] = self.thread.head
