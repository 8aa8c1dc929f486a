"""Answers to idempotency keys, and values of the key_value tools."""

from __future__ import annotations

from hypothesis import given
from msgspec.structs import replace

from organism.events.record import Record
from organism.events.vocabulary import CallAnswered, Event, ValueSet
from organism.views.keyed import ANSWERS
from tests.views.folding import AT, Scenario, fold
from tests.views.moves import lawful_logs


def test_an_answer_is_found_by_method_path_and_key_and_knows_the_position_of_its_act() -> None:
    scenario = Scenario()
    scenario.sends("m", "greeter")
    scenario.begins("m", "greeter")
    answered = CallAnswered("a b", "POST", "/api/v1/inject", "abc", 202, {"message_id": "m"}, back=2)
    scenario.add(answered, "t")
    body = {"message_id": "m", "position": 1}
    row = {"key": "a b", "digest": "abc", "status": 202, "body": body, "at": AT + 3_000_000, "body_position": None}
    assert scenario.rows("answers") == {"POST /api/v1/inject a b": row}
    last = scenario.add(replace(answered, status=200, body={}, back=0), digest="digest of the body")
    (row,) = scenario.rows("answers").values()
    assert (row["status"], row["body_position"]) == (200, last.position)


@given(lawful_logs)
def test_the_answers_equal_a_recount_of_the_whole_log(records: list[Record[Event]]) -> None:
    expected = {
        f"POST /inject {record.event.key}": record.at for record in records if isinstance(record.event, CallAnswered)
    }
    assert {key: row["at"] for key, row in fold(ANSWERS, records).items()} == expected


def test_a_value_lies_where_it_was_set_last_and_is_gone_while_it_is_deleted() -> None:
    scenario = Scenario()
    scenario.add(ValueSet("a"), "t", "digest")
    scenario.add(ValueSet("b", authors=("wiki",), principal="app", user="ann"), "t", "digest")
    scenario.add(ValueSet("a"), "u", "digest")
    a = {"key": "a", "position": 3, "authors": [], "owner": [None, None]}
    b = {"key": "b", "position": 2, "authors": ["wiki"], "owner": ["app", "ann"]}
    assert scenario.rows("values") == {"a": a, "b": b}
    scenario.add(ValueSet("a", deleted=True), "t")
    assert scenario.rows("values") == {"b": b}
    scenario.add(ValueSet("a"), "t", "digest")
    assert scenario.rows("values")["a"]["position"] == 5
