"""What waits for an operator: dead letters, and effects that may or may not have happened."""

from __future__ import annotations

from hypothesis import given

from organism.events.record import Record
from organism.events.vocabulary import (
    Event,
    MessageDead,
    MessageDiscarded,
    MessageRefused,
    MessageReplayed,
    MessageSent,
    StepRecorded,
    StepResolved,
    StepStarted,
)
from organism.model.times import iso
from organism.views.dead_letters import CLOSED_LETTERS, DEAD_LETTERS, INDETERMINATE
from tests.views.folding import Scenario, fold, kept
from tests.views.moves import lawful_logs


def test_a_message_whose_handling_failed_for_good_is_one_with_the_payload_of_its_sending() -> None:
    scenario = Scenario()
    scenario.sends("m", "greeter")
    died = MessageDead("m", "greeter", "console", "Greeting", 1, "handler_error", "ValueError: boom", attempts=3)
    scenario.add(died, "t")
    assert list(scenario.rows("dead_letters")["m"].items()) == [
        ("id", "m"),
        ("thread_id", "t"),
        ("agent", "greeter"),
        ("from", "console"),
        ("to", "greeter"),
        ("payload_type", "Greeting"),
        ("code", "handler_error"),
        ("reason", "ValueError: boom"),
        ("attempts", 3),
        ("timestamp", "2026-01-11T21:47:49.000000Z"),
        ("position", 1),
    ]


def test_a_refused_send_is_one_of_the_agent_that_wanted_to_send_it() -> None:
    scenario = Scenario()
    reason = "greeter has no peer 'vault'."
    scenario.add(MessageRefused("r", "greeter", "vault", "Greeting", "routing", "not_a_peer", reason), "t")
    row = scenario.rows("dead_letters")["r"]
    fields = ("agent", "from", "to", "code", "reason", "attempts", "position")
    assert [row[field] for field in fields] == ["greeter", "greeter", "vault", "routing", reason, 0, 1]


def test_a_send_to_an_empty_name_is_one_that_can_be_read_back() -> None:
    scenario = Scenario()
    scenario.add(MessageRefused("r", "greeter", "", "Greeting", "routing", "not_a_peer", "no such peer"), "t")
    assert scenario.rows("dead_letters")["r"]["to"] == ""


@given(lawful_logs)
def test_the_dead_letters_equal_a_recount_of_the_whole_log(records: list[Record[Event]]) -> None:
    made: dict[str, tuple[str, int]] = {}
    closed: dict[str, object] = {}
    for record in records:
        match record.event:
            case MessageDead(message=message, agent=agent) | MessageRefused(message=message, sender=agent):
                made[message] = (agent, record.at)
            case MessageReplayed(dead=message):
                closed[message] = {"status": "replayed", "by": None, "at": iso(record.at)}
            case MessageDiscarded(message=message):
                closed[message] = {"status": "discarded", "by": None, "at": iso(record.at)}
    rows = kept(DEAD_LETTERS, records)
    assert set(rows) == made.keys() - closed.keys()
    assert fold(CLOSED_LETTERS, records) == closed
    for message, row in rows.items():
        failed = records[row["position"] - 1]
        assert isinstance(failed.event, MessageSent | MessageRefused)
        assert failed.event.message == message
        assert (row["from"], row["to"], row["thread_id"]) == (failed.event.sender, failed.event.to, failed.thread)
        assert (row["agent"], row["_died_at"]) == made[message]


def test_an_effect_found_started_and_not_finished_is_indeterminate() -> None:
    scenario = Scenario()
    scenario.add(StepStarted("m", "greeter", 2, "effect", "d", effect="unsafe", key="pay-7"), "t")
    assert scenario.rows("indeterminate") == {}
    for _ in range(2):  # finding it again changes nothing
        scenario.add(StepStarted("m", "greeter", 2, "effect", "d", effect="unsafe", key="pay-7", unknown=True), "t")
    assert list(scenario.rows("indeterminate")["m:2"].items()) == [
        ("id", "m:2"),
        ("thread_id", "t"),
        ("message_id", "m"),
        ("agent", "greeter"),
        ("step", 2),
        ("key", "pay-7"),
        ("since", "2026-01-11T21:47:49.000000Z"),
        ("position", 2),
        ("started_at", None),
    ]


@given(lawful_logs)
def test_the_indeterminate_effects_equal_a_recount_of_the_whole_log(records: list[Record[Event]]) -> None:
    found: dict[str, tuple[str, int]] = {}
    for record in records:
        event = record.event
        if isinstance(event, StepStarted) and event.unknown:
            found.setdefault(f"{event.message}:{event.step}", (event.agent, record.at))
        elif isinstance(event, StepRecorded | StepResolved):
            found.pop(f"{event.message}:{event.step}", None)
    rows = kept(INDETERMINATE, records)
    assert {key: (row["agent"], row["_found_at"]) for key, row in rows.items()} == found
