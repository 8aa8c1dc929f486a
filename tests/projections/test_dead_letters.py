"""The dead letters."""

from __future__ import annotations

from hypothesis import given

from organism.model.events import Event
from organism.projections import dead_letters
from tests.projections.folding import Story, fold, kept
from tests.projections.moves import lawful_logs


def with_a_dead_message() -> Story:
    story = Story()
    story.sends("m", "greeter")
    died = {"message": "m", "agent": "greeter", "code": "handler_error", "reason": "ValueError: boom", "attempts": 3}
    story.tell("message_dead", "t", **died, sender="console", type="Greeting", sent=1)
    return story


def with_a_refused_send() -> Story:
    story = Story()
    story.starts("greeter")
    refused = {"code": "routing", "why": "not_a_peer", "reason": "greeter has no peer 'vault'."}
    story.tell("message_refused", "t", message="r", sender="greeter", to="vault", type="Greeting", **refused)
    return story


def test_a_message_whose_handling_failed_for_good_is_one_with_the_payload_of_its_sending() -> None:
    assert list(with_a_dead_message().rows("dead_letters")["m"].items()) == [
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
    assert list(with_a_refused_send().rows("dead_letters")["r"].items()) == [
        ("id", "r"),
        ("thread_id", "t"),
        ("agent", "greeter"),
        ("from", "greeter"),
        ("to", "vault"),
        ("payload_type", "Greeting"),
        ("code", "routing"),
        ("reason", "greeter has no peer 'vault'."),
        ("attempts", 0),
        ("timestamp", "2026-01-11T21:47:49.000000Z"),
        ("position", 2),
    ]


@given(lawful_logs)
def test_the_fold_equals_a_recount_of_the_whole_log(events: list[Event]) -> None:
    made = {event.data["message"] for event in events if event.type in {"message_dead", "message_refused"}}
    replayed = {event.data["dead"] for event in events if event.type == "message_replayed"}
    discarded = {event.data["message"] for event in events if event.type == "message_discarded"}
    rows = fold(dead_letters.MODEL, events)
    assert set(rows) == made - replayed - discarded
    for message, row in rows.items():
        told = events[row["position"] - 1]
        assert (told.data["message"], told.type in {"message_sent", "message_refused"}) == (message, True)
        assert (row["from"], row["to"], row["thread_id"]) == (told.data["from"], told.data["to"], told.thread)


@given(lawful_logs)
def test_each_is_found_by_its_agent_and_by_when_it_died(events: list[Event]) -> None:
    died = {e.data["message"]: e for e in events if e.type in {"message_dead", "message_refused"}}
    rows = kept(dead_letters.MODEL, events)
    for message, row in rows.items():
        agent = "agent" if died[message].type == "message_dead" else "from"
        assert (row["agent"], row["_died_at"]) == (died[message].data[agent], died[message].at)


@given(lawful_logs)
def test_each_dead_letter_is_either_open_or_closed_and_says_how(events: list[Event]) -> None:
    made = {event.data["message"] for event in events if event.type in {"message_dead", "message_refused"}}
    replayed = {event.data["dead"]: {"status": "replayed"} for event in events if event.type == "message_replayed"}
    discarded = {
        event.data["message"]: {"status": "discarded"} for event in events if event.type == "message_discarded"
    }
    closed = fold(dead_letters.CLOSED_MODEL, events)
    assert closed == replayed | discarded
    assert set(closed) == made - set(fold(dead_letters.MODEL, events))
