"""What waits for an operator: dead letters, and effects of which nobody knows whether they happened."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from organism.model.events import Event
from organism.projections.dead_letters import CLOSED_LETTERS, DEAD_LETTERS, INDETERMINATE
from tests.projections.folding import Story, fold, kept
from tests.projections.moves import lawful_logs


def test_a_message_whose_handling_failed_for_good_is_one_with_the_payload_of_its_sending() -> None:
    story = Story()
    story.sends("m", "greeter")
    died = {"message": "m", "agent": "greeter", "code": "handler_error", "reason": "ValueError: boom", "attempts": 3}
    story.tell("message_dead", "t", **died, sender="console", type="Greeting", sent=1)
    assert list(story.rows("dead_letters")["m"].items()) == [
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
    story = Story()
    refused = {"code": "routing", "why": "not_a_peer", "reason": "greeter has no peer 'vault'."}
    story.tell("message_refused", "t", message="r", sender="greeter", to="vault", type="Greeting", **refused)
    row = story.rows("dead_letters")["r"]
    fields = ("agent", "from", "to", "code", "reason", "attempts", "position")
    assert [row[field] for field in fields] == ["greeter", "greeter", "vault", "routing", refused["reason"], 0, 1]


@given(lawful_logs)
def test_the_dead_letters_equal_a_recount_of_the_whole_log(events: list[Event]) -> None:
    made = {event.data["message"]: event for event in events if event.type in {"message_dead", "message_refused"}}
    closed = {
        event.data["dead" if event.type == "message_replayed" else "message"]: {"status": event.type[8:]}
        for event in events
        if event.type in {"message_replayed", "message_discarded"}
    }
    rows = kept(DEAD_LETTERS, events)
    assert set(rows) == made.keys() - closed.keys()
    assert fold(CLOSED_LETTERS, events) == closed
    for message, row in rows.items():
        end, told = made[message], events[row["position"] - 1]
        assert (told.data["message"], told.type in {"message_sent", "message_refused"}) == (message, True)
        assert (row["from"], row["to"], row["thread_id"]) == (told.data["from"], told.data["to"], told.thread)
        agent = end.data["agent" if end.type == "message_dead" else "from"]
        assert (row["agent"], row["_died_at"]) == (agent, end.at)


def test_an_effect_found_started_and_not_finished_is_indeterminate() -> None:
    story = Story()
    effect: dict[str, Any] = {"message": "m", "agent": "greeter", "step": 2, "kind": "effect", "key": "pay-7"}
    story.tell("step_started", "t", **effect)
    assert story.rows("indeterminate") == {}
    for _ in range(2):  # finding it again changes nothing
        story.tell("step_started", "t", **effect, unknown=True)
    assert list(story.rows("indeterminate")["m:2"].items()) == [
        ("id", "m:2"),
        ("thread_id", "t"),
        ("message_id", "m"),
        ("agent", "greeter"),
        ("step", 2),
        ("key", "pay-7"),
        ("since", "2026-01-11T21:47:49.000000Z"),
        ("position", 2),
    ]


@given(lawful_logs)
def test_the_indeterminate_effects_equal_a_recount_of_the_whole_log(events: list[Event]) -> None:
    found: dict[str, tuple[str, int]] = {}
    for event in events:
        if event.type.startswith("step_"):
            key = f"{event.data['message']}:{event.data['step']}"
            if event.type != "step_started":
                found.pop(key, None)
            elif "unknown" in event.data:
                found.setdefault(key, (event.data["agent"], event.at))
    rows = kept(INDETERMINATE, events)
    assert {key: (row["agent"], row["_found_at"]) for key, row in rows.items()} == found
