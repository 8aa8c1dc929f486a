"""What viewers are shown, in terms that both sides have: a frame as it came, and the frame that an event promises."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import orjson

Shown = tuple[Any, ...]
"""A frame as far as the log foretells it: position, event, and what it is about."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """Agents and events by name; without any, everything."""

    name: str
    agents: frozenset[str] = frozenset()
    events: frozenset[str] = frozenset()

    @property
    def is_filter(self) -> bool:
        """Whether anything is left out; only the command ``subscribe`` can say so."""
        return bool(self.agents or self.events)

    @property
    def lists(self) -> dict[str, list[str]]:
        """The filter as the command takes it."""
        lists = {"agents": sorted(self.agents), "events": sorted(self.events)}
        return {name: names for name, names in lists.items() if names}

    def wants(self, event: str, agents: frozenset[str]) -> bool:
        """Whether a frame passes: for each list it names nothing of that kind, or something in the list."""
        passes_events = not self.events or event in self.events
        return passes_events and (not self.agents or not agents or bool(agents & self.agents))


def _message(frame: dict[str, Any]) -> Shown:
    message = frame["message"]
    return (message["id"], message["from"], message["to"], orjson.dumps(message["payload"]).decode())


SHOWN: Final[dict[str, Callable[[dict[str, Any]], Shown]]] = {
    "message": _message,
    "thread_created": lambda frame: (frame["thread"]["id"],),
    "thread_updated": lambda frame: (frame["thread_id"], frame["status"]),
    "error": lambda frame: (frame["message_id"], frame["attempt"]),
    "dead_letter": lambda frame: (frame["dead_letter"]["id"], frame["status"]),
    "indeterminate": lambda frame: (frame["indeterminate"]["id"], frame["indeterminate"]["status"]),
    "agent_updated": lambda frame: (frame["agent"], frame["paused"]),
}


def shown(frame: dict[str, Any]) -> Shown:
    """The frame that came."""
    about = SHOWN.get(frame["event"])
    return (frame["position"], frame["event"], *(about(frame) if about is not None else ()))


def _sent(event: dict[str, Any]) -> Shown:
    data = event["data"]
    return ("message", data["message"], data["from"], data["to"], orjson.dumps(event["content"]).decode())


def _status(status: str) -> Callable[[dict[str, Any]], Shown]:
    return lambda event: ("thread_updated", event["thread_id"], status)


def _letter(event: dict[str, Any]) -> Shown:
    return ("dead_letter", event["data"]["message"], "open")


def _in_doubt(event: dict[str, Any]) -> Shown | None:
    """A step that begins is no open question; one that was begun and never ended is."""
    data = event["data"]
    return ("indeterminate", f"{data['message']}:{data['step']}", "open") if "unknown" in data else None


def _resolved(event: dict[str, Any]) -> Shown:
    data = event["data"]
    return ("indeterminate", f"{data['message']}:{data['step']}", data["outcome"])


def _state(_event: dict[str, Any]) -> Shown:
    return ("organism_state",)


PROMISED: Final[dict[str, Callable[[dict[str, Any]], Shown | None]]] = {
    "message_sent": _sent,
    "thread_created": lambda event: ("thread_created", event["thread_id"]),
    "thread_reopened": _status("active"),
    "thread_completed": _status("completed"),
    "thread_failed": _status("error"),
    "thread_killed": _status("killed"),
    "message_retried": lambda event: ("error", event["data"]["message"], event["data"]["attempt"]),
    "message_failed": lambda event: ("error", event["data"]["message"], event["data"]["attempt"]),
    "message_dead": _letter,
    "message_refused": _letter,
    "step_started": _in_doubt,
    "step_resolved": _resolved,
    "organism_started": _state,
    "organism_stopped": _state,
    "organism_paused": _state,
    "organism_resumed": _state,
    "agent_paused": lambda event: ("agent_updated", event["data"]["agent"], True),
    "agent_resumed": lambda event: ("agent_updated", event["data"]["agent"], False),
}


def promised(event: dict[str, Any]) -> Shown | None:
    """The frame that the wire's contract promises for this event, if any."""
    maker = PROMISED.get(event["type"])
    said = maker(event) if maker is not None else None
    return None if said is None else (event["position"], *said)


def agents_in(event: dict[str, Any]) -> frozenset[str]:
    """The agents by which a filter finds this event's frame; threads' events, which name all who take part, apart."""
    data = event["data"]
    if event["type"] == "message_sent":
        return frozenset((data["from"], data["to"]))
    return frozenset((data["agent"],)) if "agent" in data else frozenset()
