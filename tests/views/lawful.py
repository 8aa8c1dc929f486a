"""Random but lawful logs, to compare folds with a recount: only what a pump may write, as ``moves`` defines it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

from msgspec.structs import replace

from organism.events.record import Record
from organism.events.vocabulary import (
    AgentResumed,
    ApprovalCancelled,
    Declared,
    Event,
    MessageHandled,
    MessageSent,
    OrganismStarted,
    OrganismStopped,
    Outcome,
    StepError,
    StepKind,
    StepRecorded,
    StepStarted,
    ThreadCompleted,
    ThreadFailed,
    ThreadReopened,
)
from tests.views.folding import AT, listener

E = TypeVar("E", bound=Event)
NAMES: Final = ("ada", "bob", "cyd", "dot", "eve")


@dataclass
class Letter:
    """An open message. ``steps``: open steps by number, with their kind; ``ask``: the step that its answer closes.

    An effect that was under way when its handling ended is ``unknown``.
    """

    id: str
    thread: str
    sender: str
    to: str
    position: int
    ask: tuple[Letter, int] | None = None
    running: bool = False
    starts: int = 0
    count: int = 0
    steps: dict[int, StepKind | Literal["unknown"]] = field(default_factory=dict)
    approvals: dict[str, int] = field(default_factory=dict)


class World:
    """A small organism that writes events; every move leaves the log lawful."""

    def __init__(self) -> None:
        self.records: list[Record[Any]] = []
        self.at = AT
        self.count = 0
        self.names: list[str] = []
        self.paused: set[str] = set()
        self.paused_threads: set[str] = set()
        self.letters: dict[str, Letter] = {}
        self.threads: dict[str, str] = {}
        self.dead: dict[str, tuple[str, str, bool]] = {}
        self.start(NAMES[:3], clean=True)

    def add(self, event: E, thread: str | None = None) -> Record[E]:
        """Write one event, at the time of its unit."""
        record = Record(event, thread=thread, at=self.at, position=len(self.records) + 1)
        self.records.append(record)
        return record

    def fresh(self, prefix: str) -> str:
        """An id that was not used before."""
        self.count += 1
        return f"{prefix}-{self.count}"

    # -- the organism

    def listing(self, names: Sequence[str]) -> tuple[tuple[Declared, ...], tuple[str, ...]]:
        """The listeners of a start or reload, and those taken away: they are paused no more."""
        known = {*self.names, *(letter.to for letter in self.letters.values())}
        for name in sorted(self.paused - set(names)):
            self.add(AgentResumed(name, "removal"))
        self.paused &= set(names)
        self.names = list(names)
        return tuple(listener(name) for name in names), tuple(sorted(known - set(names)))

    def start(self, names: Sequence[str], *, clean: bool) -> None:
        """A new life: nothing runs; unsafe effects that were under way are noted as unknown."""
        if clean and self.records:
            self.add(OrganismStopped())
        listeners, removed = self.listing(names)
        self.add(OrganismStarted("lawful", "1", "digest", listeners, life=1, clean=clean, removed=removed))
        for letter in self.letters.values():
            letter.running = False
            self.note_unknown(letter)

    def note_unknown(self, letter: Letter) -> None:
        """Unsafe effects that were under way: nobody knows whether they happened."""
        for number, kind in letter.steps.items():
            if kind == "effect":
                letter.steps[number] = "unknown"
                self.begin_step(letter, number, "effect", unknown=True)

    # -- messages

    def send(self, thread: str, sender: str, to: str, ask: tuple[Letter, int] | None = None) -> None:
        """A message to a listener."""
        message = self.fresh("msg")
        step = (ask[0].id, ask[1]) if ask else None
        record = self.add(MessageSent(message, sender, to, "Note", 1, "call", step=step), thread)
        self.letters[message] = Letter(message, thread, sender, to, record.position, ask)

    def reply(
        self, thread: str, sender: str, to: str, outcome: Outcome, answers: tuple[str, int] | None = None
    ) -> None:
        """A reply that is taken in the unit that sends it."""
        message = self.fresh("msg")
        self.add(MessageSent(message, sender, to, "Note", 1, "call", reply=True, answers=answers), thread)
        self.add(MessageHandled(message, to, outcome, duration=0), thread)

    def begin_step(
        self, letter: Letter, number: int, kind: StepKind, *, approval: str = "", unknown: bool = False
    ) -> None:
        """A step begins; every effect is unsafe."""
        step = StepStarted(letter.id, letter.to, number, kind, "d", approval=approval, unknown=unknown)
        self.add(replace(step, effect="unsafe", key="k") if kind == "effect" else step, letter.thread)

    def end_step(self, letter: Letter, number: int, kind: StepKind, error: StepError | None = None) -> None:
        """A step has its result."""
        self.add(StepRecorded(letter.id, letter.to, number, kind, "d", error), letter.thread)

    def close(self, letter: Letter) -> None:
        """A message ends: what is open of it is closed, and who asked learns that no answer comes."""
        self.cancel(letter)
        for number in [number for number, kind in letter.steps.items() if kind in {"effect", "unknown"}]:
            self.end_step(letter, number, "effect", StepError("unknown", "?"))
        del self.letters[letter.id]
        if letter.ask is not None:
            asker, number = letter.ask
            if asker.id in self.letters and number in asker.steps:
                del asker.steps[number]
                self.end_step(asker, number, "ask", StepError("no_reply", "none"))

    def cancel(self, letter: Letter) -> None:
        """Nobody waits for its approvals any more."""
        for approval in letter.approvals:
            self.add(ApprovalCancelled(approval), letter.thread)
        letter.approvals.clear()

    def wake(self, thread: str) -> None:
        """Something comes into a thread."""
        if self.threads[thread] != "active":
            self.add(ThreadReopened(), thread)
            self.threads[thread] = "active"

    def settle(self) -> None:
        """Threads in which nothing is open end, in the unit that closed the last; then a new unit begins."""
        open_threads = {letter.thread for letter in self.letters.values()}
        for thread in [thread for thread, status in self.threads.items() if status == "active"]:
            if thread not in open_threads:
                failed = any(place == thread and by_failure for place, _, by_failure in self.dead.values())
                self.add(ThreadFailed("it broke") if failed else ThreadCompleted(), thread)
                self.threads[thread] = "over"
        self.at += 1_000_003
