"""The agents, held against a naive recount of the whole log."""

from __future__ import annotations

from hypothesis import given

from organism.log.log import Row
from organism.model.events import Event
from organism.model.times import iso
from organism.projections import agents
from tests.projections.folding import fold
from tests.projections.moves import lawful_logs

ENDS = {"message_handled", "message_dropped", "message_dead"}
WELL = {("message_handled", "done"), ("message_handled", "killed")}
NO_ACTIVITY = {"message_dropped", "agent_paused", "agent_resumed", "approval_requested"}


class Recount:
    """What one agent does, found by looking through all events again and again."""

    def __init__(self, name: str, events: list[Event]) -> None:
        self.name = name
        self.events = events
        self.mine = [event for event in events if event.data.get("agent") == name]
        self.life = max(event.position for event in events if event.type == "organism_started")
        self.got = [event for event in events if event.type == "message_sent" and event.data["to"] == name]

    def of(self, message: str, *types: str) -> list[Event]:
        """The events of these types about a message."""
        return [event for event in self.mine if event.data.get("message") == message and event.type in types]

    def open(self) -> list[str]:
        """Messages that did not end, in the order of their sending."""
        return [event.data["message"] for event in self.got if not self.of(event.data["message"], *ENDS)]

    def running(self) -> list[Event]:
        """The starts that are still open, in order."""
        lasts = [self.of(message, "message_started", "message_retried")[-1:] for message in self.open()]
        starts = [event for last in lasts for event in last if event.type == "message_started"]
        return sorted((event for event in starts if event.position > self.life), key=lambda event: event.position)

    def is_waiting(self, message: str) -> bool:
        """Whether a step of it is open that gives back the slot."""
        retries = self.of(message, "message_retried")
        last: dict[int, Event] = {}
        for event in self.of(message, "step_started", "step_recorded", "step_resolved"):
            last[event.data["step"]] = event
        return any(self.holds(event, retries[-1].position if retries else 0) for event in last.values())

    @staticmethod
    def holds(event: Event, retried: int) -> bool:
        """Whether the last event of a step leaves its handling waiting; asks of a failed attempt are over."""
        if event.type != "step_started":
            return False
        return "unknown" in event.data or (event.data["kind"] != "effect" and event.position > retried)

    def state(self) -> str:
        """Which of an agent's states wins over which."""
        running = self.running()
        if running:
            return "waiting" if all(self.is_waiting(event.data["message"]) for event in running) else "processing"
        if self.is_paused():
            return "paused"
        lasts = [
            event.type
            for event in self.mine
            if event.type == "message_dead" or (event.type, event.data.get("outcome")) in WELL
        ]
        return "error" if lasts[-1:] == ["message_dead"] else "idle"

    def is_paused(self) -> bool:
        """Its last pause was not resumed."""
        return [event.type for event in self.mine if event.type.startswith("agent_")][-1:] == ["agent_paused"]

    def last_activity(self) -> str | None:
        """The last time that a handling of it did something."""
        mine = [event for event in self.mine if event.data.get("outcome") != "answered"]
        acts = [event for event in mine if event.type not in NO_ACTIVITY]
        return iso(acts[-1].at) if acts else None

    def row(self) -> Row:
        """The fields that change."""
        running = self.running()
        return {
            "state": self.state(),
            "current_thread": running[-1].thread if running else None,
            "queue_depth": len(self.open()) - len(running),
            "last_activity": self.last_activity(),
            "paused": self.is_paused(),
            "message_count": len(self.got),
        }


def expected(events: list[Event]) -> dict[str, Row]:
    """The listeners that there are, and those that are gone but have something open."""
    listings = [event.data["listeners"] for event in events if "listeners" in event.data]
    now = {listener["name"] for listener in listings[-1]}
    ever = {listener["name"] for listing in listings for listener in listing}
    counts = {name: Recount(name, events) for name in ever}
    return {name: count.row() for name, count in counts.items() if name in now or count.open()}


@given(lawful_logs)
def test_the_fold_equals_a_recount_of_the_whole_log(events: list[Event]) -> None:
    fields = ("state", "current_thread", "queue_depth", "last_activity", "paused", "message_count")
    rows = fold(agents.MODEL, events)
    assert {name: {field: row[field] for field in fields} for name, row in rows.items()} == expected(events)
