"""The organism's row and its listeners', held against a naive recount of the whole log."""

from __future__ import annotations

from hypothesis import given

from organism.log.log import Row
from organism.model.events import Event
from organism.model.times import iso
from organism.projections.organism import AGENTS, ORGANISM
from tests.projections.folding import AT, Story, fold, listener
from tests.projections.moves import lawful_logs

LIFE = {"thread_created", "thread_reopened", "thread_completed", "thread_failed", "thread_killed"}
ENDS = {"message_handled", "message_dropped", "message_dead"}
WELL = {("message_handled", "done"), ("message_handled", "killed")}
NO_ACTIVITY = {"message_dropped", "agent_paused", "agent_resumed", "approval_requested"}


def test_the_organism_has_the_fields_of_the_api_and_its_start_to_count_from() -> None:
    story = Story()
    story.tell("loop_blocked", duration=1)
    assert story.rows("organism") == {}
    story.starts("greeter", "shouter")
    assert list(story.rows("organism")["organism"].items()) == [
        ("name", "hello"),
        ("status", "running"),
        ("agent_count", 2),
        ("active_threads", 0),
        ("total_messages", 0),
        ("version", "0.1.0"),
        ("position", 2),
        ("started_at", AT + 2_000_000),
    ]


@given(lawful_logs)
def test_the_organisms_row_equals_a_recount_of_the_whole_log(events: list[Event]) -> None:
    row = fold(ORGANISM, events)["organism"]
    last = {event.thread: event.type for event in events if event.type in LIFE}
    pauses = [event.type for event in events if event.type in {"organism_paused", "organism_resumed"}]
    listings = [event for event in events if "listeners" in event.data]
    assert row["active_threads"] == sum(kind in {"thread_created", "thread_reopened"} for kind in last.values())
    assert row["total_messages"] == sum(event.type == "message_sent" for event in events)
    assert row["status"] == ("paused" if pauses[-1:] == ["organism_paused"] else "running")
    assert row["agent_count"] == len(listings[-1].data["listeners"])
    assert row["position"] == len(events)
    assert row["started_at"] == max(event.at for event in events if event.type == "organism_started")


def test_an_agent_has_the_fields_of_the_api_in_their_order() -> None:
    story = Story()
    story.starts("greeter")
    assert list(story.rows("agents")["greeter"].items()) == [
        ("name", "greeter"),
        ("description", "The greeter"),
        ("is_agent", True),
        ("peers", []),
        ("payload_class", "handlers.hello.Greeting"),
        ("state", "idle"),
        ("current_thread", None),
        ("queue_depth", 0),
        ("last_activity", None),
        ("paused", False),
        ("message_count", 0),
        ("model", None),
        ("version", "1"),
    ]


def test_a_reload_updates_what_is_there_and_keeps_what_it_does() -> None:
    story = Story()
    story.starts("greeter", "shouter")
    story.sends("m", "greeter")
    story.begins("m", "greeter")
    greeter = listener("greeter", version="2", peers=["sink"])
    story.tell("organism_reloaded", listeners=[listener("sink"), greeter], removed=["shouter"])
    rows = story.kept("agents")
    assert {name: row["_ordinal"] for name, row in rows.items()} == {"sink": 0, "greeter": 1}
    row = rows["greeter"]
    assert [row[name] for name in ("version", "peers", "state")] == ["2", ["sink"], "processing"]


def test_nothing_of_an_ended_message_stays_behind() -> None:
    story = Story()
    story.starts("greeter")
    story.sends("m", "greeter")
    story.begins("m", "greeter")
    story.tell("step_started", "t", message="m", agent="greeter", step=1, kind="ask", input="d")
    story.starts("greeter")
    story.tell("message_dead", "t", message="m", agent="greeter", code="handler_error", reason="boom")
    row = story.kept("agents")["greeter"]
    assert (row["_running"], row["_waits"], row["_parked"]) == ({}, {}, {})


class Recount:
    """What one agent does, found by looking through all events again and again."""

    def __init__(self, name: str, events: list[Event]) -> None:
        self.name = name
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
        """Whether a step of it is open that gives back the slot; asks of a failed attempt are over."""
        retried = max((event.position for event in self.of(message, "message_retried")), default=0)
        steps = self.of(message, "step_started", "step_recorded", "step_resolved")
        started = [e for e in {event.data["step"]: event for event in steps}.values() if e.type == "step_started"]
        return any("unknown" in e.data or (e.data["kind"] != "effect" and e.position > retried) for e in started)

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


@given(lawful_logs)
def test_the_agents_equal_a_recount_of_the_whole_log(events: list[Event]) -> None:
    """There are the listeners of the last listing, and those that are gone but have something open."""
    listings = [event.data["listeners"] for event in events if "listeners" in event.data]
    now = {listener["name"] for listener in listings[-1]}
    counts = {each["name"]: Recount(each["name"], events) for listing in listings for each in listing}
    expected = {name: count.row() for name, count in counts.items() if name in now or count.open()}
    found = fold(AGENTS, events)
    assert {name: {field: row[field] for field in expected[name]} for name, row in found.items()} == expected
