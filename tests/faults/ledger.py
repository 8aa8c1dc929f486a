"""The log as the oracle reads it: an independent fold of its events, which shares no line with the product's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from tests.faults.frames import Shown, Subscription, agents_in, promised

EVERYONE: Final = "*"


@dataclass(slots=True)
class Entry:
    """One message. ``ends`` are the events that closed it; ``deaths`` the deaths of the process at which it ran."""

    id: str
    position: int
    thread: str
    sender: str
    to: str
    payload: Any
    ends: list[tuple[int, str]] = field(default_factory=list)
    starts: int = 0
    deaths: int = 0
    is_running: bool = False
    asks: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Effect:
    """An effect's step: ``ends`` are what was recorded or resolved of it, in order."""

    message: str
    kind: str
    key: str
    ends: list[str]

    @property
    def line_key(self) -> str:
        """The key that the outside sees."""
        return f"{self.message}/{self.key}"


class Ledger:
    """What the events say.

    ``lives`` are the positions at which a life began, ``parked`` the messages parked with the process and the deaths
    at which each had run, ``paused`` the agents that are, ``oddities`` what no log can say.
    """

    def __init__(self) -> None:
        self.head = 0
        self.oddities: list[str] = []
        self.entries: dict[str, Entry] = {}
        self.effects: dict[tuple[str, int], Effect] = {}
        self.lives: list[int] = []
        self.parked: dict[str, int] = {}
        self.killed: set[str] = set()
        self.paused: set[str] = set()
        self._frames: list[tuple[Shown, frozenset[str]]] = []

    def take(self, events: Iterable[dict[str, Any]]) -> None:
        """Read on."""
        for event in events:
            if event["position"] != self.head + 1:
                self.oddities.append(f"position {event['position']} follows {self.head}")
            self.head = event["position"]
            if event["thread_id"] in self.killed:
                self.odd(event, f"comes after the thread {event['thread_id']} was killed")
            reader = READERS.get(event["type"])
            if reader is not None:
                reader(self, event)
            frame = promised(event)
            if frame is not None:
                self._frames.append((frame, agents_in(event)))

    def frames(self, subscription: Subscription, until: int) -> list[Shown]:
        """What a follower must have been shown up to a position."""
        return [frame for frame, agents in self._frames if frame[0] <= until and subscription.wants(frame[1], agents)]

    def odd(self, event: dict[str, Any], what: str) -> None:
        """This event is not as it can be."""
        self.oddities.append(f"position {event['position']}: {event['type']} {what}")

    def entry(self, event: dict[str, Any]) -> Entry:
        """The message that an event speaks of."""
        message = event["data"]["message"]
        if message not in self.entries:
            self.odd(event, f"speaks of {message}, which was never sent")
            self.entries[message] = Entry(message, event["position"], "", "", "", {})
        return self.entries[message]


def _sent(ledger: Ledger, event: dict[str, Any]) -> None:
    data = event["data"]
    names = (data["message"], event["position"], event["thread_id"], data["from"], data["to"])
    ledger.entries[data["message"]] = Entry(*names, event["content"])


def _started(ledger: Ledger, event: dict[str, Any]) -> None:
    entry = ledger.entry(event)
    entry.starts += 1
    if entry.to in ledger.paused or EVERYONE in ledger.paused:
        ledger.odd(event, f"of {entry.id} for {entry.to}, which is paused")
    entry.is_running = True


def _retried(ledger: Ledger, event: dict[str, Any]) -> None:
    entry = ledger.entry(event)
    entry.is_running = False
    entry.asks.clear()


def _ended(ledger: Ledger, event: dict[str, Any]) -> None:
    entry = ledger.entry(event)
    entry.ends.append((event["position"], event["type"]))
    entry.is_running = False
    if event["data"].get("code") == "killed_process":
        ledger.parked[entry.id] = entry.deaths


def _life_began(ledger: Ledger, event: dict[str, Any]) -> None:
    """What ran at a death counts it; who waited for somebody else ran nothing."""
    ledger.lives.append(event["position"])
    for entry in ledger.entries.values():
        if entry.is_running and not entry.asks and not event["data"]["clean"]:
            entry.deaths += 1
        entry.is_running = False


def _step_started(ledger: Ledger, event: dict[str, Any]) -> None:
    data = event["data"]
    step = (data["message"], data["step"])
    if data["kind"] == "ask":
        ledger.entry(event).asks.add(data["step"])
    elif data["kind"] == "effect":
        before = ledger.effects.get(step)
        ends = before.ends if before is not None else []
        ledger.effects[step] = Effect(data["message"], data["effect"], data["key"], ends)


def _step_ended(ledger: Ledger, event: dict[str, Any]) -> None:
    data = event["data"]
    ledger.entry(event).asks.discard(data["step"])
    effect = ledger.effects.get((data["message"], data["step"]))
    if effect is not None:
        effect.ends.append(data.get("outcome", "failed" if "error" in data else "recorded"))


def _thread_killed(ledger: Ledger, event: dict[str, Any]) -> None:
    ledger.killed.add(event["thread_id"])


def _paused(ledger: Ledger, event: dict[str, Any]) -> None:
    ledger.paused.add(event["data"].get("agent", EVERYONE))


def _resumed(ledger: Ledger, event: dict[str, Any]) -> None:
    ledger.paused.discard(event["data"].get("agent", EVERYONE))


READERS: Final[dict[str, Callable[[Ledger, dict[str, Any]], None]]] = {
    "message_sent": _sent,
    "message_started": _started,
    "message_retried": _retried,
    "message_handled": _ended,
    "message_dropped": _ended,
    "message_dead": _ended,
    "organism_started": _life_began,
    "thread_killed": _thread_killed,
    "agent_paused": _paused,
    "agent_resumed": _resumed,
    "organism_paused": _paused,
    "organism_resumed": _resumed,
    "step_started": _step_started,
    "step_recorded": _step_ended,
    "step_resolved": _step_ended,
}
