"""All events: facts in the past tense, one frozen class each.

On the wire an event is an object whose ``event`` names it (``message_sent``); fields with their default values are left
out. Positions, times, causes and content belong to the record (``record.py``). ``message`` is a message's id, ``agent``
a listener's name. Times are UTC in microseconds since 1970, durations in microseconds, dollars exact decimals as text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal, NamedTuple

from msgspec import Struct, field


def _name_of(class_name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", class_name).lower()


class Event(Struct, frozen=True, gc=False, omit_defaults=True, tag_field="event", tag=_name_of):
    """One fact. ``event_type`` is its name on the wire."""

    event_type: ClassVar[str]

    def __init_subclass__(cls, **config: Any) -> None:
        super().__init_subclass__(**config)
        cls.event_type = _name_of(cls.__name__)


# -- The organism and its agents


class Declared(Struct, frozen=True, gc=False, omit_defaults=True):
    """A listener as the configuration declares it; ``group`` is where it is shown, ``tools`` are what it calls."""

    name: str
    description: str
    is_agent: bool
    peers: tuple[str, ...]
    payload_class: str
    model: str | None
    version: str
    group: str | None = None
    tools: tuple[str, ...] = ()


class OrganismStarted(Event, frozen=True):
    """Life number ``life`` began. ``removed``: listeners of the last life only; ``clean``: that life was stopped."""

    name: str
    version: str
    config: str
    listeners: tuple[Declared, ...]
    removed: tuple[str, ...]
    life: int
    clean: bool


class OrganismStopped(Event, frozen=True):
    """The life ended gracefully."""


class OrganismPaused(Event, frozen=True):
    """The organism was paused: no message starts."""

    by: Literal["operator", "crash_loop"]


class OrganismResumed(Event, frozen=True):
    """The organism was resumed."""

    by: Literal["operator"]


class OrganismReloaded(Event, frozen=True):
    """A changed configuration took effect; ``listeners`` are all of it, ``config`` is its digest."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    updated: tuple[str, ...]
    listeners: tuple[Declared, ...]
    config: str


class AgentPaused(Event, frozen=True):
    """The agent was paused: none of its messages starts."""

    agent: str
    by: Literal["operator", "failures"]


class AgentResumed(Event, frozen=True):
    """The agent was resumed."""

    agent: str
    by: Literal["operator", "removal"]


# -- Threads


class Reminder(Struct, frozen=True, gc=False, omit_defaults=True):
    """An agent's reminder, which waits for a message ``wait_for`` from ``from_listener`` (empty: from any)."""

    todo: str
    agent: str
    wait_for: str
    from_listener: str
    description: str


class TodoRegistered(Event, Reminder, frozen=True):
    """An agent registered a reminder."""

    authors: tuple[str, ...] = ()


class TodoClosed(Event, frozen=True):
    """An agent closed a reminder."""

    todo: str
    agent: str


class Todo(Reminder, frozen=True):
    """A thread's reminder; ``met``: its message has come."""

    met: bool
    authors: tuple[str, ...] = ()


class ThreadCreated(Event, frozen=True):
    """A thread began."""

    parent: str | None = None


class ThreadReopened(Event, frozen=True):
    """An ended thread was reopened, with what outlived its end: open dead letters, a pause, reminders, tokens."""

    failed: int = 0
    reason: str = ""
    paused: bool = False
    parent: str | None = None
    todos: Mapping[str, Todo] = field(default_factory=dict)
    tokens: int = 0


class ThreadPaused(Event, frozen=True):
    """The thread was paused: none of its messages starts."""


class ThreadResumed(Event, frozen=True):
    """The thread was resumed."""


class ThreadCompleted(Event, frozen=True):
    """The thread ended: no message of it is open."""

    parent: str | None = None
    todos: Mapping[str, Todo] = field(default_factory=dict)


class ThreadFailed(Event, frozen=True):
    """The thread ended with open dead letters; ``reason`` is that of the last one."""

    reason: str
    parent: str | None = None
    todos: Mapping[str, Todo] = field(default_factory=dict)


class ThreadKilled(Event, frozen=True):
    """The thread was killed. ``ended``: it had ended before."""

    ended: bool = False


class ThreadForked(Event, frozen=True):
    """The thread began as a fork: it shares the past of ``source`` up to the position ``until``."""

    source: str
    until: int


# -- Messages

Outcome = Literal["done", "unread", "answered", "delivered", "killed", "appended"]
After = Literal["", "retry", "death", "stop"]
DeathCode = Literal[
    "handler_error",
    "timeout",
    "stuck",
    "wrong_return",
    "replay_diverged",
    "too_many_steps",
    "schema_changed",
    "listener_gone",
    "killed_process",
]
RefusalCode = Literal["routing", "validation"]
RefusalReason = Literal["unknown_receiver", "not_a_peer", "schema", "depth", "flood"]


class Root(NamedTuple):
    """The injection at the root of a causal chain, which decides the rights of all that follows from it.

    ``principal`` injected it (None: the host program) for ``user``; ``depth`` counts the agent runs around it.
    """

    principal: str | None = None
    depth: int = 0
    user: str | None = None


class MessageSent(Event, frozen=True, rename={"sender": "from", "payload_class": "class"}):
    """A message was sent; its payload and envelope are the record's content.

    ``type`` names the payload's class; ``token`` is the call token in the envelope. ``authors`` names whose text it may
    contain: agents, and listeners that bring text from outside. ``notes`` say what was repaired in the payload.

    Of a reply: ``call`` is the request whose call it is handled in, ``payload_class`` its class as ``module:Class``.
    ``step`` is (message, number) of the ask that sent it, ``answers`` of the ask that it answers. Of an injection:
    ``caller_depth``, the runs of agents around the call that made it, and ``caller_request``, the request it was made
    in. Of a replayed dead letter: ``calls`` are (request, caller), innermost first, ``root`` is that of its
    chain, ``first`` the message that was sent first, with whose id the keys of its effects begin; of a request in it,
    the same request of the first run.
    """

    message: str
    sender: str
    to: str
    type: str
    depth: int
    token: str
    call: str | None = None
    reply: bool = False
    payload_class: str | None = None
    step: tuple[str, int] | None = None
    answers: tuple[str, int] | None = None
    calls: tuple[tuple[str, str], ...] | None = None
    root: Root | None = None
    caller_depth: int = 0
    caller_request: str | None = None
    notes: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    first: str = ""


class MessageStarted(Event, frozen=True):
    """An attempt to handle the message began; ``after``: why again. It is in the unit that makes the start possible."""

    message: str
    agent: str
    attempt: int
    deadline: int
    version: str
    after: After = ""


class MessageHandled(Event, frozen=True):
    """The message was handled by its ``attempt``; 0 if none had begun.

    Or ``delivered`` to the console, ``answered`` an ask, ``appended`` to a running turn, or ``unread`` by anyone.
    """

    message: str
    agent: str
    outcome: Outcome
    duration: int
    attempt: int = 0


class CodeLine(Struct, frozen=True, gc=False):
    """A line that a failure went through: ``file`` as its module is named, ``code`` as it was loaded, no values."""

    file: str
    line: int
    function: str
    code: str = ""


class MessageRetried(Event, frozen=True):
    """The attempt failed in the ``line`` of the handler, and another one follows at ``next_at``."""

    message: str
    agent: str
    attempt: int
    error: str
    next_at: int
    duration: int | None = None
    line: CodeLine | None = None


class MessageFailed(Event, frozen=True):
    """The last attempt failed in the ``line`` of the handler; ``message_dead`` follows in the same unit."""

    message: str
    agent: str
    attempt: int
    error: str
    duration: int | None = None
    line: CodeLine | None = None


class MessageDropped(Event, frozen=True):
    """The message was killed while it waited for its start, after so many ``attempts``."""

    message: str
    agent: str
    attempts: int = 0


class MessageDead(Event, frozen=True, rename={"sender": "from"}):
    """The message became a dead letter; ``sent`` is the position of its ``message_sent``.

    ``traceback`` are the handler's own lines, the one that raised first. ``root`` is the dead letter with which an ask
    of its handling failed, and so the handling. Whether it was a ``reply`` is in no older log.
    """

    message: str
    agent: str
    sender: str
    type: str
    sent: int
    code: DeathCode
    reason: str
    attempts: int
    traceback: tuple[CodeLine, ...] = ()
    root: str = ""
    reply: bool = False


class MessageRefused(Event, frozen=True, rename={"sender": "from"}):
    """A send was refused and became a dead letter; ``message`` is the id of the send that was not made."""

    message: str
    sender: str
    to: str
    type: str
    code: RefusalCode
    why: RefusalReason
    reason: str
    authors: tuple[str, ...] = ()


class MessageReplayed(Event, frozen=True):
    """The dead letter ``dead`` was sent again as ``message``. ``failed``: a failed handling, no refused send."""

    dead: str
    message: str
    edited: bool
    failed: bool


class MessageDiscarded(Event, frozen=True):
    """The dead letter was discarded."""

    message: str
    failed: bool


# -- Steps of a handling

StepKind = Literal["ask", "effect", "approve", "complete", "steer", "now", "uuid", "random"]
StepEffect = Literal["", "pure", "idempotent", "unsafe"]
Resolution = Literal["done", "redo", "fail"]


class StepError(Struct, frozen=True, gc=False, omit_defaults=True):
    """How a step or a call failed. Of an ask also why, and the dead letter that it comes from.

    Of a model call: whether the same call would fail again, and how long the provider asks to wait.
    """

    code: str
    message: str
    cause: str = ""
    dead_letter: str = ""
    is_final: bool = False
    retry_after_s: int | None = None


class StepStarted(Event, frozen=True):
    """A step of a handling began, the ``step``-th (0: the consent to the message itself); ``input`` is its digest.

    ``place`` is where the handler calls it: ``2/1/3`` is the third step of the first task of the handler's second task.
    ``key`` is an effect's, or the id of the tool call that an ask is. ``expires``: when an ask or approval is over.
    ``unknown``: this unsafe effect was begun before, at ``began`` (µs), and its outcome is unknown. ``to`` is whom an
    ask asks, ``model`` the model that is called.
    """

    message: str
    agent: str
    step: int
    kind: StepKind
    input: str
    effect: StepEffect = ""
    approval: str = ""
    expires: int = 0
    key: str = ""
    unknown: bool = False
    place: str = ""
    to: str = ""
    model: str = ""
    began: int = 0


class StepRecorded(Event, frozen=True):
    """A step got its result, which is the record's content (an ask has its reply instead), or its error.

    What it waited for stands here as in ``step_started``, which a pure effect has none of.
    """

    message: str
    agent: str
    step: int
    kind: StepKind
    input: str
    error: StepError | None = None
    place: str = ""
    effect: StepEffect = ""
    approval: str = ""
    key: str = ""
    to: str = ""
    model: str = ""


class StepResolved(Event, frozen=True):
    """An operator said how the unsafe effect ``key`` ended; with ``done`` the content is its result."""

    message: str
    agent: str
    step: int
    outcome: Resolution
    key: str = ""


# -- Approvals and confirmed calls

Verdict = Literal["approve", "reject"]


class ApprovalRequested(Event, frozen=True):
    """A person was asked; the content is the preview, ``digest`` its digest.

    ``type`` is the class of the payload if it is one, ``why`` says why a tainted run's call needs consent.
    """

    approval: str
    message: str
    agent: str
    step: int
    digest: str
    expires_at: int
    type: str = ""
    why: str = ""


class ApprovalResolved(Event, frozen=True):
    """A person decided; the content are the edits, if any. ``digest`` is that of what the decision is bound to."""

    approval: str
    decision: Verdict
    comment: str
    by: str
    digest: str = ""


class ApprovalExpired(Event, frozen=True):
    """The approval was not decided in time."""

    approval: str


class ApprovalCancelled(Event, frozen=True):
    """The approval's message failed or was killed."""

    approval: str


class ConfirmRequested(Event, frozen=True):
    """A call was answered with a preview and a token; ``token`` is the token's digest, ``digest`` the call's.

    ``version`` is that of what the preview showed, if it has one.
    """

    token: str
    digest: str
    message: str
    agent: str
    expires_at: int
    version: str = ""


class ConfirmRedeemed(Event, frozen=True):
    """The token was used by this call."""

    token: str
    message: str
    agent: str


class ConfirmRefused(Event, frozen=True):
    """The token was refused: ``code`` says why."""

    token: str
    message: str
    agent: str
    code: str


# -- Runs: what people see of a handling (the entries of ``model/run.py``)


class RunEvent(Event, frozen=True):
    """An entry of a message's run; ``id`` is the entry's own. Its data are the record's content."""

    message: str
    agent: str
    id: str | None = None


class RunMessage(RunEvent, frozen=True):
    """A whole message of the agent."""


class RunBlockStart(RunEvent, frozen=True):
    """A block begins, or one that has not ended begins ``again``, because its model call is repeated."""

    again: bool = False


class RunMessageStart(RunBlockStart, frozen=True):
    """A message begins, or one that has not ended begins ``again``."""


class RunDelta(RunEvent, frozen=True, kw_only=True):
    """``length`` characters of a message or thought, after the first ``offset``."""

    offset: int
    length: int


class RunMessageDelta(RunDelta, frozen=True):
    """The next piece of a message."""


class RunMessageEnd(RunEvent, frozen=True):
    """A message is complete."""


class RunThought(RunEvent, frozen=True):
    """A whole thought."""


class RunThoughtStart(RunBlockStart, frozen=True):
    """A thought begins, or one that has not ended begins ``again``."""


class RunThoughtDelta(RunDelta, frozen=True):
    """The next piece of a thought."""


class RunThoughtEnd(RunEvent, frozen=True):
    """A thought is complete."""


class RunToolCall(RunEvent, frozen=True):
    """A tool is called."""


class RunToolResult(RunEvent, frozen=True):
    """A tool has answered."""


class RunInteractionRequest(RunEvent, frozen=True):
    """A person has to answer."""


class RunInteractionResponse(RunEvent, frozen=True):
    """A person has answered."""


class RunData(RunEvent, frozen=True):
    """Anything for a front end."""


class RunFile(RunEvent, frozen=True):
    """A file."""


class RunUsage(RunEvent, frozen=True):
    """The tokens of one model call."""


class RunError(RunEvent, frozen=True):
    """A fault that the run shows."""


class RunDone(RunEvent, frozen=True, kw_only=True, rename={"stop_reason": "stopReason"}):
    """The last entry of the run."""

    stop_reason: str


def begins_message(event: Event) -> bool:
    """Whether a message of the run begins with this entry; one that begins again has begun before."""
    is_one = isinstance(event, RunMessage | RunMessageStart | RunToolCall | RunToolResult)
    return is_one and not (isinstance(event, RunMessageStart) and event.again)


# -- Sessions: streams of their own, whose turns are threads

CompactStrategy = Literal["auto", "manual", "off"]
OnBusy = Literal["queue", "steer", "force", "reject"]
TurnOutcome = Literal["completed", "failed", "killed", "appended"]
Role = Literal["user", "assistant", "tool"]


SessionBudget = Mapping[str, Mapping[str, int | str]]


class SessionSettings(Struct, frozen=True, gc=False, omit_defaults=True):
    """What the caller wants of a session; what is None is as the tenant's configuration says.

    ``budget``: ``run`` bounds what a turn spends, ``day`` all of a day: ``tokens``, ``usd``, ``calls``, ``seconds``.
    """

    compact_strategy: CompactStrategy | None = None
    compact_keep_last_n: int | None = None
    compact_observation_mask: bool | None = None
    budget: SessionBudget | None = None


class SessionEvent(Event, frozen=True):
    """A fact of a session, in the session's own stream."""


class SessionCreated(SessionEvent, frozen=True):
    """A session of ``user`` with ``agent`` began; as the successor of ``parent`` with the messages that follow.

    ``authors`` names whose text those may contain.
    """

    agent: str
    user: str
    settings: SessionSettings = SessionSettings()
    parent: str | None = None
    authors: tuple[str, ...] = ()


class TurnStarted(SessionEvent, frozen=True):
    """A message to the session was accepted; ``turn`` is its thread. It waits for the turns before it."""

    turn: str
    message: str
    on_busy: OnBusy = "queue"
    budget: SessionBudget | None = None


class TurnAppended(SessionEvent, frozen=True):
    """The running ``turn`` took in the ``message`` of the waiting turn ``source``, which ends."""

    turn: str
    message: str
    source: str


class TurnEnded(SessionEvent, frozen=True):
    """The turn's thread ended, after so many ``messages`` besides the one that began it.

    ``authors`` names whose text the session may contain from here on.
    """

    turn: str
    outcome: TurnOutcome
    messages: int = 0
    authors: tuple[str, ...] = ()


class MessageKept(SessionEvent, frozen=True):
    """A message that a successor begins with; it is the content."""

    message: str
    role: Role


class SessionCompacted(SessionEvent, frozen=True):
    """The session was archived. Its messages before the position ``before`` are the ``summary`` in its successor."""

    successor: str
    before: int
    summary: str


class SessionUncompacted(SessionEvent, frozen=True):
    """The session was archived; its successor begins with the whole history."""

    successor: str


class SessionDeleted(SessionEvent, frozen=True):
    """The session was deleted: it is shown no more, and its contents are erased."""


# -- Spending


class BudgetReserved(Event, frozen=True):
    """A model will be called and may use at most this much; ``tokens`` are input and output together."""

    message: str
    agent: str
    step: int
    model: str
    provider: str
    input_tokens: int
    output_tokens: int
    tokens: int
    cost_usd: str
    duration: int


class BudgetSettled(Event, frozen=True):
    """A model call was settled with what it used."""

    message: str
    agent: str
    step: int
    tokens: int
    cost_usd: str
    duration: int


class ModelCalled(Event, frozen=True):
    """A model was called; ``prompt`` is the digest of what was sent. Error ``lost``: the process died meanwhile."""

    message: str
    agent: str
    step: int
    model: str
    provider: str
    input_tokens: int
    output_tokens: int
    cost_usd: str
    cost_source: Literal["upstream", "price", "zero"]
    attempts: int
    duration: int
    prompt: str = ""
    error: StepError | None = None


class TextsEmbedded(Event, frozen=True):
    """An embedding model was asked for the vectors of so many texts."""

    model: str
    provider: str
    texts: int
    input_tokens: int
    cost_usd: str
    cost_source: Literal["price", "zero"]
    duration: int
    error: StepError | None = None


# -- The library: an index's events are in the stream that ``model/ids.py`` names


class IndexCreated(Event, frozen=True):
    """An index began with these documents, each with its digest; its rows in the store are of ``generation``."""

    index: str
    generation: int
    embedding_model: str
    documents: Mapping[str, str]


class DocumentsChanged(Event, frozen=True):
    """An index is now what its store has as of ``generation``, ``doc_count`` documents.

    ``written`` are those that are new or changed, each with its digest. ``replaced``: no others are left. If the index
    has another embedding model now, it is ``embedding_model``.
    """

    index: str
    generation: int
    doc_count: int
    written: Mapping[str, str] = field(default_factory=dict)
    deleted: tuple[str, ...] = ()
    replaced: bool = False
    embedding_model: str = ""


class IndexDeleted(Event, frozen=True):
    """An index was deleted with all of its documents."""

    index: str
    generation: int


# -- What remains


class CallAnswered(Event, frozen=True):
    """A request with an idempotency key was answered; ``body`` lacks its position, which lies ``back`` before this.

    The content is the whole body of an answer that shows how something then stood.
    """

    key: str
    method: str
    path: str
    digest: str
    status: int
    body: Mapping[str, Any]
    back: int


class TenantConfigChanged(Event, frozen=True):
    """Keys of the tenant's configuration were written; one that is null has the value of the levels below again."""

    changes: Mapping[str, Any]


class ValueSet(Event, frozen=True):
    """A tool stored a value, which is the content, or deleted it.

    ``authors`` names whose text it may contain; ``principal`` and ``user`` are those of the injection at its root.
    """

    key: str
    deleted: bool = False
    authors: tuple[str, ...] = ()
    principal: str | None = None
    user: str | None = None


class TenantOpened(Event, frozen=True):
    """Another tenant's log was opened for the first time: from now on it is missed when it is gone."""

    tenant: str


class ForeignToolsAccepted(Event, frozen=True):
    """Tools of an MCP server, by their listeners, and the digests of what was accepted: at first sight, or by hand."""

    server: str
    tools: Mapping[str, str]


class ForeignToolsChanged(Event, frozen=True):
    """What the server offers now in place of what was accepted, by digests: it is off. Empty: nothing else any more."""

    server: str
    tools: Mapping[str, str]


class SpoofAttempt(Event, frozen=True):
    """An injected envelope made a false claim."""

    field: str
    claimed: str
    actual: str


class LoopBlocked(Event, frozen=True):
    """The event loop was blocked."""

    duration: int
    stack: str


class ContentErased(Event, frozen=True):
    """The contents of an owner, a session or thread, up to here were erased."""

    owner: str


def _all_of(base: type[Event]) -> tuple[type[Event], ...]:
    return tuple(found for each in base.__subclasses__() for found in (_all_of(each) or (each,)))


EVENTS: Final[Mapping[str, type[Event]]] = {each.event_type: each for each in _all_of(Event)}
"""Every event by its name on the wire."""
RUN_ENTRIES: Final[Mapping[str, type[RunEvent]]] = {
    each.event_type.removeprefix("run_"): each for each in _all_of(RunEvent) if issubclass(each, RunEvent)
}
"""The event of each type of entry of a run."""
