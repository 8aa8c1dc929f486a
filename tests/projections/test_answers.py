"""The answers to calls with an idempotency key."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from organism.model.events import Event
from organism.projections import answers
from tests.projections.folding import AT, Story, fold
from tests.projections.moves import lawful_logs


def answered(digest: str = "abc") -> Story:
    story = Story()
    story.sends("m", "greeter")
    story.begins("m", "greeter")
    call: dict[str, Any] = {"key": "a b", "method": "POST", "path": "/api/v1/inject", "digest": digest}
    story.tell("call_answered", "t", **call, status=202, body={"message_id": "m"}, back=2)
    return story


def test_an_answer_is_found_by_method_path_and_key_and_knows_the_position_of_its_act() -> None:
    assert answered().rows("answers") == {
        "POST /api/v1/inject a b": {
            "digest": "abc",
            "status": 202,
            "body": {"message_id": "m", "position": 1},
            "at": AT + 3_000_000,
            "said_at": None,
        }
    }


def test_a_body_that_follows_the_act_is_found_by_its_position() -> None:
    story = answered()
    call: dict[str, Any] = {"key": "a b", "method": "POST", "path": "/api/v1/inject", "digest": "abc"}
    story.tell("call_answered", None, **call, status=200, body={}, back=0, content="digest of the body")
    (row,) = story.rows("answers").values()
    assert (row["status"], row["said_at"]) == (200, story.events[-1].position)


def test_a_later_answer_under_the_same_key_takes_its_place() -> None:
    events = [*answered("abc").events, *answered("def").events]
    assert [row["digest"] for row in fold(answers.MODEL, events).values()] == ["def"]


@given(lawful_logs)
def test_the_fold_equals_a_recount_of_the_whole_log(events: list[Event]) -> None:
    expected = {f"POST /inject {event.data['key']}": event.at for event in events if event.type == "call_answered"}
    assert {key: row["at"] for key, row in fold(answers.MODEL, events).items()} == expected
