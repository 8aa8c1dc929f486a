"""The commands of the WebSocket: a table of names, bodies and scopes, over the same records and commands as REST."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any, Final, Literal

import orjson
from pydantic import ConfigDict, Field, Strict, with_config

from organism.errors import Fault, InvalidField, MissingField
from organism.model.commands import (
    Command,
    Idempotency,
    Inject,
    KillThread,
    PauseAgent,
    PauseThread,
    ResolveApproval,
    ResumeAgent,
    ResumeThread,
)
from organism.model.events import Actor
from organism.server import rights
from organism.server.bodies import Name, Names, NoBody, Position
from organism.server.frames import FRAMES
from organism.server.push import Filter
from organism.server.rights import Right, right_of

_CLOSED: Final = ConfigDict(extra="forbid")


@with_config(_CLOSED)
@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribe:
    """Replace the filter; with ``since``, go on from that position of the timeline ``log``.

    With ``batch`` what is pushed comes as JSON arrays, one for each commit.
    """

    threads: Names | None = None
    agents: Names | None = None
    events: Names | None = None
    since: Position | None = None
    log: Name | None = None
    batch: Annotated[bool, Strict()] = False

    def filter(self) -> Filter:
        """The three lists. Raises ``InvalidField`` for an event that there is none of."""
        unknown = tuple(
            Fault(f"/events/{at}", f"there is no event {name!r}")
            for at, name in enumerate(self.events or ())
            if name not in FRAMES
        )
        if unknown:
            raise InvalidField(f"Events are {', '.join(sorted(FRAMES))}.", details=unknown)
        return Filter(_set(self.threads), _set(self.agents), _set(self.events), as_arrays=self.batch)

    def shown(self) -> dict[str, list[str]]:
        """The filter as its answer shows it: the lists that are given."""
        given = {"threads": self.threads, "agents": self.agents, "events": self.events}
        return {name: names for name, names in given.items() if names is not None}


@with_config(_CLOSED)
@dataclass(frozen=True, slots=True, kw_only=True)
class InjectCommand:
    """Send a payload from ``console`` to a listener."""

    to: Annotated[Name, Field(examples=["greeter"])]
    payload: Annotated[Any, Field(examples=[{"name": "Dan"}])]
    thread_id: Name | None = None
    idempotency_key: Annotated[str, Field(pattern=r"^[\x21-\x7e]{1,255}$")] | None = None

    def command(self, actor: Actor, on_sent: Callable[[str, str], None] | None = None) -> Inject:
        """The command, bound to its key if it has one."""
        asked = orjson.dumps([self.to, self.payload, self.thread_id], option=orjson.OPT_SORT_KEYS)
        key = self.idempotency_key
        once = Idempotency(key, "WS", "/ws/inject", sha256(asked).hexdigest()) if key else None
        return Inject(
            to=self.to, json=self.payload, thread_id=self.thread_id, actor=actor, idempotency=once, on_sent=on_sent
        )


@with_config(_CLOSED)
@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """End a thread's whole tree."""

    thread_id: Annotated[Name, Field(examples=["thr-01a2b3c4"])]

    def command(self, actor: Actor) -> Command:
        """The command."""
        return KillThread(thread_id=self.thread_id, actor=actor)


@with_config(_CLOSED)
@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Pause an agent or a thread: one of them is named."""

    agent: Name | None = None
    thread_id: Name | None = None

    def command(self, actor: Actor) -> Command:
        """The command. Raises ``MissingField`` or ``InvalidField``."""
        thread_id = one_named(self.agent, self.thread_id)
        return (
            PauseThread(thread_id=thread_id, actor=actor)
            if thread_id
            else PauseAgent(agent=self.agent or "", actor=actor)
        )


@with_config(_CLOSED)
@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """Resume an agent or a thread: one of them is named."""

    agent: Name | None = None
    thread_id: Name | None = None

    def command(self, actor: Actor) -> Command:
        """The command. Raises ``MissingField`` or ``InvalidField``."""
        thread_id = one_named(self.agent, self.thread_id)
        return (
            ResumeThread(thread_id=thread_id, actor=actor)
            if thread_id
            else ResumeAgent(agent=self.agent or "", actor=actor)
        )


@with_config(_CLOSED)
@dataclass(frozen=True, slots=True, kw_only=True)
class Resolve:
    """Decide an approval."""

    approval: Annotated[Name, Field(examples=["apr-01a2b3c4"])]
    decision: Literal["approve", "reject"]
    edits: Any = None
    comment: Annotated[str, Field(max_length=10_000)] = ""

    def command(self, actor: Actor) -> Command:
        """The command."""
        return ResolveApproval(
            approval=self.approval, decision=self.decision, edits=self.edits, comment=self.comment, actor=actor
        )


@with_config(_CLOSED)
@dataclass(frozen=True, slots=True, kw_only=True)
class Auth:
    """The first message of a client that could send no header."""

    token: Annotated[Name, Field(examples=["org_9f86d081"])]


@dataclass(frozen=True, slots=True)
class Kind:
    """A command: its body, and what its token needs."""

    body: type[Any]
    right: Right


BODIES: Final[Mapping[str, type[Any]]] = {
    "subscribe": Subscribe,
    "inject": InjectCommand,
    "kill": Kill,
    "pause": Pause,
    "resume": Resume,
    "resolve": Resolve,
    "auth": Auth,
    "ping": NoBody,
}
COMMANDS: Final[Mapping[str, Kind]] = {
    name: Kind(body, right_of(rights.COMMANDS, name)) for name, body in BODIES.items()
}
"""Every command there is, with its line of the table of rights."""


def one_named(agent: str | None, thread_id: str | None) -> str | None:
    """The thread, or None if the agent is meant. Raises if none or both are named."""
    if not agent and not thread_id:
        raise MissingField(
            "Name an `agent` or a `thread_id`; the whole organism is paused and resumed by POST /api/v1/organism/pause "
            "and /resume.",
            param="/agent",
        )
    if agent and thread_id:
        raise InvalidField("Name an `agent` or a `thread_id`, not both.", param="/thread_id")
    return thread_id


def _set(names: list[str] | None) -> frozenset[str] | None:
    return None if names is None else frozenset(names)
