"""Commands: what people and programs ask of a tenant's organism. Imperative, frozen, parsed at the edge.

Every command carries its ``Actor`` and may carry an ``Idempotency``: then the answer is recorded in the act's own
unit, and the same key gives the same answer again, after a crash too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from organism.model.events import Actor

NOBODY = Actor()


@dataclass(frozen=True, slots=True)
class Idempotency:
    """An idempotency key with what it is bound to; ``digest`` is that of the request's body."""

    key: str
    method: str
    path: str
    digest: str

    @property
    def name(self) -> str:
        """What the answer is kept under: neither method nor path has a space in it."""
        return f"{self.method} {self.path} {self.key}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What all commands carry. ``if_position`` refuses the act (``StalePosition``) if the thread has moved on."""

    actor: Actor = NOBODY
    idempotency: Idempotency | None = None
    if_position: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Inject(Command):
    """Send a payload from ``console`` to a listener.

    ``json`` (parsed), or ``xml`` (a bare document or a whole envelope). ``caller_depth`` counts the runs of agents in
    which the call was made, if it came from one, and ``caller_request`` is the id that it has for its own request.
    ``on_sent`` is called with the ids of the thread and the message before they are written, unless it is a repetition.
    """

    to: str
    json: Any = None
    xml: bytes | None = None
    thread_id: str | None = None
    caller_depth: int = 0
    caller_request: str | None = None
    on_sent: Callable[[str, str], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseAgent(Command):
    """Start nothing more of this agent."""

    agent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeAgent(Command):
    """Go on with this agent."""

    agent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseThread(Command):
    """Start nothing more in this thread."""

    thread_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeThread(Command):
    """Go on with this thread."""

    thread_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseOrganism(Command):
    """Start nothing more at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeOrganism(Command):
    """Go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KillThread(Command):
    """End the thread's whole tree at once."""

    thread_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayDeadLetter(Command):
    """Send a dead letter's payload again, edited if ``json`` is given."""

    message_id: str
    json: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscardDeadLetter(Command):
    """Close a dead letter for good."""

    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveIndeterminate(Command):
    """Say what became of an unsafe effect: ``id`` is ``MESSAGE:STEP``."""

    id: str
    outcome: Literal["done", "redo", "fail"]
    result: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolveApproval(Command):
    """Decide an approval."""

    approval: str
    decision: Literal["approve", "reject"]
    edits: Any = None
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
