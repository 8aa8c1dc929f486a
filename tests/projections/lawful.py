"""Random but lawful logs, for folds to be held against a recount: only what a pump may write, as told by ``moves``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from organism.model.events import Event
from tests.projections.folding import AT, listener

NAMES: Final = ("ada", "bob", "cyd", "dot", "eve")


@dataclass
class Letter:
    """An open message. ``steps``: open steps by number, with their kind; ``ask``: the step that its answer closes."""

    id: str
    thread: str
    sender: str
    to: str
    position: int
    ask: tuple[Letter, int] | None = None
    running: bool = False
    starts: int = 0
    count: int = 0
    steps: dict[int, str] = field(default_factory=dict)
    approvals: dict[str, int] = field(default_factory=dict)


class World:
    """A small organism that writes events; every move leaves the log lawful."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.at = AT
        self.count = 0
        self.names: list[str] = []
        self.paused: set[str] = set()
        self.letters: dict[str, Letter] = {}
        self.threads: dict[str, str] = {}
        self.dead: dict[str, tuple[str, str, bool]] = {}
        self.start(NAMES[:3], clean=True)

    def add(self, kind: str, thread: str | None = None, /, **data: Any) -> Event:
        """Write one event, at the time of its unit."""
        event = Event(kind, data, None, thread)
        event.position = len(self.events) + 1
        event.at = self.at
        self.events.append(event)
        return event

    def fresh(self, prefix: str) -> str:
        """An id that was not used before."""
        self.count += 1
        return f"{prefix}-{self.count}"

    # -- the organism

    def listing(self, names: Sequence[str]) -> dict[str, Any]:
        """What a start or reload says of the listeners; who was taken away is paused no more."""
        known = {*self.names, *(letter.to for letter in self.letters.values())}
        removed = sorted(known - set(names))
        for name in sorted(self.paused - set(names)):
            self.add("agent_resumed", agent=name, by="operator")
        self.paused &= set(names)
        self.names = list(names)
        return {"listeners": [listener(name) for name in names], "removed": removed}

    def start(self, names: Sequence[str], *, clean: bool) -> None:
        """A new life: nothing runs; unsafe effects that were under way are noted as unknown."""
        if clean and self.events:
            self.add("organism_stopped")
        self.add("organism_started", name="lawful", version="1", life=1, clean=clean, **self.listing(names))
        for letter in self.letters.values():
            letter.running = False
            self.note_unknown(letter)

    def note_unknown(self, letter: Letter) -> None:
        """Unsafe effects that were under way: nobody knows whether they happened."""
        for number, kind in letter.steps.items():
            if kind == "effect":
                letter.steps[number] = "unknown"
                self.step("step_started", letter, number, "effect", unknown=True, key="k")

    # -- messages

    def send(self, thread: str, sender: str, to: str, ask: tuple[Letter, int] | None = None) -> None:
        """A message to a listener."""
        data: dict[str, Any] = {"message": self.fresh("msg"), "from": sender, "to": to, "type": "Note", "depth": 1}
        event = self.add("message_sent", thread, **data, **({"step": [ask[0].id, ask[1]]} if ask else {}))
        self.letters[data["message"]] = Letter(data["message"], thread, sender, to, event.position, ask)

    def send_and_take(self, thread: str, sender: str, to: str, outcome: str, **more: Any) -> None:
        """A message that is taken in the unit that sends it."""
        message = self.fresh("msg")
        self.add("message_sent", thread, message=message, **{"from": sender}, to=to, type="Note", depth=1, **more)
        self.add("message_handled", thread, message=message, agent=to, outcome=outcome, duration=0)

    def step(self, kind_of_event: str, letter: Letter, number: int, kind: str, **more: Any) -> None:
        """An event about a step."""
        more = {"message": letter.id, "agent": letter.to, "step": number, "kind": kind, "input": "d", **more}
        if kind_of_event == "step_started" and kind == "effect":
            more["effect"] = "unsafe"
        self.add(kind_of_event, letter.thread, **more)

    def close(self, letter: Letter) -> None:
        """A message ends: what is open of it is closed, and who asked learns that no answer comes."""
        self.cancel(letter)
        for number in [number for number, kind in letter.steps.items() if kind in {"effect", "unknown"}]:
            self.step("step_recorded", letter, number, "effect", error={"code": "unknown", "message": "?"})
        del self.letters[letter.id]
        if letter.ask is not None:
            asker, number = letter.ask
            if asker.id in self.letters and number in asker.steps:
                del asker.steps[number]
                self.step("step_recorded", asker, number, "ask", error={"code": "no_reply", "message": "none"})

    def cancel(self, letter: Letter) -> None:
        """Nobody waits for its approvals any more."""
        for approval in letter.approvals:
            self.add("approval_cancelled", letter.thread, approval=approval)
        letter.approvals.clear()

    def wake(self, thread: str) -> None:
        """Something comes into a thread."""
        if self.threads[thread] != "active":
            self.add("thread_reopened", thread)
            self.threads[thread] = "active"

    def settle(self) -> None:
        """Threads in which nothing is open end, in the unit that closed the last; then a new unit begins."""
        open_threads = {letter.thread for letter in self.letters.values()}
        for thread in [thread for thread, status in self.threads.items() if status == "active"]:
            if thread not in open_threads:
                failed = any(place == thread and by_failure for place, _, by_failure in self.dead.values())
                self.add("thread_failed", thread, reason="it broke") if failed else self.add("thread_completed", thread)
                self.threads[thread] = "over"
        self.at += 1_000_003
