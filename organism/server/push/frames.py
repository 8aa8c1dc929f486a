"""Records → frames: what each says, and of which events it is made. Pure: the same live or read again years later.

An event makes at most one frame with a position; text that is not in the log yet makes one without.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from msgspec.structs import replace

from organism.events import vocabulary as events
from organism.events.record import Record
from organism.log.log import EventFilter
from organism.model import words
from organism.model.times import iso, milliseconds
from organism.model.words import one_of
from organism.pump.run.feed import Delta
from organism.rag.library import Work
from organism.server.push.filter import FRAME_BYTES, ON_REQUEST, UNLOGGED, Filter, Frame
from organism.views import approvals, dead_letters, threads, who
from organism.views.dead_letters import Indeterminate
from organism.views.handlings import CodeLine, OpenHandling, code_line
from organism.views.organism import Agent, Organism
from organism.views.run import data_of, kind_of
from organism.views.threads import Thread
from organism.views.views import ERASED, with_payload

MAX_THREADS: Final = 4096
WITH_CONTENT: Final = EventFilter(content=True)

Timeline = Annotated[str, Meta(description="The name of this log's timeline.", examples=["9f86d081884c7d65"])]
Outcome = Literal["open", "done", "redo", "fail"]
HandlingOutcome = Literal["done", "killed", "unread", "appended", "dropped"]
IndexId = Annotated[str, Meta(examples=["berlin-info"])]
EmbeddingModel = Annotated[str, Meta(description="What makes its vectors.", examples=["builtin"])]
LibraryEvent = events.IndexCreated | events.DocumentsChanged | events.IndexDeleted
EffectKey = Annotated[str, Meta(description="The key that the handler gave it.", examples=["pay"])]


class Context(NamedTuple):
    """What a frame may show besides its event: the thread after it, the record after it, whether all is paused.

    ``embedding_model`` is that of the index after it, or before it was deleted.
    """

    thread: Thread | None
    following: Record[events.Event] | None
    is_paused: bool
    embedding_model: str


class FrameOf(Struct, tag_field="event"):
    """What a frame says. ``Raw`` is finished JSON of the annotated type. One that is pushed is made by ``of``."""


def message_json(record: Record[events.MessageSent]) -> bytes:
    """The API's Message, of a record with its content."""
    content = record.content
    payload = None if content is None or content.erased else content.json
    return with_payload(msgspec.json.encode(threads.sent(record)), payload)


class MessageSent(FrameOf, tag="message"):
    """A message was sent."""

    position: words.Position
    message: threads.Message | Raw
    answers: Annotated[
        bool | UnsetType,
        Meta(description="True of an answer to an `ask`: its step takes it, so it waits for no start."),
    ] = UNSET

    @classmethod
    def of(cls, record: Record[events.MessageSent], _context: Context) -> MessageSent:
        answers = UNSET if record.event.answers is None else True
        return cls(record.position, Raw(message_json(record)), answers)


class ThreadCreated(FrameOf, tag="thread_created"):
    """A thread begins."""

    position: words.Position
    thread: threads.Thread

    @classmethod
    def of(cls, record: Record[events.ThreadCreated], context: Context) -> ThreadCreated | None:
        """The thread's first message is in the same unit: it says who takes part, and what the thread is called."""
        if context.thread is None:
            return None
        thread = replace(context.thread, title=None, waiting_for_people=threads.ThreadQuestions())
        first = context.following
        if first is not None and isinstance(first.event, events.MessageSent) and first.thread == record.thread:
            thread.participants = [first.event.sender, first.event.to]
            thread.title = threads.title(None if first.content is None else first.content.json)
        return cls(record.position, thread)


class ThreadUpdated(FrameOf, tag="thread_updated"):
    """A thread ended, goes on, was paused, resumed or killed."""

    position: words.Position
    thread_id: words.ThreadId
    status: words.ThreadStatus
    message_count: words.Count
    paused: bool
    error: words.Reason | None
    last_activity: words.Time
    by: who.By | None

    @classmethod
    def of(cls, record: Record[events.Event], context: Context) -> ThreadUpdated | None:
        row = context.thread
        if row is None:
            return None
        shown = row.status, row.message_count, row.paused, row.error, row.last_activity
        return cls(record.position, record.stream, *shown, who.by(record))


class AttemptFailed(FrameOf, tag="error"):
    """An attempt to handle a message ended by failing; `next_at` is when the next one begins, null after the last."""

    position: words.Position
    thread_id: words.ThreadId
    agent: words.AgentName
    error: words.Reason
    timestamp: words.Time
    message_id: words.MessageId
    attempt: words.Count
    next_at: words.Time | None
    outcome: Literal["retried", "failed"]
    duration_ms: words.Milliseconds | None
    line: Annotated[CodeLine, Meta(description="The handler's own line that raised.")] | None
    phase: Literal["ended"]

    @classmethod
    def of(cls, record: Record[events.MessageRetried | events.MessageFailed], _context: Context) -> AttemptFailed:
        event = record.event
        next_at = iso(event.next_at) if isinstance(event, events.MessageRetried) else None
        return cls(
            position=record.position,
            thread_id=record.stream,
            agent=event.agent,
            error=event.error,
            timestamp=iso(record.at),
            message_id=event.message,
            attempt=event.attempt,
            next_at=next_at,
            outcome="retried" if next_at is not None else "failed",
            duration_ms=None if event.duration is None else milliseconds(event.duration),
            line=code_line(event.line) if event.line is not None else None,
            phase="ended",
        )


class DeadLetterOpened(FrameOf, tag="dead_letter"):
    """A message failed for good, or a send was refused."""

    position: words.Position
    thread_id: words.ThreadId
    agent: words.AgentName
    status: Literal["open"]
    dead_letter: dead_letters.DeadLetterHead
    timestamp: words.Time

    @classmethod
    def of(cls, record: Record[events.MessageDead | events.MessageRefused], _context: Context) -> DeadLetterOpened:
        letter = dead_letters.died(record)
        return cls(record.position, record.stream, letter.agent, "open", letter, iso(record.at))


class ClosedDeadLetter(Struct):
    """Which one it was."""

    id: words.MessageId


class DeadLetterClosed(FrameOf, tag="dead_letter"):
    """A dead letter was sent again or discarded."""

    position: words.Position
    thread_id: words.ThreadId
    status: Literal["replayed", "discarded"]
    dead_letter: ClosedDeadLetter
    by: who.By | None
    timestamp: words.Time

    @classmethod
    def of(
        cls, record: Record[events.MessageReplayed | events.MessageDiscarded], _context: Context
    ) -> DeadLetterClosed:
        event, done = record.event, (who.by(record), iso(record.at))
        if isinstance(event, events.MessageReplayed):
            return cls(record.position, record.stream, "replayed", ClosedDeadLetter(event.dead), *done)
        return cls(record.position, record.stream, "discarded", ClosedDeadLetter(event.message), *done)


class ApprovalRequested(FrameOf, tag="approval"):
    """Something waits for a human's word."""

    position: words.Position
    thread_id: words.ThreadId
    agent: words.AgentName
    approval: approvals.Approval
    timestamp: words.Time

    @classmethod
    def of(cls, record: Record[events.ApprovalRequested], _context: Context) -> ApprovalRequested:
        approval, content = approvals.requested(record), record.content
        approval.preview = Raw(ERASED if content is None or content.erased else content.json)
        return cls(record.position, record.stream, approval.agent, approval, iso(record.at))


class ClosedApproval(Struct):
    """Which one it was, and what became of it."""

    id: words.ApprovalId
    status: approvals.Closed
    resolved: approvals.Resolution


class ApprovalClosed(FrameOf, tag="approval"):
    """An approval waits no more."""

    position: words.Position
    thread_id: words.ThreadId
    approval: ClosedApproval
    by: who.By | None
    timestamp: words.Time

    @classmethod
    def of(cls, record: Record[approvals.Closing], _context: Context) -> ApprovalClosed:
        closed = ClosedApproval(
            record.event.approval, approvals.status_after(record.event), approvals.resolution(record)
        )
        return cls(record.position, record.stream, closed, who.by(record), iso(record.at))


class Question(Struct):
    """An unsafe effect of which it is unknown whether it happened, or how an operator resolved it."""

    id: Annotated[str, Meta(description="`MESSAGE:STEP`.", examples=["msg-01a2b3c4:1"])]
    message_id: words.MessageId
    step: words.Count
    status: Outcome
    started_at: Annotated[
        words.Time | UnsetType | None, Meta(description="Of an open one: when it began; null in older logs.")
    ] = UNSET


class EffectInDoubt(FrameOf, tag="indeterminate"):
    """An effect was found begun and not finished, or an operator resolved it: `done` and `fail` end the step."""

    position: words.Position
    thread_id: words.ThreadId
    agent: words.AgentName
    indeterminate: Question
    message_id: words.MessageId
    step: words.Count
    kind: Literal["effect"]
    key: EffectKey | None
    by: who.By | None
    timestamp: words.Time

    @classmethod
    def of(cls, record: Record[events.StepStarted | events.StepResolved], _context: Context) -> EffectInDoubt | None:
        """Of a step that was found begun and not ended, or how an operator resolved it."""
        event = record.event
        question = Question(f"{event.message}:{event.step}", event.message, event.step, "open")
        of: tuple[str, int, Literal["effect"], str | None] = event.message, event.step, "effect", event.key or None
        done = None
        if isinstance(event, events.StepResolved):
            question.status, done = event.outcome, who.by(record)
        elif event.unknown:
            question.started_at = iso(event.began) if event.began else None
        else:
            return None
        return cls(record.position, record.stream, event.agent, question, *of, done, iso(record.at))


class DeclaredAgent(Struct):
    """A listener as the configuration declares it: those fields of an agent that only a start or a reload changes."""

    name: words.AgentName
    description: Annotated[str, Meta(examples=["Greets whoever is named"])]
    is_agent: bool
    peers: list[words.AgentName]
    payload_class: Annotated[str, Meta(examples=["handlers.hello.Greeting"])]
    model: Annotated[str, Meta(examples=["default"])] | None
    version: words.Version | None
    group: str | None


def declared(listeners: Iterable[events.Declared]) -> list[DeclaredAgent]:
    """All of them, in their order."""
    return [msgspec.convert(listener, DeclaredAgent, from_attributes=True) for listener in listeners]


class NewLife(Struct):
    """What a start says of the organism. What ran before it waits for a start again."""

    name: Annotated[str, Meta(examples=["hello-world"])]
    version: words.Version
    agents: list[DeclaredAgent]


class OrganismChanged(FrameOf, tag="organism_state"):
    """The organism was started, paused, resumed or stopped."""

    position: words.Position
    status: Literal["running", "paused", "stopping"]
    by: who.By | None
    timestamp: words.Time
    started: Annotated[NewLife, Meta(description="Of a start alone.")] | UnsetType = UNSET

    @classmethod
    def of(cls, record: Record[events.Event], context: Context) -> OrganismChanged:
        status: Literal["running", "paused", "stopping"] = "paused" if context.is_paused else "running"
        event = record.event
        started: NewLife | UnsetType = UNSET
        if isinstance(event, events.OrganismStopped):
            status = "stopping"
        elif isinstance(event, events.OrganismStarted):
            started = NewLife(event.name, event.version, declared(event.listeners))
        return cls(record.position, status, who.by(record), iso(record.at), started)


class AgentUpdated(FrameOf, tag="agent_updated"):
    """An agent was paused or resumed."""

    position: words.Position
    agent: words.AgentName
    paused: bool
    by: who.By | None
    timestamp: words.Time

    @classmethod
    def of(cls, record: Record[events.AgentPaused | events.AgentResumed], _context: Context) -> AgentUpdated:
        paused = isinstance(record.event, events.AgentPaused)
        return cls(record.position, record.event.agent, paused, who.by(record), iso(record.at))


class ReloadDone(FrameOf, tag="reload"):
    """The configuration was read again: the names of listeners that changed, and all ``agents`` from now on."""

    position: words.Position
    added: list[words.AgentName]
    removed: list[words.AgentName]
    updated: list[words.AgentName]
    agents: list[DeclaredAgent]
    timestamp: words.Time

    @classmethod
    def of(cls, record: Record[events.OrganismReloaded], _context: Context) -> ReloadDone:
        event = record.event
        changed = list(event.added), list(event.removed), list(event.updated)
        return cls(record.position, *changed, declared(event.listeners), iso(record.at))


class RunShown(FrameOf, tag="run"):
    """An entry of the run of a handling: what people see of it."""

    position: words.Position
    thread_id: words.ThreadId
    message_id: words.MessageId
    agent: words.AgentName
    type: words.EntryType
    data: Annotated[
        dict[str, Any] | Raw,
        Meta(
            description='What the entry says, by its type; `{"erased":true}` once it was erased.',
            examples=[{"id": "call-1", "name": "calculator", "input": {"expression": "2*21"}}],
        ),
    ]
    timestamp: words.Time

    @classmethod
    def of(cls, record: Record[events.RunEvent], _context: Context) -> RunShown:
        event, shown = record.event, (kind_of(record), Raw(data_of(record)), iso(record.at))
        return cls(record.position, record.thread or "", event.message, event.agent, *shown)


class TextPiece(Struct):
    """The next characters of a message or a thought; `offset` counts those before them (Unicode code points)."""

    id: Annotated[str, Meta(examples=["m1"])]
    delta: Annotated[str, Meta(examples=["Hello"])]
    offset: words.Count


class TextHeard(FrameOf, tag="run"):
    """Text of a run as it comes, before it is in the log: it comes again from there, gathered and with a position."""

    thread_id: words.ThreadId
    message_id: words.MessageId
    agent: words.AgentName
    type: Literal["message_delta", "thought_delta"]
    data: TextPiece

    @classmethod
    def of_delta(cls, delta: Delta) -> TextHeard:
        piece = TextPiece(delta.id, delta.text, delta.offset)
        kind: Literal["message_delta", "thought_delta"] = (
            "thought_delta" if delta.kind == "thought" else "message_delta"
        )
        return cls(delta.thread, delta.message, delta.agent, kind, piece)


class ModelCalled(FrameOf, tag="usage"):
    """A call of a model is over: what it used and cost."""

    position: words.Position
    thread_id: words.ThreadId
    agent: words.AgentName
    message_id: words.MessageId
    step: words.Count
    model: words.ModelName
    served_by: words.ServedBy
    input_tokens: words.Count
    output_tokens: words.Count
    cost_usd: words.Money
    cost_source: Annotated[
        Literal["upstream", "price", "zero"], Meta(description="The provider's own figure, the price, or nothing.")
    ]
    attempts: words.Count
    error: Annotated[str, Meta(description="Why it gave no answer.", examples=["upstream_timeout"])] | None
    duration_ms: words.Milliseconds
    timestamp: words.Time

    @classmethod
    def of(cls, record: Record[events.ModelCalled], _context: Context) -> ModelCalled:
        event = record.event
        return cls(
            position=record.position,
            thread_id=record.stream,
            agent=event.agent,
            message_id=event.message,
            step=event.step,
            model=event.model,
            served_by=event.provider,
            input_tokens=event.input_tokens,
            output_tokens=event.output_tokens,
            cost_usd=event.cost_usd,
            cost_source=event.cost_source,
            attempts=event.attempts,
            error=None if event.error is None else event.error.code,
            duration_ms=milliseconds(event.duration),
            timestamp=iso(record.at),
        )


class IndexChanged(FrameOf, tag="library"):
    """An index of the library began, was changed or deleted."""

    position: words.Position
    index: IndexId
    change: Literal["created", "changed", "deleted"]
    doc_count: words.Count
    embedding_model: EmbeddingModel
    timestamp: words.Time

    @classmethod
    def of(cls, record: Record[LibraryEvent], context: Context) -> IndexChanged:
        event, last = record.event, (context.embedding_model, iso(record.at))
        match event:
            case events.IndexCreated():
                return cls(record.position, event.index, "created", len(event.documents), *last)
            case events.DocumentsChanged():
                return cls(record.position, event.index, "changed", event.doc_count, *last)
            case events.IndexDeleted():
                return cls(record.position, event.index, "deleted", 0, *last)


class IndexProgress(FrameOf, tag="library"):
    """How far the background is with an index; `work` is null once it is done. It is no event: the latest wins."""

    index: IndexId
    change: Literal["progress"]
    doc_count: words.Count
    embedding_model: EmbeddingModel
    work: Work | None
    timestamp: words.Time


class HandlingStarted(FrameOf, tag="handling"):
    """An attempt to handle a message began, and ends the one before it that a crash or a stop left open."""

    position: words.Position
    thread_id: words.ThreadId
    message_id: words.MessageId
    agent: words.AgentName
    phase: Literal["started"]
    attempt: words.Count
    after: Annotated[events.After, Meta(description="Why again: empty for the first.", examples=["retry"])]
    timestamp: words.Time

    @classmethod
    def of(cls, record: Record[events.MessageStarted]) -> HandlingStarted:
        event = record.event
        named = record.stream, event.message, event.agent
        return cls(record.position, *named, "started", event.attempt, event.after, iso(record.at))


class HandlingEnded(FrameOf, tag="handling"):
    """An attempt to handle a message ended; one that failed ends with `error`.

    Or a message that waited starts no more: it was `unread`, `appended` to a running turn, or `dropped` by a kill.
    """

    position: words.Position
    thread_id: words.ThreadId
    message_id: words.MessageId
    agent: words.AgentName
    phase: Literal["ended"]
    attempt: Annotated[words.Count, Meta(description="Null if none was under way, or the log does not know it.")] | None
    outcome: HandlingOutcome
    duration_ms: words.Milliseconds | None
    timestamp: words.Time

    @classmethod
    def of(cls, record: Record[events.MessageHandled | events.MessageDropped]) -> HandlingEnded | None:
        """None of an answer, which waits for no start, and of what the outside was sent."""
        event = record.event
        outcome: HandlingOutcome = "dropped"
        attempt, duration_ms = None, None
        if isinstance(event, events.MessageHandled):
            if event.outcome in {"answered", "delivered"}:
                return None
            outcome = event.outcome  # type: ignore[assignment]  # one of the others
            if outcome in {"done", "killed"}:
                attempt, duration_ms = event.attempt or None, milliseconds(event.duration)
        return cls(
            position=record.position,
            thread_id=record.stream,
            message_id=event.message,
            agent=event.agent,
            phase="ended",
            attempt=attempt,
            outcome=outcome,
            duration_ms=duration_ms,
            timestamp=iso(record.at),
        )


class StepFailure(Struct):
    """How a step failed."""

    code: Annotated[str, Meta(examples=["timeout"])]
    message: Annotated[str, Meta(examples=["There was no answer in time."])]


class StepShown(FrameOf, tag="step"):
    """A handling began to wait in a step, or waits no more: what it waits for depends on `kind`.

    A step that has no end of its own is over with its attempt.
    """

    position: words.Position
    thread_id: words.ThreadId
    message_id: words.MessageId
    agent: words.AgentName
    step: words.Count
    kind: Literal["ask", "complete", "approve", "effect"]
    phase: Literal["started", "ended"]
    timestamp: words.Time
    error: StepFailure | None
    to: Annotated[words.AgentName, Meta(description="Whom it asks.")] | UnsetType | None = UNSET
    model: Annotated[words.ModelName, Meta(description="The model that it calls.")] | UnsetType | None = UNSET
    approval: words.ApprovalId | UnsetType | None = UNSET
    key: EffectKey | UnsetType | None = UNSET
    effect: Literal["pure", "idempotent", "unsafe"] | UnsetType | None = UNSET

    @classmethod
    def of(cls, record: Record[events.StepStarted | events.StepRecorded]) -> StepShown | None:
        """None of a value, and of an effect of unknown outcome, whose frame is ``indeterminate``."""
        event = record.event
        is_start = isinstance(event, events.StepStarted)
        if event.kind not in NAMED_BY or (isinstance(event, events.StepStarted) and event.unknown):
            return None
        error = None if is_start else event.error  # type: ignore[union-attr]  # a start has none
        return cls(
            position=record.position,
            thread_id=record.stream,
            message_id=event.message,
            agent=event.agent,
            step=event.step,
            kind=event.kind,  # type: ignore[arg-type]  # one of those that are named
            phase="started" if is_start else "ended",
            timestamp=iso(record.at),
            error=None if error is None else StepFailure(error.code, error.message),
            **{name: getattr(event, name) or None for name in NAMED_BY[event.kind]},
        )


NAMED_BY: Final[Mapping[events.StepKind, tuple[str, ...]]] = {
    "ask": ("to",),
    "complete": ("model",),
    "approve": ("approval",),
    "effect": ("key", "effect"),
}
"""What a step of each kind that a handling waits in waits for, by the fields of event and frame."""


class AgentChanged(FrameOf, tag="agent_state"):
    """What an agent does now. It is a view and no event of the log: the latest wins."""

    agent: words.AgentName
    state: words.AgentState
    current_thread: words.ThreadId | None
    paused: bool
    queue_depth: words.Count
    handlings: list[OpenHandling]
    open_handlings: words.Count
    oldest_waiting_at: words.Time | None
    paused_by: who.By | None
    paused_at: words.Time | None

    @classmethod
    def of_row(cls, row: Agent) -> AgentChanged:
        return cls(
            agent=row.name,
            state=row.state,
            current_thread=row.current_thread,
            paused=row.paused,
            queue_depth=row.queue_depth,
            handlings=row.handlings,
            open_handlings=row.open_handlings,
            oldest_waiting_at=row.oldest_waiting_at,
            paused_by=row.paused_by,
            paused_at=row.paused_at,
        )


class AgentRate(Struct):
    """How many messages an agent has handled, and how many failed for good."""

    handled: words.Count
    failed: words.Count


EdgeRate = Annotated[
    tuple[words.AgentName, str, words.Count, words.Count],  # to whom as the sender wrote it: perhaps no listener's name
    Meta(
        description="From whom, to whom, how many messages, and how many failed for good or were refused.",
        examples=[["console", "greeter", 12, 0]],
    ),
]


class RatesShown(FrameOf, tag="rates"):
    """What moved in so many seconds: at most once a second, and never while nothing moves."""

    seconds: Annotated[float, Meta(ge=0, examples=[1.002])]
    agents: dict[words.AgentName, AgentRate]
    edges: list[EdgeRate]


class Connected(FrameOf, tag="connected"):
    """The first frame: how everything stands at this position."""

    position: words.Position
    log: Timeline
    organism: Organism
    agents: list[Agent] | Raw
    threads: Annotated[
        list[threads.Thread] | Raw, Meta(description="The newest 500 active ones and the newest 100 others.")
    ]
    threads_total: words.Count
    approvals: Annotated[
        list[approvals.Approval] | Raw, Meta(description="The newest 100 that are pending; long previews are cut.")
    ]
    dead_letters: Annotated[
        list[dead_letters.DeadLetter] | Raw, Meta(description="The newest 100 that are open; long payloads are cut.")
    ]
    indeterminate: Annotated[list[Indeterminate] | Raw, Meta(description="The newest 100.")]


class Resumed(FrameOf, tag="connected"):
    """The first frame for a client that has the state already."""

    position: words.Position
    log: Timeline


class Checkpoint(FrameOf, tag="checkpoint"):
    """So far the log has come, where the filter is quiet."""

    position: words.Position


class FellBehind(FrameOf, tag="fell_behind"):
    """You read slowly, and are served from the log now: said again once a second until `caught_up`."""

    position: words.Position
    lag_ms: Annotated[words.Milliseconds, Meta(description="How old the first event is that you have not got.")]


class CaughtUp(FrameOf, tag="caught_up"):
    """You are live, or have all up to the `until` of the address; then the connection ends."""

    position: words.Position


def event_of(kind: type[FrameOf]) -> str:
    """The name of the frame's event."""
    return str(kind.__struct_config__.tag)


_encode: Final = msgspec.json.Encoder().encode


def frame_of(said: FrameOf, thread: str | None, agents: Iterable[str], position: int = UNLOGGED) -> Frame:
    """A frame that says this, of the thread and the agents that filters look at."""
    kind = type(said)
    return Frame(position, NAMES[kind], thread, frozenset(agents), _encode(said), ALSO.get(kind, ""))


def frame_of_delta(delta: Delta) -> Frame:
    """The frame of a piece of text that is not in the log yet."""
    return frame_of(TextHeard.of_delta(delta), delta.thread, (delta.agent,))


class Details(NamedTuple):
    """The frames that only those get who name them: made of the records of ``DETAILED`` when somebody does."""

    records: Sequence[Record[Any]]

    @classmethod
    def of(cls, records: Sequence[Record[Any]]) -> Details:
        """Those among the next records, without their contents, which no such frame shows."""
        kept = [record for record in records if type(record.event) in DETAILED]
        return cls([record if record.content is None else replace(record, content=None) for record in kept])

    @property
    def size_bytes(self) -> int:
        return FRAME_BYTES * len(self.records)

    def frames(self, wanted: Filter) -> list[Frame]:
        """Those that the filter names."""
        made: list[Frame] = []
        for record in self.records:
            maker = DETAILED[type(record.event)]
            if wanted.events is None or event_of(maker) not in wanted.events:
                continue
            said = maker.of(record)
            if said is not None:
                made.append(frame_of(said, record.thread, (said.agent,), record.position))
        return made


class Folded:
    """The threads that were touched last, at ``position``; ``is_paused`` is of the organism, None while unknown.

    ``models`` has the embedding models of the indices that were.
    """

    def __init__(self, position: int) -> None:
        self.position = position
        self.is_paused: bool | None = None
        self.threads: OrderedDict[str, Thread] = OrderedDict()
        self.models: OrderedDict[str, str] = OrderedDict()

    def unknown(self, records: Sequence[Record[events.Event]]) -> list[str]:
        """The threads of which ``records`` make frames, and whose rows must be put into ``threads`` first."""
        first: dict[str, events.Event] = {}
        for record in records:
            if type(record.event) in THREAD and record.thread is not None and record.thread not in self.threads:
                first.setdefault(record.thread, record.event)
        return [thread for thread, event in first.items() if not isinstance(event, events.ThreadCreated)]

    def unknown_indices(self, records: Sequence[Record[Any]]) -> list[str]:
        """The indices whose models must be put into ``models`` first."""
        first: dict[str, events.Event] = {}
        for record in records:
            if type(record.event) in LIBRARY and record.event.index not in self.models:
                first.setdefault(record.event.index, record.event)
        return [index for index, event in first.items() if not isinstance(event, events.IndexCreated)]

    def frames(self, records: Sequence[Record[Any]]) -> list[Frame]:
        """The frames of the next records, whose threads and models are known; ``types_of`` says which may miss."""
        made: list[Frame] = []
        for at, record in enumerate(records, 1):
            kind = type(record.event)
            row = self._fold(record) if kind in FOLDED else None
            if kind in MAKERS:
                following = records[at] if at < len(records) else None
                model = self._model_of(record.event) if kind in LIBRARY else ""
                said = MAKERS[kind].of(record, Context(row, following, bool(self.is_paused), model))
                if said is not None:
                    made.append(frame_of(said, record.thread, _named(record, said, row), record.position))
        self.position = records[-1].position if records else self.position
        for known in (self.threads, self.models):
            while len(known) > MAX_THREADS:
                known.popitem(last=False)
        return made

    def _model_of(self, event: LibraryEvent) -> str:
        if isinstance(event, events.IndexDeleted):
            return self.models.pop(event.index, "")
        model = event.embedding_model or self.models.get(event.index, "")
        self.models[event.index] = model
        self.models.move_to_end(event.index)
        return model

    def _fold(self, record: Record[events.Event]) -> Thread | None:
        self.is_paused = PAUSES.get(type(record.event), self.is_paused)
        thread = record.thread
        if thread is None:
            return None
        row = threads.apply(thread, self.threads.get(thread), record)
        if row is not None:
            self.threads[thread] = row
            self.threads.move_to_end(thread)
        return row


PAUSES: Final[Mapping[type[events.Event], bool]] = {events.OrganismPaused: True, events.OrganismResumed: False}

_UPDATES: Final = (
    events.ThreadReopened,
    events.ThreadCompleted,
    events.ThreadFailed,
    events.ThreadKilled,
    events.ThreadPaused,
    events.ThreadResumed,
)
LIBRARY: Final[frozenset[type[events.Event]]] = frozenset(
    {events.IndexCreated, events.DocumentsChanged, events.IndexDeleted}
)
THREAD: Final[frozenset[type[events.Event]]] = frozenset({events.ThreadCreated, *_UPDATES})
FOLDED: Final[frozenset[type[events.Event]]] = THREAD | {events.MessageSent, *PAUSES}
"""The events that change what a frame shows of a thread; any other only moves its position, which no frame shows."""


def _named(record: Record[Any], said: Any, thread: Thread | None) -> Iterable[str]:
    """The agents that a frame names: its own, or those that take part in what it shows."""
    if isinstance(said, MessageSent):
        return record.event.sender, record.event.to
    if isinstance(said, ThreadCreated):
        return said.thread.participants
    if isinstance(said, ThreadUpdated) and thread is not None:
        return thread.participants
    return (said.agent,) if hasattr(said, "agent") else ()


MAKERS: Final[Mapping[type[events.Event], Any]] = {
    events.MessageSent: MessageSent,
    events.ThreadCreated: ThreadCreated,
    **dict.fromkeys(_UPDATES, ThreadUpdated),
    **dict.fromkeys((events.MessageRetried, events.MessageFailed), AttemptFailed),
    **dict.fromkeys((events.MessageDead, events.MessageRefused), DeadLetterOpened),
    **dict.fromkeys((events.MessageReplayed, events.MessageDiscarded), DeadLetterClosed),
    events.ApprovalRequested: ApprovalRequested,
    **dict.fromkeys((events.ApprovalResolved, events.ApprovalExpired, events.ApprovalCancelled), ApprovalClosed),
    **dict.fromkeys((events.StepStarted, events.StepResolved), EffectInDoubt),
    **dict.fromkeys(
        (events.OrganismStarted, events.OrganismPaused, events.OrganismResumed, events.OrganismStopped),
        OrganismChanged,
    ),
    **dict.fromkeys((events.AgentPaused, events.AgentResumed), AgentUpdated),
    events.OrganismReloaded: ReloadDone,
    events.ModelCalled: ModelCalled,
    **dict.fromkeys(LIBRARY, IndexChanged),
    **dict.fromkeys(events.RUN_ENTRIES.values(), RunShown),
}
"""Which events make which frame, by its ``of``."""
DETAILED: Final[Mapping[type[events.Event], Any]] = {
    events.MessageStarted: HandlingStarted,
    **dict.fromkeys((events.MessageHandled, events.MessageDropped), HandlingEnded),
    events.StepStarted: StepShown,
    events.StepRecorded: StepShown,
}
"""The same, of frames that only those get who name them. An event makes one of the two at most."""

PUSHED: Final[tuple[type[FrameOf], ...]] = (
    MessageSent,
    ThreadCreated,
    ThreadUpdated,
    AttemptFailed,
    DeadLetterOpened,
    DeadLetterClosed,
    ApprovalRequested,
    ApprovalClosed,
    EffectInDoubt,
    OrganismChanged,
    AgentUpdated,
    ReloadDone,
    RunShown,
    TextHeard,
    ModelCalled,
    IndexChanged,
    IndexProgress,
    HandlingStarted,
    HandlingEnded,
    StepShown,
    RatesShown,
    AgentChanged,
)
"""What is pushed to all whose filter it passes."""
PERSONAL: Final[tuple[type[FrameOf], ...]] = (Connected, Resumed, Checkpoint, FellBehind, CaughtUp)
"""What is sent to one connection alone."""

NAMES: Final[Mapping[type[FrameOf], str]] = {kind: event_of(kind) for kind in (*PUSHED, *PERSONAL)}
"""The name of each frame's event."""
ALSO: Final[Mapping[type[FrameOf], str]] = {AttemptFailed: "handling", EffectInDoubt: "step"}
"""Another name by which a frame passes: it is the end of what frames of that name begin."""
FRAMES: Final = frozenset(map(event_of, PUSHED))
"""The names that a filter's ``events`` may list."""
FrameName = Annotated[str, one_of(FRAMES, "FrameName", "The name of a frame.", "message")]
FrameNames = Annotated[list[FrameName], Meta(min_length=1, description="Only frames of these, separated by commas.")]


def types_of(wanted: frozenset[str] | None) -> tuple[type[events.Event], ...]:
    """All events that make frames of these names, or change what such a frame shows; None: of all."""
    names = FRAMES - ON_REQUEST if wanted is None else wanted
    types = {kind for kind, said in MAKERS.items() if event_of(said) in names or ALSO.get(said) in names}
    types |= {kind for kind, said in DETAILED.items() if event_of(said) in names}
    if names & {"thread_created", "thread_updated"}:
        types |= FOLDED
    if "organism_state" in names:
        types |= PAUSES.keys()
    return tuple(kind for kind in events.EVENTS.values() if kind in types)
