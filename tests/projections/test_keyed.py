"""The answers to calls with an idempotency key, and the values of the key_value tools."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from organism.model.events import Event
from organism.projections.keyed import ANSWERS
from tests.projections.folding import AT, Story, fold
from tests.projections.moves import lawful_logs

CALL: dict[str, Any] = {"key": "a b", "method": "POST", "path": "/api/v1/inject", "digest": "abc"}


def test_an_answer_is_found_by_method_path_and_key_and_knows_the_position_of_its_act() -> None:
    story = Story()
    story.sends("m", "greeter")
    story.begins("m", "greeter")
    story.tell("call_answered", "t", **CALL, status=202, body={"message_id": "m"}, back=2)
    body = {"message_id": "m", "position": 1}
    row = {"digest": "abc", "status": 202, "body": body, "at": AT + 3_000_000, "said_at": None}
    assert story.rows("answers") == {"POST /api/v1/inject a b": row}
    last = story.tell("call_answered", None, **CALL, status=200, body={}, back=0, content="digest of the body")
    (row,) = story.rows("answers").values()
    assert (row["status"], row["said_at"]) == (200, last.position)


@given(lawful_logs)
def test_the_answers_equal_a_recount_of_the_whole_log(events: list[Event]) -> None:
    expected = {f"POST /inject {event.data['key']}": event.at for event in events if event.type == "call_answered"}
    assert {key: row["at"] for key, row in fold(ANSWERS, events).items()} == expected


def test_a_value_lies_where_it_was_set_last_and_is_gone_while_it_is_deleted() -> None:
    story = Story()
    story.tell("value_set", "t", key="a", content="digest")
    story.tell("value_set", "t", key="b", content="digest", authors=["wiki"])
    story.tell("value_set", "u", key="a", content="digest")
    b = {"key": "b", "position": 2, "authors": ["wiki"]}
    assert story.rows("values") == {"a": {"key": "a", "position": 3, "authors": []}, "b": b}
    story.tell("value_set", "t", key="a", deleted=True)
    assert story.rows("values") == {"b": b}
    story.tell("value_set", "t", key="a", content="digest")
    assert story.rows("values")["a"]["position"] == 5
