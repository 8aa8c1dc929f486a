"""Commands: what people and programs ask of a tenant. Imperative, frozen, parsed at the edge.

Every command has an ``Actor`` and may have an ``Idempotency``: then its answer is recorded in the unit that carries it
out, and the same key gives the same answer again, also after a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Literal

from msgspec import Struct

from organism.events import vocabulary as events
from organism.events.record import Actor
from organism.model.ids import SYSTEM_COMPACTION

HOST_PROGRAM: Final = Actor()
"""Acts where no person or token does."""


class Idempotency(Struct, frozen=True):
    """An idempotency key with what it is bound to; ``digest`` is that of the request's body."""

    key: str
    method: str
    path: str
    digest: str

    @property
    def name(self) -> str:
        """The key of the stored answer; neither method nor path contains a space."""
        return f"{self.method} {self.path} {self.key}"


class Command(Struct, frozen=True, kw_only=True):
    """What all commands have.

    ``if_position`` refuses the command (``StalePosition``) if the thread, or the session, has moved on.
    """

    actor: Actor = HOST_PROGRAM
    idempotency: Idempotency | None = None
    if_position: int | None = None


class Inject(Command, frozen=True, kw_only=True):
    """Send a payload from ``console`` to a listener.

    The payload is ``json`` (parsed) or ``xml`` (a bare document or a whole envelope). If the call comes from an agent,
    ``caller_depth`` counts the agent runs around it, and ``caller_request`` is the caller's id of its own request.
    ``on_sent`` is called with the ids of thread and message before they are written, unless this is a repetition.
    """

    to: str
    json: object = None
    xml: bytes | None = None
    thread_id: str | None = None
    caller_depth: int = 0
    caller_request: str | None = None
    on_sent: Callable[[str, str], None] | None = None


class CreateSession(Command, frozen=True, kw_only=True):
    """Begin a session of a user with an agent."""

    agent: str
    user: str
    settings: events.SessionSettings = events.SessionSettings()


class TurnCompaction(Struct, frozen=True):
    """The compaction before a turn, whose session is its successor: its thread, and what it has summarised."""

    thread_id: str
    tokens: int


class SendTurn(Inject, frozen=True, kw_only=True):
    """Send a payload to a session of the user's with the agent ``to``, as its next turn; ``thread_id`` is not given.

    ``on_busy`` says what becomes of it while another turn is open: it waits for that one (``queue``), is taken in by it
    (``steer``), ends it (``force``), or is refused with ``SessionBusy`` (``reject``).
    """

    session_id: str
    user: str
    on_busy: events.OnBusy = "queue"
    compaction: TurnCompaction | None = None


class CompactSession(Inject, frozen=True, kw_only=True):
    """Begin the compaction of an idle session of the user's, or join the one under way; ``json`` is its request.

    Its thread is killed and erased with the session. Raises as ``ReplaceSession`` does.
    """

    to: str = SYSTEM_COMPACTION
    session_id: str
    user: str


class DeleteSession(Command, frozen=True, kw_only=True):
    """Delete a session of the user's: kill its open turns, show nothing of it any more, erase its contents."""

    session_id: str
    user: str
    agent: str | None = None


class KeptMessage(Struct, frozen=True):
    """A message with which a successor begins; ``json`` is the whole message, an object, less its id."""

    role: events.Role
    json: bytes


class ReplaceSession(Command, frozen=True, kw_only=True):
    """Archive a session of the user's and begin a successor with ``messages``, in one unit.

    ``if_position`` is the session's position at which its messages were read. With ``compacted_before`` it was
    compacted: the first message is the summary of those before that position, and ``authors`` name whose text the
    summary may contain besides the session's. Without, the successor has the whole history.
    Raises ``SessionBusy`` while a turn is open, ``SessionCompactConflict`` if the session has changed, or was archived.
    """

    session_id: str
    user: str
    messages: Sequence[KeptMessage]
    agent: str | None = None
    compacted_before: int | None = None
    authors: Sequence[str] = ()


class PauseAgent(Command, frozen=True, kw_only=True):
    """Start no more messages of this agent."""

    agent: str


class ResumeAgent(Command, frozen=True, kw_only=True):
    """Go on with this agent."""

    agent: str


class PauseThread(Command, frozen=True, kw_only=True):
    """Start no more messages in this thread."""

    thread_id: str


class ResumeThread(Command, frozen=True, kw_only=True):
    """Go on with this thread."""

    thread_id: str


class PauseOrganism(Command, frozen=True, kw_only=True):
    """Start no more messages at all."""


class ResumeOrganism(Command, frozen=True, kw_only=True):
    """Go on."""


class ChangeTenantConfig(Command, frozen=True, kw_only=True):
    """Write keys of the tenant's configuration, which were checked; null takes a key back."""

    changes: Mapping[str, Any]


class ReserveEmbedding(Command, frozen=True, kw_only=True):
    """Reserve what the ``call`` of an embedding model may use at most, within the tenant's budget of the day."""

    call: str
    model: str
    provider: str
    input_usd_per_million: Decimal
    tokens: int
    seconds: float


class RecordEmbedding(Command, frozen=True, kw_only=True):
    """Record the call of an embedding model that was made, and settle what was reserved for it."""

    call: str
    embedded: events.TextsEmbedded


class KillThread(Command, frozen=True, kw_only=True):
    """End the thread's whole tree at once."""

    thread_id: str


class ReplayDeadLetter(Command, frozen=True, kw_only=True):
    """Send a dead letter's payload again, edited if ``json`` is given."""

    message_id: str
    json: object = None


class DiscardDeadLetter(Command, frozen=True, kw_only=True):
    """Close a dead letter for good."""

    message_id: str


class ReplayDeadLetters(Command, frozen=True, kw_only=True):
    """Send all dead letters of a thread again."""

    thread_id: str


class DiscardDeadLetters(Command, frozen=True, kw_only=True):
    """Close all dead letters of a thread for good."""

    thread_id: str


class ResolveIndeterminate(Command, frozen=True, kw_only=True):
    """Say how an unsafe effect ended; ``id`` is ``MESSAGE:STEP``."""

    id: str
    outcome: Literal["done", "redo", "fail"]
    result: object = None


class ResolveApproval(Command, frozen=True, kw_only=True):
    """Decide an approval."""

    approval: str
    decision: Literal["approve", "reject"]
    edits: object = None
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Injected:
    """An accepted injection, which is on disk."""

    thread_id: str
    message_id: str
    position: int


@dataclass(frozen=True, slots=True)
class SessionBegun:
    """A session that begins, as asked for or as a successor; ``position`` is its last one."""

    session_id: str
    position: int


@dataclass(frozen=True, slots=True)
class Done:
    """A command that was carried out or had nothing to do; ``position`` is the last one of what it changed."""

    position: int


CommandAnswer = Injected | SessionBegun | Done
"""How a command is answered."""


@dataclass(frozen=True, slots=True)
class Reloaded:
    """What a reload changed, by name."""

    added: Sequence[str]
    removed: Sequence[str]
    updated: Sequence[str]
    position: int
