"""Commands: what people and programs ask of a tenant's organism. Imperative, frozen, parsed at the edge.

Every command carries its ``Actor`` and may carry an ``Idempotency``: then the answer is recorded in the act's own
unit, and the same key gives the same answer again, after a crash too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from msgspec import Struct

from organism.events.record import Actor

NOBODY = Actor()


class Idempotency(Struct, frozen=True):
    """An idempotency key with what it is bound to; ``digest`` is that of the request's body."""

    key: str
    method: str
    path: str
    digest: str

    @property
    def name(self) -> str:
        """What the answer is kept under: neither method nor path has a space in it."""
        return f"{self.method} {self.path} {self.key}"


class Command(Struct, frozen=True, kw_only=True):
    """What all commands carry. ``if_position`` refuses the act (``StalePosition``) if the thread has moved on."""

    actor: Actor = NOBODY
    idempotency: Idempotency | None = None
    if_position: int | None = None


class Inject(Command, frozen=True, kw_only=True):
    """Send a payload from ``console`` to a listener.

    ``json`` (parsed), or ``xml`` (a bare document or a whole envelope). ``caller_depth`` counts the runs of agents in
    which the call was made, if it came from one, and ``caller_request`` is the id that it has for its own request.
    ``on_sent`` is called with the ids of the thread and the message before they are written, unless it is a repetition.
    """

    to: str
    json: object = None
    xml: bytes | None = None
    thread_id: str | None = None
    caller_depth: int = 0
    caller_request: str | None = None
    on_sent: Callable[[str, str], None] | None = None


class PauseAgent(Command, frozen=True, kw_only=True):
    """Start nothing more of this agent."""

    agent: str


class ResumeAgent(Command, frozen=True, kw_only=True):
    """Go on with this agent."""

    agent: str


class PauseThread(Command, frozen=True, kw_only=True):
    """Start nothing more in this thread."""

    thread_id: str


class ResumeThread(Command, frozen=True, kw_only=True):
    """Go on with this thread."""

    thread_id: str


class PauseOrganism(Command, frozen=True, kw_only=True):
    """Start nothing more at all."""


class ResumeOrganism(Command, frozen=True, kw_only=True):
    """Go on."""


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
    """Say what became of an unsafe effect: ``id`` is ``MESSAGE:STEP``."""

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
    """An accepted injection: durable before it is given."""

    thread_id: str
    message_id: str
    position: int


@dataclass(frozen=True, slots=True)
class Done:
    """A control command that was carried out (or had nothing to do); ``position`` is the head of what it changed."""

    position: int


@dataclass(frozen=True, slots=True)
class Reloaded:
    """What a reload changed, by name."""

    added: Sequence[str]
    removed: Sequence[str]
    updated: Sequence[str]
    position: int
