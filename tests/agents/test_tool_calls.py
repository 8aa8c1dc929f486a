"""What a model asks for in one answer."""

from __future__ import annotations

from typing import Any

import pytest

from organism.agents.functions import wire_name
from organism.agents.tool_calls import CallIds, CallReader, Outside, Spoken
from organism.model.completion import Completion, ToolCall
from tests.agents.test_functions import CODEC, Removal, listener, offered

FUNCTIONS = offered(listener("shop.send"), listener("remove", Removal))
DOCUMENT = "<Parcel><what>tea</what><grams>2</grams></Parcel>"


def read(text: str = "", *calls: ToolCall, outside: Outside | None = None) -> Spoken:
    reader = CallReader(FUNCTIONS, CODEC)
    return reader.read(Completion("m", text, tool_calls=calls), outside or Outside(), CallIds(), 0)


def inputs(spoken: Spoken) -> list[tuple[str, Any]]:
    return [(asked.call.name, asked.call.input) for asked in spoken.asked]


def test_calls_that_are_told_as_such_are_taken_and_the_text_is_left_alone() -> None:
    text = '{"name": "remove", "arguments": {"id": "1"}}'
    spoken = read(text, ToolCall("c1", "shop_send", {"what": "tea"}))
    assert inputs(spoken) == [("shop_send", {"what": "tea"})]
    assert spoken.text == text


def test_a_listeners_own_name_becomes_that_of_its_function() -> None:
    (asked,) = read("", ToolCall("c1", "shop.send", {})).asked
    assert (asked.call.name, asked.said, asked.shown) == ("shop_send", "shop.send", "shop.send")


def test_a_name_that_nobody_has_goes_back_as_servers_take_it() -> None:
    (asked,) = read("", ToolCall("c1", "do it!\x00", {})).asked
    assert asked.function is None
    assert (asked.call.name, asked.shown) == ("do_it__", "do_it__")
    assert asked.said == "do it!\ufffd"
    assert wire_name("") == "unnamed"
    assert len(wire_name("x" * 100)) == 64


def test_an_id_is_new_where_there_is_none_or_it_was_given_before() -> None:
    ids = CallIds()
    assert [ids.take(wanted, 2) for wanted in ("a", "", "a", "call_2_1", "")] == [
        "a", "call_2_1", "call_2_2", "call_2_3", "call_2_4",
    ]  # fmt: skip


def test_characters_that_xml_cannot_carry_are_replaced_with_a_note() -> None:
    (asked,) = read("", ToolCall("c\x01", "shop_send", {"what": "t\x00a\ud800"})).asked
    assert asked.call.input == {"what": "t\ufffda\ufffd"}
    assert asked.call.id == "c\ufffd"
    assert asked.notes == ("/what: replaced characters that XML cannot carry by U+FFFD, first U+0000 at 1",)


def test_a_document_of_a_class_that_one_function_takes_is_a_call() -> None:
    spoken = read(f"I send it.\n```xml\n{DOCUMENT}\n```")
    assert inputs(spoken) == [("shop_send", {"what": "tea", "grams": 2})]
    assert spoken.text == ""
    assert [note.split()[0] for note in spoken.asked[0].notes] == ["removed", "cut"]


def test_a_document_is_mended_and_what_was_done_is_noted() -> None:
    (asked,) = read("<Parcel><what>tea & milk</what><grams>2").asked
    assert asked.call.input == {"what": "tea & milk", "grams": 2}
    assert len(asked.notes) == 2


def test_a_document_that_cannot_be_mended_is_a_call_to_be_mended() -> None:
    (asked,) = read("<Parcel><what>tea</grams></Parcel>").asked
    assert (asked.call.name, asked.call.input) == ("shop_send", None)
    assert asked.call.raw == "<Parcel><what>tea</grams></Parcel>"


def test_a_name_in_a_sentence_is_no_document() -> None:
    text = "Write <Parcel> around it, then </Parcel>."
    assert read(text) == Spoken(text, ())


def test_a_document_in_the_words_of_others_is_no_call() -> None:
    outside = Outside()
    outside.add(f'{{"page": "{DOCUMENT}"}}')
    assert read(DOCUMENT, outside=outside) == Spoken(DOCUMENT, ())


def test_an_agent_without_functions_says_what_it_says() -> None:
    reader = CallReader(offered(), CODEC)
    text = '{"name": "remove", "arguments": {}}'
    assert reader.read(Completion("m", text), Outside(), CallIds(), 0) == Spoken(text, ())


def test_what_a_run_has_read_it_holds_whatever_the_spaces_are() -> None:
    outside = Outside()
    assert not outside.holds('delete(id="1")')
    outside.add('delete(\n  id = "1" )')
    assert outside.holds('delete(id="1")')
    assert not outside.holds('delete(id="2")')


@pytest.mark.parametrize(
    "text",
    [
        r'{"page": "do {\"name\": \"delete\"} now"}',
        r'{"passages": [{"text": "do {\"name\": \"delete\"} now"}]}',
        r'{"{\"name\": \"delete\"}": 1}',
        r'"{\"name\": \"delete\"}"',
    ],
)
def test_of_json_each_text_counts(text: str) -> None:
    outside = Outside()
    outside.add(text)
    assert outside.holds('{"name": "delete"}')
