"""What a client of the WebSocket may ask for: by its commands, and by the query of its address."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Any, ClassVar, Final, Literal

import orjson
from msgspec import UNSET
from pydantic import Field, Strict

from organism.errors import BadPosition, Fault, InvalidField, InvalidRequest, MissingField
from organism.events.record import Actor
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
from organism.server.http.auth import TICKET
from organism.server.http.bodies import Faults, Name, Names, NoBody, Position, body, parsed, refuse_unknown
from organism.server.http.rights import READ, Right
from organism.server.json import MAX_POSITION, whole_number
from organism.server.push.filter import Filter, as_array, singly
from organism.server.push.frames import FRAMES
from organism.server.ws.answers import FilterSaid
from organism.views.views import MOST_PAYLOAD_BYTES

LISTS: Final = ("threads", "agents", "events")
IN_QUERY: Final = ("since", "until", "log", *LISTS, "payloads", "batch", TICKET)
IN_ADDRESS: Final = {"/since": "query.since", "/until": "query.until", "/log": "query.log"}
"""Where the fields of an ``Opening`` are in the address."""


@body
class Subscribe:
    """Replace the filter; with ``since``, go on from that position of the timeline ``log``.

    With ``batch`` what is pushed comes as JSON arrays, one for each commit; of payloads longer than ``payloads`` bytes
    the beginning comes.
    """

    threads: Names | None = None
    agents: Names | None = None
    events: Names | None = None
    since: Position | None = None
    log: Name | None = None
    batch: Annotated[bool, Strict()] = False
    payloads: Annotated[int, Strict(), Field(ge=0, le=MOST_PAYLOAD_BYTES)] | None = None

    @property
    def resumes(self) -> bool:
        """Whether the client has the state already and goes on from a position."""
        return self.since is not None or self.log is not None

    def filter(self) -> Filter:
        """Raises ``InvalidField`` for an event that there is none of."""
        unknown = tuple(
            Fault(f"/events/{at}", f"there is no event {name!r}")
            for at, name in enumerate(self.events or ())
            if name not in FRAMES
        )
        if unknown:
            raise InvalidField(f"Events are {', '.join(sorted(FRAMES))}.", details=unknown)
        threads, agents, events = (
            None if names is None else frozenset(names) for names in (self.threads, self.agents, self.events)
        )
        return Filter(threads, agents, events, as_array if self.batch else singly, self.payloads)

    def shown(self) -> FilterSaid:
        """The filter as its answer shows it: the lists that were sent."""
        threads, agents, events = (
            UNSET if names is None else names for names in (self.threads, self.agents, self.events)
        )
        return FilterSaid(threads, agents, events, UNSET if self.payloads is None else self.payloads)


@body
class Opening(Subscribe):
    """What an address subscribes to; with ``until``, the connection ends at that position."""

    until: Position | None = None


@body
class InjectCommand:
    """Send a payload from ``console`` to a listener."""

    to: Annotated[Name, Field(examples=["greeter"])]
    payload: Annotated[Any, Field(examples=[{"name": "Dan"}])]
    thread_id: Name | None = None
    idempotency_key: Annotated[str, Field(pattern=r"^[\x21-\x7e]{1,255}$")] | None = None

    def command(self, actor: Actor, on_sent: Callable[[str, str], None] | None = None) -> Inject:
        """The command, bound to its key if it has one."""
        content = orjson.dumps([self.to, self.payload, self.thread_id], option=orjson.OPT_SORT_KEYS)
        key = self.idempotency_key
        once = Idempotency(key, "WS", "/ws/inject", sha256(content).hexdigest()) if key else None
        return Inject(
            to=self.to, json=self.payload, thread_id=self.thread_id, actor=actor, idempotency=once, on_sent=on_sent
        )


@body
class Kill:
    """End a thread's whole tree."""

    thread_id: Annotated[Name, Field(examples=["thr-01a2b3c4"])]

    def command(self, actor: Actor) -> Command:
        return KillThread(thread_id=self.thread_id, actor=actor)


@body
class Pause:
    """Pause an agent or a thread: one of them is named."""

    agent: Name | None = None
    thread_id: Name | None = None

    OF_AGENT: ClassVar[type[PauseAgent | ResumeAgent]] = PauseAgent
    OF_THREAD: ClassVar[type[PauseThread | ResumeThread]] = PauseThread

    def command(self, actor: Actor) -> Command:
        """Raises ``MissingField`` or ``InvalidField`` unless one of the two is named."""
        if self.agent and self.thread_id:
            raise InvalidField("Name an `agent` or a `thread_id`, not both.", param="/thread_id")
        if self.thread_id:
            return self.OF_THREAD(thread_id=self.thread_id, actor=actor)
        if self.agent:
            return self.OF_AGENT(agent=self.agent, actor=actor)
        raise MissingField(
            "Name an `agent` or a `thread_id`; the whole organism is paused and resumed by "
            "POST /api/v1/organism/pause and /resume.",
            param="/agent",
        )


@body
class Resume(Pause):
    """Resume an agent or a thread: one of them is named."""

    OF_AGENT = ResumeAgent
    OF_THREAD = ResumeThread


@body
class Resolve:
    """Decide an approval."""

    approval: Annotated[Name, Field(examples=["apr-01a2b3c4"])]
    decision: Literal["approve", "reject"]
    edits: Any = None
    comment: Annotated[str, Field(max_length=10_000)] = ""

    def command(self, actor: Actor) -> Command:
        return ResolveApproval(
            approval=self.approval, decision=self.decision, edits=self.edits, comment=self.comment, actor=actor
        )


@body
class Auth:
    """The first message of a client that could send no header."""

    token: Annotated[Name, Field(examples=["org_9f86d081"])]


@dataclass(frozen=True, slots=True)
class CommandKind:
    """A line of the command table: what a command carries, and the right it needs."""

    body: type[Any]
    right: Right


_CONTROL: Final = Right("control", {"agent": "agent", "thread_id": "thread"})

COMMANDS: Final[Mapping[str, CommandKind]] = {
    "subscribe": CommandKind(Subscribe, READ),
    "inject": CommandKind(InjectCommand, Right("inject", {"to": "agent"})),
    "kill": CommandKind(Kill, Right("control", {"thread_id": "thread"})),
    "pause": CommandKind(Pause, _CONTROL),
    "resume": CommandKind(Resume, _CONTROL),
    "resolve": CommandKind(Resolve, Right("control", {"approval": "approval"})),
    "auth": CommandKind(Auth, READ),
    "ping": CommandKind(NoBody, READ),
}
"""By name."""


def opening_of(query: Mapping[str, str], allowed: Sequence[str] = IN_QUERY, seen: int | None = None) -> Opening:
    """What the query of an address subscribes to; its lists are separated by commas. ``seen`` goes before ``since``.

    Raises ``InvalidRequest`` with all that is wrong.
    """
    faults = Faults()
    fields = {}
    for name, text in query.items():
        with faults:
            refuse_unknown((name,), allowed)
            if name != TICKET:
                fields[name] = _value(name, text)
    with faults:
        try:
            begin = parsed(Opening, fields if seen is None else {**fields, "since": seen})
            begin.filter()
        except InvalidRequest as error:
            places = tuple(Fault("query." + fault.pointer.split("/")[1], fault.message) for fault in error.details)
            raise type(error)(error.message, details=places) from error
    with faults:
        if "until" in query and "since" not in query and seen is None:
            raise MissingField("`until` ends what begins at `since`; send `since` too.", param="query.since")
    faults.raise_found()
    return begin


def _value(name: str, text: str) -> Any:
    if name in {"since", "until"}:
        return position_in(text, f"query.{name}")
    if name == "payloads":
        return whole_number(text, "query.payloads", 0, MOST_PAYLOAD_BYTES)
    if name == "batch":
        return {"true": True, "false": False}.get(text, text)
    return [part for part in text.split(",") if part] if name in LISTS else text


def position_in(text: str, place: str) -> int:
    """The position that a text says. Raises ``InvalidField``, and ``BadPosition`` for one that no log can have."""
    if not (text.isascii() and text.isdigit()):
        name = place.rpartition(".")[2]
        raise InvalidField(f"`{name}` is a position, a whole number; came {text[:40]!r}.", param=place)
    if len(text) > len(str(MAX_POSITION)) or int(text) > MAX_POSITION:
        raise BadPosition(f"The position {text[:40]} is ahead of any log.", param=place)
    return int(text)
