"""What decisions rest on, folded from the log: open messages with their calls and steps; what is due, paused, spent.

The running pump applies the fold to every event that it makes, at the decision, so that the next decision rests on it;
a start applies it to the log.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from heapq import heapify, heappop, heappush
from typing import Any, Final, NamedTuple, Never

from msgspec import Struct, field
from msgspec.structs import replace

from organism.config.tenant import TenantConfig, effective
from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Record
from organism.model.ids import CONSOLE, Ids, session_of, turn_number
from organism.model.thread import (
    CONSENT,
    NO_AUTHORS,
    Call,
    Message,
    Session,
    Step,
    Thread,
    Turn,
    asks_above,
    stopped_steps,
)
from organism.pump.rules import Rules
from organism.pump.spending import Spending

SHORT_LIFE_US: Final = 12_000_000
"""A shorter life in which something started and nothing ended counts towards a crash loop (G8)."""


DUE_KEPT: Final = 1024
MOST_OPEN_TOKENS: Final = 16
"""Confirm tokens of a thread: one more makes the oldest invalid."""
TOKEN_MEMORY_US: Final = 600_000_000
"""How long a token is known at least after its end, so that a late use gets the reason."""


class Confirmation(NamedTuple):
    """What a token confirms. ``used_by`` is the message that it was used in, if it was.

    ``sender`` is who was shown the preview, ``authors`` whose text they had read before it.
    """

    thread: str
    digest: str
    expires: int
    version: str = ""
    used_by: str = ""
    sender: str = ""
    authors: frozenset[str] = NO_AUTHORS

    def is_open(self, at: int) -> bool:
        return not self.used_by and at < self.expires


class Confirmations(Entity):
    """All of a tenant, by the hash of the token, oldest first; ``open_in`` has those of a thread that may be open."""

    by_token: dict[str, Confirmation] = field(default_factory=dict)
    open_in: dict[str, list[str]] = field(default_factory=dict)

    def requested(self, record: Record[events.ConfirmRequested], messages: Mapping[str, Message]) -> None:
        """Take a token."""
        event, thread, at = record.event, record.thread or "", record.at
        self._forget(at, messages)
        known = self.by_token
        open_here = [token for token in self.open_in.get(thread, ()) if known[token].is_open(at)]
        while len(open_here) >= MOST_OPEN_TOKENS:
            token = open_here.pop(0)
            known[token] = known[token]._replace(expires=at)
        new = Confirmation(thread, event.digest, event.expires_at, event.version)
        if (shown := messages.get(event.message)) is not None:
            new = new._replace(sender=shown.sender, authors=shown.authors)
        known[event.token] = new
        self.open_in[thread] = [*open_here, event.token]

    def _forget(self, at: int, messages: Mapping[str, Message]) -> None:
        """Forget the oldest that ended long ago, up to the first that an open message depends on."""
        over = []
        for token, each in self.by_token.items():
            if at < each.expires + TOKEN_MEMORY_US or each.used_by in messages:
                break
            over.append(token)
        for token in over:
            thread = self.by_token.pop(token).thread
            if token in self.open_in.get(thread, ()):
                self.open_in[thread].remove(token)
                if not self.open_in[thread]:
                    del self.open_in[thread]

    def redeemed(self, record: Record[events.ConfirmRedeemed]) -> None:
        token = record.event.token
        if token in self.by_token:
            self.by_token[token] = self.by_token[token]._replace(used_by=record.event.message)


class Timer(Struct, frozen=True):
    """Something of a message that is due at a time in µs. What is due at the same time is due by its message's id."""

    at: int
    message: str

    def __lt__(self, other: Timer) -> bool:
        return (self.at, self.message) < (other.at, other.message)


class Retry(Timer, frozen=True, tag="retry"):
    """A message's next attempt."""


class StepDue(Timer, frozen=True, tag="step"):
    """The end of its ask or approval."""

    step: int


Due = Retry | StepDue


class FoldedState(Entity):
    """The folded state. Only ``fold`` and the pump's decisions change it.

    ``messages`` are the open ones, oldest first; ``by_thread`` has them by their thread. ``children`` has the threads
    that have a parent, by it; ``by_session`` those of a session, by that.
    ``sessions`` are those with open turns; ``unerased`` those that are deleted and whose contents are still there.
    ``due`` is a heap of what is due. Entries that are obsolete are dropped at their time, or when the heap is full.
    """

    threads: dict[str, Thread] = field(default_factory=dict)
    messages: dict[str, Message] = field(default_factory=dict)
    by_thread: dict[str, dict[str, Message]] = field(default_factory=dict)
    children: dict[str, dict[str, Thread]] = field(default_factory=dict)
    by_session: dict[str, dict[str, Thread]] = field(default_factory=dict)
    sessions: dict[str, Session] = field(default_factory=dict)
    unerased: set[str] = field(default_factory=set)
    paused: bool = False
    paused_agents: set[str] = field(default_factory=set)
    failures_in_row: dict[str, int] = field(default_factory=dict)
    position: int = 0
    last_at: int = 0
    life: int = 0
    life_at: int = 0
    life_started: bool = False
    life_ended: bool = False
    clean: bool = True
    short_lives: int = 0
    due: list[Due] = field(default_factory=list)
    due_room: int = DUE_KEPT
    spend: Spending = field(default_factory=Spending)
    confirmations: Confirmations = field(default_factory=Confirmations)
    config: dict[str, Any] = field(default_factory=dict)  # the keys that the tenant has written
    tenants: set[str] = field(default_factory=set)  # in the operator's log: the others that have one

    def fold(self, record: Record[events.Event]) -> None:
        """Take one record, which may have no position yet."""
        fold = FOLDS.get(type(record.event))
        if fold is not None:
            fold(self, record)  # type: ignore[arg-type]  # the fold of the event's own class

    def apply(self, record: Record[events.Event]) -> None:
        """Take one record of the log."""
        self.fold(record)
        self.position, self.last_at = record.position, record.at
        stream = self.stream(record.thread)
        if stream is not None:
            stream.head = record.position

    def stream(self, stream_id: str | None) -> Thread | Session | None:
        """The active thread, or the session with open turns, of that id."""
        return self.threads.get(stream_id or "") or self.sessions.get(stream_id or "")

    def turn(self, thread_id: str) -> Turn:
        """What the active thread is to its session. Raises ``LookupError`` if it is no turn."""
        turn = self.threads[thread_id].turn
        if turn is None:
            raise LookupError(f"Thread {thread_id} is no turn of a session.")
        return turn

    def step(self, message_id: str, number: int) -> Step | None:
        message = self.messages.get(message_id)
        return message.steps.get(number) if message is not None and message.steps else None

    def is_paused(self, message: Message) -> bool:
        """Whether the message's agent, its thread or the organism is paused."""
        return self.paused or message.thread.paused or message.to in self.paused_agents

    def turn_clocks(self, at: int, thread: Thread | None = None) -> None:
        """A pause or a question, of one thread or of all, began or ended: stop or restart the clocks that it concerns.

        An ask and what waits for it are in one thread.
        """
        messages = self.messages.values() if thread is None else self.open_in(thread)
        stopped: set[Step] = set()
        for message in messages:
            stopped.update(stopped_steps(message, is_paused=self.is_paused(message)))
        for message in messages:
            for step in (message.steps or {}).values():
                if step in stopped:
                    step.stop_clock(at)
                elif step.stopped_at:
                    step.run_clock(at)
                    if step.expires:
                        self.schedule(StepDue(step.expires, message.id, step.number))

    def schedule(self, due: Due) -> None:
        """Add to what is due."""
        if len(self.due) >= self.due_room:
            self.schedule_all()
        heappush(self.due, due)

    def schedule_all(self) -> None:
        """Rebuild ``due`` from the open messages."""
        self.due = [due for message in self.messages.values() for due in _due_of(message)]
        heapify(self.due)
        self.due_room = max(DUE_KEPT, 2 * len(self.due))

    def next_due(self, now: int) -> Due | None:
        """Take the first that is due by now, if any."""
        while self.due and self.due[0].at <= now:
            due = heappop(self.due)
            message = self.messages.get(due.message)
            if message is not None and due in _due_of(message):
                return due
        return None

    def open_in(self, thread: Thread) -> Collection[Message]:
        """The open messages of the thread, oldest first."""
        return self.by_thread.get(thread.id, {}).values()

    def begin_thread(self, thread: Thread) -> None:
        """Take an active thread."""
        self.threads[thread.id] = thread
        for index, key in self._indexes_of(thread):
            index.setdefault(key, {})[thread.id] = thread

    def end_thread(self, thread_id: str) -> None:
        """Close an active thread, if it is one."""
        thread = self.threads.pop(thread_id, None)
        if thread is None:
            return
        for index, key in self._indexes_of(thread):
            del index[key][thread_id]
            if not index[key]:
                del index[key]

    def _indexes_of(self, thread: Thread) -> Iterator[tuple[dict[str, dict[str, Thread]], str]]:
        """Where the thread stands besides ``threads``, and under what."""
        if thread.parent is not None:
            yield self.children, thread.parent
        if (session_id := session_of(thread.id)) is not None:
            yield self.by_session, session_id

    def begin(self, message: Message) -> None:
        """Take an open message."""
        self.messages[message.id] = message
        self.by_thread.setdefault(message.thread.id, {})[message.id] = message

    def end(self, message_id: str) -> None:
        """Close an open message."""
        message = self.messages.pop(message_id, None)
        if message is None:
            return
        thread, siblings = message.thread, self.by_thread[message.thread.id]
        del siblings[message_id]
        if not siblings:
            del self.by_thread[thread.id]
        if message.ask is not None:
            message.ask.open -= 1
        if thread.turn is not None and thread.turn.message == message_id:
            thread.turn.authors = message.authors | message.read


def _due_of(message: Message) -> Iterator[Due]:
    if message.next_at and not message.running:
        yield Retry(message.next_at, message.id)
    for step in (message.steps or {}).values():
        if step.expires and step.ok is None and not step.stopped_at:
            yield StepDue(step.expires, message.id, step.number)


def _message_sent(state: FoldedState, record: Record[events.MessageSent]) -> None:
    event = record.event
    thread = state.threads[record.thread or ""]
    todos = thread.todos or {}
    for name, todo in todos.items():
        if todo.wait_for == event.type and todo.from_listener in {"", event.sender}:
            todos[name] = replace(todo, met=True)
    if event.answers is not None:
        step = state.step(*event.answers)
        if step is not None:
            step.content_at = record.position
            step.message.read = step.message.read.union(event.authors)
        return
    if event.to == CONSOLE:
        return
    message = Message.sent(record, thread)
    if event.step is not None:
        _place_in_ask(message, state.step(*event.step))
    _place_in_call(state, message, record)
    if message.ask is not None:
        message.ask.open += 1
    state.begin(message)
    if message.ask is not None and state.is_paused(message):
        for step in asks_above(message):
            step.stop_clock(record.at)


def _place_in_ask(message: Message, ask: Step | None) -> None:
    """An ask has sent the message; of a group's, the first stands for all."""
    message.step = message.ask = ask
    if ask is not None:
        ask.request = ask.request or message.id


def _place_in_call(state: FoldedState, message: Message, record: Record[events.MessageSent]) -> None:
    """Put a message into the call of its cause; a reply goes up to the call that it names."""
    event, thread = record.event, message.thread
    cause = state.messages.get(record.cause or "")
    if event.calls is not None:
        for call_id, caller in reversed(event.calls):
            message.call = Call(call_id, caller, message.call)
        if event.root is not None:
            thread.begin_chain(record.correlation, event.root, state.open_in(thread))
    elif cause is not None:
        call = cause.call
        if message.reply and call is not None and event.call != call.id:
            call = call.parent
        message.call = call
        if message.ask is None and call is not None:
            message.ask = call.ask
    elif record.actor is not None:
        root = events.Root(record.actor.principal, event.caller_depth, record.actor.user)
        thread.begin_chain(record.correlation, root, state.open_in(thread))


def _message_started(state: FoldedState, record: Record[events.MessageStarted]) -> None:
    message = state.messages[record.event.message]
    message.starts += 1
    message.running = True
    message.started_at = record.at
    message.next_at = 0
    for todo in (message.thread.todos or {}).values():
        if todo.agent == message.to:
            message.read = message.read.union(todo.authors)
    if not message.reply and message.starts == 1:
        message.call = call = Call(message.id, message.sender, message.call)
        call.step, call.ask = message.step, message.ask
    state.life_started = True


def _message_handled(state: FoldedState, record: Record[events.MessageHandled]) -> None:
    event = record.event
    state.end(event.message)
    state.life_ended = True
    if event.outcome == "done":
        state.failures_in_row.pop(event.agent, None)


def _message_dropped(state: FoldedState, record: Record[events.MessageDropped]) -> None:
    state.end(record.event.message)


def _message_retried(state: FoldedState, record: Record[events.MessageRetried]) -> None:
    """The new attempt replays what succeeded and runs the rest again; what failed for good stays failed."""
    message = state.messages[record.event.message]
    message.running = False
    message.failures += 1
    message.after = "retry"
    message.next_at = record.event.next_at
    state.schedule(Retry(message.next_at, message.id))
    if message.shown is not None:
        message.shown.retry()
    steps, message.steps = message.steps or {}, {}
    for number, step in steps.items():
        if step.ok or step.unknown or (step.error is not None and step.error.code == "effect_failed"):
            message.steps[number] = step
        else:
            step.ok = False
    message.steps = message.steps or None


def _message_dead(state: FoldedState, record: Record[events.MessageDead]) -> None:
    event = record.event
    message = state.messages.get(event.message)
    if message is not None:
        message.thread.failed += 1
        message.thread.reason = event.reason
        if message.ask is not None:
            message.ask.lost = _lost(message, event)
    state.end(event.message)
    state.life_ended = True
    state.failures_in_row[event.agent] = state.failures_in_row.get(event.agent, 0) + 1


def _lost(message: Message, dead: events.MessageDead) -> events.StepError:
    """What the ask in whose branch the message died gets if nothing else answers it."""
    errors = [step.error for step in (message.steps or {}).values() if step.error is not None]
    cause = next((error.cause for error in errors if dead.root and error.dead_letter == dead.root), dead.reason)
    root = dead.root or dead.message
    if message.step is message.ask:
        return events.StepError("dead_letter", "The message became a dead letter.", cause, root)
    return events.StepError("no_reply", "Nothing is left that could answer.", cause, root)


def _dead_letter_closed(state: FoldedState, record: Record[events.MessageReplayed | events.MessageDiscarded]) -> None:
    """Handlings that fail from now on do not fail because of it any more."""
    event, thread = record.event, state.threads.get(record.thread or "")
    if thread is None:
        return
    if event.failed:
        thread.failed = max(0, thread.failed - 1)
    closed = event.dead if isinstance(event, events.MessageReplayed) else event.message
    for message in state.open_in(thread):
        for step in (message.steps or {}).values():
            if step.error is not None and step.error.dead_letter == closed:
                step.error = replace(step.error, dead_letter="")
            if step.lost is not None and step.lost.dead_letter == closed:
                step.lost = None


def _thread_created(state: FoldedState, record: Record[events.ThreadCreated]) -> None:
    thread_id = record.thread or ""
    if thread_id not in state.threads:  # that of a turn began with the turn
        state.begin_thread(Thread(thread_id, parent=record.event.parent))


def _turn_started(state: FoldedState, record: Record[events.TurnStarted]) -> None:
    """Its thread, which begins in the same unit, runs once the turns before it have ended."""
    event, session_id = record.event, record.thread or ""
    session = state.sessions.setdefault(session_id, Session(0))
    session.number = turn_number(event.turn)
    session.turns.append(event.turn)
    turn = Turn(event.message, event.on_busy, waits=len(session.turns) > 1, budget=event.budget)
    state.begin_thread(Thread(event.turn, turn=turn))


def _turn_appended(state: FoldedState, record: Record[events.TurnAppended]) -> None:
    """The running turn reads what the message may contain."""
    message = state.messages[record.event.message]
    running = state.messages[state.turn(record.event.turn).message]
    running.read = running.read.union(message.authors, message.read)


def _turn_ended(state: FoldedState, record: Record[events.TurnEnded]) -> None:
    """The next turn may run; those that wait will read what this one has brought into the session."""
    event, session_id = record.event, record.thread or ""
    session = state.sessions[session_id]
    session.turns.remove(event.turn)
    if not session.turns:
        del state.sessions[session_id]
        return
    state.turn(session.turns[0]).waits = False
    for turn in session.turns:
        message = state.messages.get(state.turn(turn).message)
        if message is not None:
            message.read = message.read.union(event.authors)


def _thread_reopened(state: FoldedState, record: Record[events.ThreadReopened]) -> None:
    event, thread_id = record.event, record.thread or ""
    thread = Thread(
        thread_id,
        failed=event.failed,
        reason=event.reason,
        paused=event.paused,
        parent=event.parent,
        todos=dict(event.todos) or None,
    )
    state.begin_thread(thread)
    state.spend.thread_reopened(record)


def _thread_ended(
    state: FoldedState, record: Record[events.ThreadCompleted | events.ThreadFailed | events.ThreadKilled]
) -> None:
    state.end_thread(record.thread or "")


def _thread_paused_or_resumed(state: FoldedState, record: Record[events.ThreadPaused | events.ThreadResumed]) -> None:
    thread = state.threads.get(record.thread or "")
    if thread is not None:
        thread.paused = isinstance(record.event, events.ThreadPaused)
        state.turn_clocks(record.at, thread)


def _agent_paused(state: FoldedState, record: Record[events.AgentPaused]) -> None:
    state.paused_agents.add(record.event.agent)
    state.failures_in_row.pop(record.event.agent, None)
    state.turn_clocks(record.at)


def _agent_resumed(state: FoldedState, record: Record[events.AgentResumed]) -> None:
    state.paused_agents.discard(record.event.agent)
    state.turn_clocks(record.at)


def _organism_paused_or_resumed(
    state: FoldedState, record: Record[events.OrganismPaused | events.OrganismResumed]
) -> None:
    state.paused = isinstance(record.event, events.OrganismPaused)
    if not state.paused:
        state.short_lives = 0
    state.turn_clocks(record.at)


def _organism_started(state: FoldedState, record: Record[events.OrganismStarted]) -> None:
    """A new life: what ran when the last one ended waits again, and counts a crash unless that was a clean stop."""
    clean = record.event.clean
    short = not clean and state.life_started and not state.life_ended and state.last_at - state.life_at <= SHORT_LIFE_US
    state.short_lives = state.short_lives + 1 if short else 0
    for message in state.messages.values():
        if message.running:
            message.running = False
            message.after = "stop" if clean else "death"
            message.deaths += not clean and not message.is_waiting_in_step()
    state.life = record.event.life
    state.life_at = record.at
    state.life_started = state.life_ended = False
    state.clean = False


def _organism_stopped(state: FoldedState, _record: Record[events.OrganismStopped]) -> None:
    state.clean = True


def _step_started(state: FoldedState, record: Record[events.StepStarted]) -> None:
    event = record.event
    message = state.messages[event.message]
    if event.unknown:
        if message.steps is not None:
            message.steps[event.step].unknown = True
        return
    if message.steps is None:
        message.steps = {}
    _note_place(message, event)
    message.steps[event.step] = Step(
        event.step,
        event.kind,
        event.input,
        effect=event.effect,
        key=event.key,
        approval=event.approval,
        expires=event.expires,
        place=event.place,
        to=event.to,
        model=event.model,
        began=record.at,
        message=message,
    )
    if event.expires:
        state.schedule(StepDue(event.expires, message.id, event.step))
    if event.step == CONSENT:
        for step in stopped_steps(message, is_paused=state.is_paused(message)):
            step.stop_clock(record.at)


def _note_place(message: Message, event: events.StepStarted | events.StepRecorded) -> None:
    if event.place:
        message.places = message.places or {}
        message.places[event.place] = event.step
    elif event.step != CONSENT:
        message.by_number = True


def _step_recorded(state: FoldedState, record: Record[events.StepRecorded]) -> None:
    event = record.event
    message = state.messages.get(event.message)
    if message is None:
        return
    if message.steps is None:
        message.steps = {}
    step = message.steps.get(event.step)
    if step is None:
        _note_place(message, event)
        step = Step(event.step, event.kind, event.input, place=event.place, message=message)
        message.steps[event.step] = step
    step.ended_at = record.position
    step.error = event.error
    step.ok = step.error is None
    step.unknown = False
    if step.kind != "ask":
        step.content_at = record.position
    if step.number == CONSENT and message.ask is not None:  # the asks above may go on
        state.turn_clocks(record.at, message.thread)


def _step_resolved(state: FoldedState, record: Record[events.StepResolved]) -> None:
    event = record.event
    step = state.step(event.message, event.step)
    if step is None:
        return
    step.unknown = False
    step.ended_at = record.position
    if event.outcome == "done":
        step.ok, step.content_at = True, record.position
    elif event.outcome == "fail":
        step.ok, step.error = False, events.StepError("effect_failed", "An operator said that this effect failed.")
    elif step.message.steps is not None:
        del step.message.steps[step.number]


def _todo_registered(state: FoldedState, record: Record[events.TodoRegistered]) -> None:
    event, thread = record.event, state.threads[record.thread or ""]
    if thread.todos is None:
        thread.todos = {}
    wanted = (event.wait_for, event.from_listener, event.description)
    thread.todos[event.todo] = events.Todo(event.todo, event.agent, *wanted, met=False, authors=event.authors)


def _todo_closed(state: FoldedState, record: Record[events.TodoClosed]) -> None:
    thread = state.threads.get(record.thread or "")
    if thread is not None and thread.todos:
        thread.todos.pop(record.event.todo, None)


def _run_entry(state: FoldedState, record: Record[events.RunEvent]) -> None:
    """An entry of an open message's run: the next attempt shows only what the log does not hold."""
    message = state.messages.get(record.event.message)
    if message is None:
        return
    message.shows().take(record.type.removeprefix("run_"), record.event.id or "")
    turn = message.thread.turn
    if turn is not None and turn.message == message.id and events.begins_message(record.event):
        turn.said += 1


def _budget_reserved(state: FoldedState, record: Record[events.BudgetReserved]) -> None:
    if state.spend.is_full():
        state.spend.forget(state.messages, state.threads)
    thread = state.threads.get(record.thread or "")
    has_budget = thread is not None and thread.turn is not None and thread.turn.budget is not None
    state.spend.reserved(record, thread.owner if thread is not None and has_budget else None)


def _tenant_config_changed(state: FoldedState, record: Record[events.TenantConfigChanged]) -> None:
    written = {**state.config, **record.event.changes}
    state.config = {key: value for key, value in written.items() if value is not None}


FOLDS: Final[Mapping[type[events.Event], Callable[[FoldedState, Record[Never]], None]]] = {
    events.MessageSent: _message_sent,
    events.MessageStarted: _message_started,
    events.MessageHandled: _message_handled,
    events.MessageDropped: _message_dropped,
    events.MessageRetried: _message_retried,
    events.MessageDead: _message_dead,
    events.MessageReplayed: _dead_letter_closed,
    events.MessageDiscarded: _dead_letter_closed,
    events.ThreadCreated: _thread_created,
    events.ThreadReopened: _thread_reopened,
    events.ThreadCompleted: _thread_ended,
    events.ThreadFailed: _thread_ended,
    events.ThreadKilled: _thread_ended,
    events.ThreadPaused: _thread_paused_or_resumed,
    events.ThreadResumed: _thread_paused_or_resumed,
    events.AgentPaused: _agent_paused,
    events.AgentResumed: _agent_resumed,
    events.OrganismPaused: _organism_paused_or_resumed,
    events.OrganismResumed: _organism_paused_or_resumed,
    events.OrganismStarted: _organism_started,
    events.OrganismStopped: _organism_stopped,
    events.StepStarted: _step_started,
    events.StepRecorded: _step_recorded,
    events.StepResolved: _step_resolved,
    events.TurnStarted: _turn_started,
    events.TurnAppended: _turn_appended,
    events.TurnEnded: _turn_ended,
    events.SessionDeleted: lambda state, record: state.unerased.add(record.thread or ""),
    events.ContentErased: lambda state, record: state.unerased.discard(record.event.owner),
    events.TodoRegistered: _todo_registered,
    events.TodoClosed: _todo_closed,
    events.BudgetReserved: _budget_reserved,
    events.BudgetSettled: lambda state, record: state.spend.settled(record),
    events.TenantConfigChanged: _tenant_config_changed,
    events.TenantOpened: lambda state, record: state.tenants.add(record.event.tenant),
    events.ConfirmRequested: lambda state, record: state.confirmations.requested(record, state.messages),
    events.ConfirmRedeemed: lambda state, record: state.confirmations.redeemed(record),
    **dict.fromkeys(events.RUN_ENTRIES.values(), _run_entry),
}


class State:
    """What a tenant's decisions rest on: what is folded, the rules in force, and where ids and the time come from.

    ``defaults`` gives what config/tokens.yaml says of the tenant's configuration.
    """

    __slots__ = ("defaults", "folded", "ids", "now", "rules")

    def __init__(
        self,
        folded: FoldedState,
        rules: Rules,
        ids: Ids,
        now: Callable[[], int],
        defaults: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        self.folded = folded
        self.rules = rules
        self.ids = ids
        self.now = now  # the log's time in µs
        self.defaults = defaults

    @property
    def config(self) -> TenantConfig:
        """The tenant's configuration as it is now."""
        return effective(self.defaults(), self.folded.config)
