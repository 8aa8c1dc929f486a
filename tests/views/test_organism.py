"""The organism's row and its listeners', held against a naive recount of the whole log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from hypothesis import given

from organism import JsonObject
from organism.events.record import Record
from organism.events.vocabulary import (
    AgentPaused,
    AgentResumed,
    ApprovalRequested,
    Event,
    LoopBlocked,
    MessageDead,
    MessageDropped,
    MessageHandled,
    MessageRetried,
    MessageSent,
    MessageStarted,
    OrganismPaused,
    OrganismReloaded,
    OrganismResumed,
    OrganismStarted,
    StepRecorded,
    StepResolved,
    StepStarted,
    ThreadCompleted,
    ThreadCreated,
    ThreadFailed,
    ThreadKilled,
    ThreadReopened,
)
from organism.model.times import iso
from organism.views.organism import AGENTS, ORGANISM
from tests.growth import growth_fault
from tests.views.folding import AT, Scenario, fold, listener
from tests.views.moves import lawful_logs

BIRTHS = (ThreadCreated, ThreadReopened)
LIFE = (*BIRTHS, ThreadCompleted, ThreadFailed, ThreadKilled)
ENDS = (MessageHandled, MessageDropped, MessageDead)
PRIVATE = ("_queued", "_running", "_waits", "_effects", "_parked")
NO_ACTIVITY = (MessageDropped, AgentPaused, AgentResumed, ApprovalRequested)


def test_the_organism_has_the_fields_of_the_api_and_its_start_to_count_from() -> None:
    scenario = Scenario()
    scenario.add(LoopBlocked(duration=1, stack=""))
    assert scenario.rows("organism") == {}
    scenario.starts("greeter", "shouter")
    assert list(scenario.rows("organism")["organism"].items()) == [
        ("name", "hello"),
        ("status", "running"),
        ("agent_count", 2),
        ("active_threads", 0),
        ("total_messages", 0),
        ("version", "0.1.0"),
        ("position", 2),
        ("started_at", AT + 2_000_000),
        ("paused_by", None),
        ("paused_at", None),
    ]


@given(lawful_logs)
def test_the_organisms_row_equals_a_recount_of_the_whole_log(records: list[Record[Event]]) -> None:
    row = fold(ORGANISM, records)["organism"]
    last = {record.thread: record.event for record in records if isinstance(record.event, LIFE)}
    pauses = [type(record.event) for record in records if isinstance(record.event, OrganismPaused | OrganismResumed)]
    assert row["active_threads"] == sum(isinstance(event, BIRTHS) for event in last.values())
    assert row["total_messages"] == sum(isinstance(record.event, MessageSent) for record in records)
    assert row["status"] == ("paused" if pauses[-1:] == [OrganismPaused] else "running")
    assert row["agent_count"] == len(listings(records)[-1])
    assert row["position"] == len(records)
    assert row["started_at"] == max(record.at for record in records if isinstance(record.event, OrganismStarted))


def listings(records: list[Record[Event]]) -> list[list[str]]:
    """The names that each start and reload lists."""
    listed = [
        record.event.listeners for record in records if isinstance(record.event, OrganismStarted | OrganismReloaded)
    ]
    return [[listener.name for listener in listeners] for listeners in listed]


def test_an_agent_has_the_fields_of_the_api_in_their_order() -> None:
    scenario = Scenario()
    scenario.starts("greeter")
    assert list(scenario.rows("agents")["greeter"].items()) == [
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
        ("handlings", []),
        ("open_handlings", 0),
        ("oldest_waiting_at", None),
        ("paused_by", None),
        ("paused_at", None),
        ("group", None),
    ]


def test_a_reload_updates_what_is_there_and_keeps_what_it_does() -> None:
    scenario = Scenario()
    scenario.starts("greeter", "shouter")
    scenario.sends("m", "greeter")
    scenario.begins("m", "greeter")
    listed = (listener("sink"), listener("greeter", version="2", peers=("sink",)))
    scenario.add(OrganismReloaded(("sink",), ("shouter",), ("greeter",), listed, "digest"))
    rows = scenario.kept("agents")
    assert {name: row["_ordinal"] for name, row in rows.items()} == {"sink": 0, "greeter": 1}
    row = rows["greeter"]
    assert [row[name] for name in ("version", "peers", "state")] == ["2", ["sink"], "processing"]


def test_nothing_of_an_ended_message_stays_behind() -> None:
    scenario = Scenario()
    scenario.starts("greeter")
    scenario.sends("m", "greeter")
    scenario.begins("m", "greeter")
    scenario.add(StepStarted("m", "greeter", 1, "ask", "d"), "t")
    scenario.starts("greeter")
    scenario.add(MessageDead("m", "greeter", "console", "Greeting", 2, "handler_error", "boom", attempts=1), "t")
    row = scenario.kept("agents")["greeter"]
    assert {name: row[name] for name in PRIVATE} == {name: {} for name in PRIVATE}


class Recount:
    """What one agent does, found by looking through all events again and again."""

    def __init__(self, name: str, records: list[Record[Event]]) -> None:
        self.name = name
        self.mine = [record for record in records if getattr(record.event, "agent", None) == name]
        self.starts = [record for record in records if isinstance(record.event, OrganismStarted)]
        self.life = self.starts[-1].position
        events = [record.event for record in records]
        self.got = [event.message for event in events if isinstance(event, MessageSent) and event.to == name]
        self.sent = {record.event.message: record for record in records if isinstance(record.event, MessageSent)}

    def of(self, message: str, *types: type[Event]) -> list[Record[Any]]:
        """The records of these events about a message."""
        mine = [record for record in self.mine if isinstance(record.event, types)]
        return [record for record in mine if getattr(record.event, "message", None) == message]

    def open(self) -> list[str]:
        """Messages that did not end, in the order of their sending."""
        return [message for message in self.got if not self.of(message, *ENDS)]

    def running(self) -> list[Record[Any]]:
        """The starts that are still open, in order."""
        lasts = [self.of(message, MessageStarted, MessageRetried)[-1:] for message in self.open()]
        starts = [record for last in lasts for record in last if isinstance(record.event, MessageStarted)]
        return sorted((record for record in starts if record.position > self.life), key=lambda record: record.position)

    def steps(self, message: str) -> list[JsonObject]:
        """What it waits for, the longest first; steps of a failed attempt are over, but for what nobody knows."""
        retried = max((record.position for record in self.of(message, MessageRetried)), default=0)
        steps = {record.event.step: record for record in self.of(message, StepStarted, StepRecorded, StepResolved)}
        is_open = [
            record
            for record in steps.values()
            if isinstance(record.event, StepStarted) and (record.event.unknown or record.position > retried)
        ]
        return [self.wait(record) for record in sorted(is_open, key=lambda each: (each.at, each.event.step))]

    def wait(self, record: Record[Any]) -> JsonObject:
        """What a step waits for."""
        step = record.event
        kind, name = {
            "ask": ("agent", step.to or None),
            "complete": ("model", step.model or None),
            "approve": ("person", step.approval or None),
            "effect": ("effect", step.key),
        }[step.kind]
        if step.unknown:
            kind, name = "person", f"{step.message}:{step.step}"
        found = {"kind": kind, "name": name, "since": iso(record.at), "step": step.step}
        return {**found, "effect": step.effect or None}

    def is_waiting(self, message: str) -> bool:
        """Whether a step of it is open that gives back the slot."""
        return any(step["kind"] != "effect" for step in self.steps(message))

    def handling(self, start: Record[Any]) -> JsonObject:
        """A handling under way."""
        event, steps = start.event, self.steps(start.event.message)
        persons = [step for step in steps if step["kind"] == "person"]
        return {
            "message_id": event.message,
            "thread_id": start.thread,
            "agent": self.name,
            "payload_type": "Note",
            "attempt": event.attempt,
            "started_at": iso(start.at),
            "waits_for": next(iter(persons or steps), None),
        }

    def queued_at(self, message: str) -> int:
        """Since when it waits for its start."""
        *_, last = [self.sent[message], *self.of(message, MessageStarted, MessageRetried)]
        lives = [record.at for record in self.starts if record.position > last.position]
        return lives[0] if isinstance(last.event, MessageStarted) else last.at

    def state(self) -> str:
        """Which of an agent's states wins over which."""
        running = self.running()
        if running:
            return "waiting" if all(self.is_waiting(record.event.message) for record in running) else "processing"
        if self.is_paused():
            return "paused"
        lasts = [
            type(record.event)
            for record in self.mine
            if isinstance(record.event, MessageDead)
            or (isinstance(record.event, MessageHandled) and record.event.outcome in {"done", "killed"})
        ]
        return "error" if lasts[-1:] == [MessageDead] else "idle"

    def is_paused(self) -> bool:
        """Its last pause was not resumed."""
        pauses = [type(record.event) for record in self.mine if isinstance(record.event, AgentPaused | AgentResumed)]
        return pauses[-1:] == [AgentPaused]

    def last_activity(self) -> str | None:
        """The last time that a handling of it did something."""
        mine = [record for record in self.mine if getattr(record.event, "outcome", None) != "answered"]
        acts = [record for record in mine if not isinstance(record.event, NO_ACTIVITY)]
        return iso(acts[-1].at) if acts else None

    def row(self) -> JsonObject:
        """The fields that change."""
        running = self.running()
        starting = {record.event.message for record in running}
        queued = [self.queued_at(message) for message in self.open() if message not in starting]
        pauses = [record for record in self.mine if isinstance(record.event, AgentPaused)]
        return {
            "state": self.state(),
            "current_thread": running[-1].thread if running else None,
            "queue_depth": len(self.open()) - len(running),
            "last_activity": self.last_activity(),
            "paused": self.is_paused(),
            "message_count": len(self.got),
            "handlings": [self.handling(start) for start in running[:5]],
            "open_handlings": len(running),
            "oldest_waiting_at": iso(min(queued)) if queued else None,
            "paused_by": None,
            "paused_at": iso(pauses[-1].at) if self.is_paused() else None,
        }


@given(lawful_logs)
def test_the_agents_equal_a_recount_of_the_whole_log(records: list[Record[Event]]) -> None:
    """There are the listeners of the last listing, and those that are gone but have something open."""
    *_, now = listed = listings(records)
    counts = {name: Recount(name, records) for names in listed for name in names}
    expected = {name: count.row() for name, count in counts.items() if name in now or count.open()}
    found = fold(AGENTS, records)
    assert {name: {field: row[field] for field in expected[name]} for name, row in found.items()} == expected


def test_a_start_takes_time_in_proportion_to_the_listeners() -> None:
    def prepare(size: int) -> Callable[[], object]:
        record = Scenario().starts(*(f"agent-{at}" for at in range(size)))
        return lambda: AGENTS.fold(defaultdict(lambda: None), [record])

    assert growth_fault(prepare, 16 << 10) == ""
