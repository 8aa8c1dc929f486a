"""An active thread in memory: its open messages, the calls that they stand in, the steps of their handlings.

These are the objects that ``projections/routing.py`` folds; nothing else makes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from organism.model.events import Event
from organism.model.run import BLOCKS

WAITS: Final = frozenset({"ask", "approve", "complete"})
"""Kinds of steps in which a handler waits for somebody else."""
CONSENT: Final = 0
"""The number of the step in which a human is asked whether a message may be handled: it comes before all others."""
ROOTS_KEPT: Final = 256
"""A thread that was injected into so often looks which of its roots nothing rests on any more."""


class Root(NamedTuple):
    """The injection at the root of a causal chain, as far as rights in it go.

    ``principal`` is who injected, or None for the host program itself; ``depth`` the runs of agents around that.
    """

    principal: str | None = None
    depth: int = 0


NO_ROOT: Final = Root()
NOBODY: Final[frozenset[str]] = frozenset()


@dataclass(slots=True, eq=False)
class Thread:
    """A thread that is active. ``open`` counts its open messages.

    ``failed`` its open dead letters of failed handlings. ``roots`` are its injections, by correlation, but for those
    of the host program.
    """

    id: str
    open: int = 0
    failed: int = 0
    reason: str = ""
    paused: bool = False
    head: int = 0
    parent: str | None = None
    todos: dict[str, dict[str, Any]] | None = None
    roots: dict[str, Root] | None = None

    def begin_chain(self, correlation: str | None, root: Root, open_messages: Iterable[Message]) -> None:
        """A message was injected: what follows from it follows from this root."""
        if correlation is None or root == NO_ROOT:
            return
        if self.roots is not None and len(self.roots) % ROOTS_KEPT == 0:
            followed = {message.correlation for message in open_messages}
            self.roots = {key: kept for key, kept in self.roots.items() if key in followed}
        self.roots = self.roots or {}
        self.roots[correlation] = root


@dataclass(slots=True, eq=False)
class Call:
    """The context of a request: who waits for its answer, and in which call that one stands. Private to the pump."""

    id: str
    caller: str
    parent: Call | None
    step: Step | None = None
    ask: Step | None = None


@dataclass(slots=True, eq=False)
class Step:
    """A step of a handling: its record, or that it is under way.

    ``open`` counts the open messages in an ask's branch: when none is left, no answer can come any more. ``expires``
    and ``held_at``, since when its clock stands still, are times in µs; ``content_at`` is the position of its result.
    """

    message: Message
    number: int
    kind: str
    input: str
    ok: bool | None = None
    error: dict[str, str] | None = None
    content_at: int = 0
    result: Any = None
    open: int = 0
    effect: str = ""
    key: str = ""
    approval: str = ""
    expires: int = 0
    held_at: int = 0
    unknown: bool = False
    is_written: bool = True

    def named(self) -> dict[str, Any]:
        """What every event of a step says of it."""
        message = self.message
        return {"message": message.id, "agent": message.to, "step": self.number, "kind": self.kind, "input": self.input}


class Shown:
    """What the log holds of a message's run.

    ``counts`` is how often each entry stands there, by its type and ``id``; of a block its end counts. ``open`` names
    the blocks that have begun and not ended, by kind and ``id``.
    """

    __slots__ = ("counts", "open")

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.open: dict[str, None] = {}

    def take(self, kind: str, entry_id: str) -> None:
        """One more entry."""
        block, _, part = kind.partition("_")
        if block in BLOCKS and part in {"start", "delta"}:
            self.open[f"{block} {entry_id}"] = None
            return
        if block in BLOCKS and part == "end":
            self.open.pop(f"{block} {entry_id}", None)
        name = f"{kind} {entry_id}"
        self.counts[name] = self.counts.get(name, 0) + 1


class Message:
    """An open message. ``call`` is the call in which a request was sent, or in which a reply is handled.

    ``digest`` is its content's, by which that is checked when it is read: without it the whole unit has to be read.
    ``authors`` names whose text it may hold: agents, and listeners that bring text from outside. It is a fact of the
    message and never changes; ``read`` names those whose text its handling has read since, in answers to its asks.
    """

    __slots__ = (
        "after",
        "ask",
        "authors",
        "call",
        "correlation",
        "deaths",
        "depth",
        "digest",
        "failures",
        "generation",
        "handling",
        "id",
        "line",
        "next",
        "next_at",
        "payload",
        "position",
        "read",
        "reply",
        "running",
        "sender",
        "shown",
        "starts",
        "step",
        "steps",
        "thread",
        "to",
        "type",
    )

    def __init__(self, event: Event, thread: Thread) -> None:
        data = event.data
        self.id: str = data["message"]
        self.sender: str = data["from"]
        self.to: str = data["to"]
        self.type: str = data["type"]
        self.depth: int = data["depth"]
        self.reply: bool = "reply" in data
        self.authors = frozenset(data["authors"]) if "authors" in data else NOBODY
        self.read = NOBODY
        self.thread = thread
        self.position = event.position
        self.digest: str = data.get("content", "")
        self.correlation = event.correlation
        self.call: Call | None = None
        self.step: Step | None = None
        self.ask: Step | None = None
        self.starts = 0
        self.failures = 0
        self.deaths = 0
        self.running = False
        self.next_at = 0
        self.after = ""
        self.steps: dict[int, Step] | None = None
        self.shown: Shown | None = None
        self.payload: Any = None
        self.generation = 0
        self.next: Message | None = None
        self.line: Any = None
        self.handling: Any = None

    @property
    def root(self) -> Root:
        """The injection that it follows from."""
        return (self.thread.roots or {}).get(self.correlation or "", NO_ROOT)

    def shows(self) -> Shown:
        """What the log holds of its run, from the first entry on."""
        if self.shown is None:
            self.shown = Shown()
        return self.shown

    def is_indeterminate(self) -> bool:
        """Whether an unsafe effect of it was found started and not finished."""
        return self.steps is not None and any(step.unknown for step in self.steps.values())

    def awaits_consent(self) -> bool:
        """Whether a human is asked whether it may be handled."""
        return self.steps is not None and CONSENT in self.steps and self.steps[CONSENT].ok is None

    def is_waiting_in_step(self) -> bool:
        """Whether its handler waits in an ask, an approval or a model call, and so runs no code of its own."""
        return self.steps is not None and any(step.ok is None and step.kind in WAITS for step in self.steps.values())


def steps_held(message: Message, *, is_paused: bool) -> Iterable[Step]:
    """The steps whose clocks stand still for this message's sake.

    A pause holds up its own steps that wait for somebody and the asks that wait for it. While a human is asked whether
    it may be handled at all, the asks alone: the question itself has its own end.
    """
    if is_paused:
        yield from (step for step in (message.steps or {}).values() if step.ok is None and step.kind in WAITS)
    if is_paused or message.awaits_consent():
        yield from asks_above(message)


def asks_above(message: Message) -> Iterable[Step]:
    """The asks that wait for an answer of the message's branch, from the nearest to the farthest."""
    ask, seen = message.ask, set[Step]()
    while ask is not None and ask not in seen:
        seen.add(ask)
        yield ask
        ask = ask.message.ask


def stop_or_go(step: Step, at: int, *, is_held: bool) -> None:
    """Stop the step's clock at a time, or let it run on: then its end moves on by the time in between."""
    if is_held and not step.held_at:
        step.held_at = at
    elif step.held_at and not is_held:
        step.expires += at - step.held_at if step.expires else 0
        step.held_at = 0
