"""The fold of a run: batch = fold(stream), and its trim."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from organism.events.record import Content, Record
from organism.events.vocabulary import RUN_ENTRIES, RunDone, RunEvent, RunMessageStart, RunToolCall
from organism.model.run import REQUIRED
from organism.views.run import entry_of, fold

Entry = dict[str, Any]


def entry(type_: str, **data: Any) -> Entry:
    return {"type": type_, "data": data}


def block(name: str, *deltas: str) -> list[Entry]:
    """A message that came in deltas."""
    entries: list[Entry] = [entry("message_start", id=name)]
    length = 0
    for delta in deltas:
        entries.append(entry("message_delta", id=name, delta=delta, offset=length))
        length += len(delta)
    return [*entries, entry("message_end", id=name)]


def done(reason: str | None = "stop") -> Entry:
    return entry("done") if reason is None else entry("done", stopReason=reason)


def texts(*entries: Entry) -> list[str]:
    return [message["content"] for message in fold(entries)["messages"]]


CALL = entry("tool_call", id="t1", name="search", input={"q": "x"})
ASKED = entry("interaction_request", id="a1", kind="approval", payload={"toolName": "delete"})


def test_each_type_of_entry_has_its_event() -> None:
    assert RUN_ENTRIES.keys() == REQUIRED.keys()


@pytest.mark.parametrize(
    ("event", "content", "data"),
    [
        (RunToolCall("m", "a", "t1"), Content("t", b'{"id":"t1","name":"f","input":1}'), {"name": "f", "input": 1}),
        (RunMessageStart("m", "a", "t1"), None, {}),
        (RunDone("m", "a", "t1", stop_reason="stop"), None, {"stopReason": "stop"}),
    ],
)
def test_a_record_of_a_run_is_the_entry_that_was_shown(event: RunEvent, content: Any, data: dict[str, Any]) -> None:
    kind = event.event_type.removeprefix("run_")
    assert entry_of(Record(event, content)) == {"type": kind, "data": {"id": "t1", **data}}


def test_an_entry_without_an_id_says_none_and_an_erased_one_nothing() -> None:
    assert entry_of(Record(RunDone("m", "a", stop_reason="stop"))) == done()
    erased = Content("t", b"", erased=True)
    assert entry_of(Record(RunToolCall("m", "a", "t1"), erased)) == entry("tool_call", erased=True)


def test_a_turn_of_text_is_one_message() -> None:
    assert fold([*block("m1", "hello ", "world"), done()]) == {
        "messages": [{"role": "assistant", "content": "hello world"}],
        "stop_reason": "stop",
        "pending_interaction": None,
    }


def test_a_message_keeps_the_place_of_its_start() -> None:
    late = [entry("message_start", id="m1"), CALL, entry("message_delta", id="m1", delta="text", offset=0)]
    assert [message["content"] for message in fold(late)["messages"]] == ["text", ""]


def test_messages_that_come_at_once_do_not_mix() -> None:
    one, other = block("m1", "a", "b"), block("m2", "c", "d")
    mixed = [each for pair in zip(one, other, strict=True) for each in pair]
    assert texts(*mixed) == ["ab", "cd"]


@pytest.mark.parametrize("late", [[], block("m1", "said")])
def test_a_delta_for_an_unknown_or_ended_message_is_dropped(late: list[Entry]) -> None:
    before = texts(*late)
    assert texts(*late, entry("message_delta", id="m1", delta="more", offset=0)) == before


@pytest.mark.parametrize(
    ("offset", "text"),
    [(None, "abcdbcdE"), (4, "abcdbcdE"), (1, "abcdE"), (0, "abcd"), (3, "abcdcdE")],
    ids=["none", "at the end", "before it", "from the beginning", "one before the end"],
)
def test_of_a_delta_that_was_partly_heard_only_what_is_new_is_added(offset: int | None, text: str) -> None:
    again = entry("message_delta", id="m1", delta="bcdE", **({} if offset is None else {"offset": offset}))
    start = [entry("message_start", id="m1"), entry("message_delta", id="m1", delta="abcd", offset=0)]
    assert texts(*start, again) == [text]


def test_a_block_that_begins_again_is_sent_again_in_its_place() -> None:
    cut = [entry("message_start", id="m1"), entry("message_delta", id="m1", delta="The answ", offset=0)]
    assert texts(*cut, CALL, *block("m1", "The answer")) == ["The answer", ""]


def test_a_tool_run_is_its_call_and_its_result_in_order() -> None:
    run = [*block("m1", "let me see"), CALL, entry("tool_result", id="t1", output="42", isError=False), done()]
    assert fold(run)["messages"][1:] == [
        {"role": "tool", "content": "", "tool_call_id": "t1", "tool_name": "search", "input": {"q": "x"}},
        {"role": "tool", "content": "42", "tool_call_id": "t1", "is_error": False},
    ]


def test_a_call_that_is_sent_again_has_its_new_input_its_first_name_and_its_place() -> None:
    again = entry("tool_call", id="t1", name="Searching the web", input={"q": "y"})
    messages = fold([CALL, entry("tool_result", id="t1", output="ok", isError=False), again])["messages"]
    assert [(each.get("tool_name"), each.get("input")) for each in messages] == [("search", {"q": "y"}), (None, None)]


@pytest.mark.parametrize(("raw", "given"), [(None, {"a": 1}), ({"b": 2}, {"b": 2}), ("{bad", "{bad"), ({}, {})])
def test_the_raw_input_stands_where_there_is_one(raw: Any, given: Any) -> None:
    assert fold([entry("tool_call", id="t", name="ls", input={"a": 1}, rawInput=raw)])["messages"][0]["input"] == given


def test_the_reason_of_the_last_done_that_names_one_stands() -> None:
    assert fold([done("length"), done(None)])["stop_reason"] == "length"


def test_the_reason_of_the_terminal_result_stands_above_it() -> None:
    assert fold([ASKED, done(None)], stop_reason="paused")["pending_interaction"]["id"] == "a1"
    assert fold([done("stop")], stop_reason="killed")["stop_reason"] == "killed"


@pytest.mark.parametrize(
    ("payload", "tool"),
    [
        ({"toolName": "delete", "toolCall": {"name": "x"}}, "delete"),
        ({"toolName": "", "toolCall": {"name": "rm", "title": "Remove"}}, "rm"),
        ({"toolCall": {"title": "Delete a file", "kind": "edit"}}, "Delete a file"),
        ({"toolCall": {"kind": "edit"}}, "edit"),
        ({"toolCallId": "t1"}, None),
        ("no object", None),
    ],
)
def test_a_paused_run_waits_for_the_tool_that_its_request_names(payload: Any, tool: str | None) -> None:
    asked = entry("interaction_request", id="a1", kind="approval", payload=payload)
    pending = fold([asked, done("paused")])["pending_interaction"]
    assert pending == {"id": "a1", "kind": "approval", "payload": payload, "tool": tool}


def test_of_several_requests_the_last_unanswered_one_is_pending() -> None:
    other = entry("interaction_request", id="a2", kind="approval", payload={})
    answer = entry("interaction_response", id="a2")
    assert fold([ASKED, other, done("paused")])["pending_interaction"]["id"] == "a2"
    assert fold([ASKED, other, answer, done("paused")])["pending_interaction"]["id"] == "a1"


def test_an_error_keeps_the_text_so_far() -> None:
    cut = [entry("message_start", id="m1"), entry("message_delta", id="m1", delta="work", offset=0)]
    run = [*cut, entry("error", code="upstream_error", message="boom"), done("error")]
    assert fold(run)["messages"] == [{"role": "assistant", "content": "work"}]


@pytest.mark.parametrize("kind", [*sorted(set(REQUIRED) - {"message", "message_start", "tool_call"}), "later", None, 7])
def test_no_other_entry_makes_a_message_nor_fails_without_its_data(kind: Any) -> None:
    said = fold([{"type": kind}, {"type": kind, "data": None}, {"type": kind, "data": "x"}, {"type": kind, "data": {}}])
    assert {message["role"] for message in said["messages"]} <= {"tool"}
    assert (kind == "tool_result") == bool(said["messages"])


@pytest.mark.parametrize(
    "odd",
    [
        entry("message_start", id=["m1"]),
        entry("tool_call", id={"m": 1}, name="f", input={}),
        entry("interaction_response", id=["a1"]),
        {"type": ["message"], "data": {"text": "x"}},
        {"type": {}, "data": {}},
    ],
)
def test_an_entry_whose_type_or_id_cannot_be_one_is_left_out(odd: Any) -> None:
    assert fold([*block("m1", "said"), odd, done()]) == fold([*block("m1", "said"), done()])


@pytest.mark.parametrize("offset", ["1", [0], -1, 2.5])
def test_an_offset_that_cannot_be_one_says_nothing(offset: Any) -> None:
    assert texts(entry("message_start", id="m1"), entry("message_delta", id="m1", delta="ab", offset=offset)) == ["ab"]


@given(st.lists(st.lists(st.text(max_size=4), max_size=5), max_size=4), st.data())
def test_a_stream_that_is_heard_again_from_any_point_folds_to_the_same(blocks: list[list[str]], data: Any) -> None:
    run = [each for number, deltas in enumerate(blocks) for each in block(f"m{number}", *deltas)[:-1]]
    at = data.draw(st.integers(0, len(run)))
    again = [each for each in run[:at] if each["type"] == "message_delta"]
    assert fold([*run[:at], *again, *run[at:]]) == fold(run)
