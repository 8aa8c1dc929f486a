"""A run as the AI SDK reads it: its stream of parts, and messages with parts."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from organism.model.run import REQUIRED
from organism.server.turns.write.vercel import UiWriter, with_parts
from organism.views.run import fold

CALL = ("tool_call", {"id": "t1", "name": "search", "input": {"q": "x"}})
FOUND = ("tool_result", {"id": "t1", "output": {"n": 1}, "isError": False})
FAILED = ("tool_result", {"id": "t1", "output": {"why": "no"}, "isError": True})
DONE = ("done", {"stopReason": "stop"})


def entries(*pairs: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": kind, "data": data} for kind, data in pairs]


def text_of(*pairs: tuple[str, dict[str, Any]]) -> bytes:
    stream = UiWriter("msg-1")
    return b"".join(stream.lines(entry) for entry in entries(*pairs))


def parts(*pairs: tuple[str, dict[str, Any]]) -> list[Any]:
    """The parts after the start."""
    lines = text_of(*pairs).split(b"\n\n")[:-1]
    assert all(line.startswith(b"data: ") for line in lines)
    return [orjson.loads(line[6:]) for line in lines if line != b"data: [DONE]"][1:]


def test_a_stream_starts_once_finishes_once_and_says_done_last() -> None:
    shown = text_of(("message", {"text": "hi"}), DONE)
    assert shown.startswith(b'data: {"type":"start","messageId":"msg-1"}\n\n')
    assert shown.endswith(b"data: [DONE]\n\n")
    assert (shown.count(b'"start"'), shown.count(b'"finish"'), shown.count(b"[DONE]")) == (1, 1, 1)


@pytest.mark.parametrize(("block", "word"), [("message", "text"), ("thought", "reasoning")])
def test_a_block_is_its_start_its_deltas_and_its_end(block: str, word: str) -> None:
    run: list[tuple[str, dict[str, Any]]] = [
        (f"{block}_start", {"id": "b1"}),
        (f"{block}_delta", {"id": "b1", "delta": "ab", "offset": 0}),
        (f"{block}_delta", {"id": "b1", "delta": "bc", "offset": 1}),
        (f"{block}_end", {"id": "b1"}),
    ]
    assert parts(*run) == [
        {"type": f"{word}-start", "id": "b1"},
        {"type": f"{word}-delta", "id": "b1", "delta": "ab"},
        {"type": f"{word}-delta", "id": "b1", "delta": "c"},
        {"type": f"{word}-end", "id": "b1"},
    ]


@pytest.mark.parametrize(
    ("entry", "part"),
    [
        (CALL, {"type": "tool-input-available", "toolCallId": "t1", "toolName": "search", "input": {"q": "x"}}),
        (
            ("tool_call", {"id": "t1", "name": "f", "input": None, "rawInput": "{"}),
            {"type": "tool-input-available", "toolCallId": "t1", "toolName": "f", "input": "{"},
        ),
        (FOUND, {"type": "tool-output-available", "toolCallId": "t1", "output": {"n": 1}}),
        (FAILED, {"type": "tool-output-error", "toolCallId": "t1", "errorText": '{"why":"no"}'}),
        (("data", {"name": "chart", "data": [1]}), {"type": "data-chart", "data": [1]}),
        (("file", {"url": "u", "mediaType": "image/png"}), {"type": "file", "url": "u", "mediaType": "image/png"}),
        (DONE, {"type": "finish", "messageMetadata": {"stopReason": "stop"}}),
    ],
)
def test_each_entry_has_its_part(entry: tuple[str, dict[str, Any]], part: dict[str, Any]) -> None:
    assert parts(entry) == [part]


def test_no_type_of_entry_is_without_a_word() -> None:
    filled = {
        "id": "x",
        "text": "t",
        "delta": "d",
        "offset": 0,
        "name": "n",
        "input": {},
        "output": "",
        "isError": False,
    }
    filled |= {"data": 1, "url": "", "mediaType": "", "code": "", "message": "", "stopReason": "stop", "kind": ""}
    begun = [("message_start", filled), ("thought_start", filled)]
    silent = [kind for kind in REQUIRED if parts(*begun, (kind, filled), DONE) == parts(*begun, DONE)]
    assert set(silent) == {"message_start", "thought_start"}  # reported before
    assert parts(*begun) != []


ERROR = ("error", {"code": "upstream_error", "message": "boom"})


@pytest.mark.parametrize("reason", ["error", "killed"])
def test_an_error_that_ended_the_run_comes_before_its_finish(reason: str) -> None:
    shown = parts(ERROR, ("usage", {"input": 1, "output": 0, "total": 1}), ("done", {"stopReason": reason}))
    assert [part["type"] for part in shown] == ["data-usage", "error", "finish"]
    assert shown[1] == {"type": "error", "errorText": "boom"}
    assert [part["type"] for part in parts(ERROR, DONE)] == ["error", "finish"]


def test_an_error_after_which_the_run_went_well_is_not_told() -> None:
    shown = parts(("message_start", {"id": "a"}), ERROR, ("message", {"text": "hi"}), DONE)
    assert "error" not in {part["type"] for part in shown}


def texts(*attempts: str) -> dict[str, str]:
    """The parts of a block that comes so many times, each time in pieces of two characters, and then ends."""
    run: list[tuple[str, dict[str, Any]]] = []
    for text in attempts:
        run += [("message_start", {"id": "a"})]
        run += [
            ("message_delta", {"id": "a", "delta": text[at : at + 2], "offset": at}) for at in range(0, len(text), 2)
        ]
    shown = parts(*run, ("message_end", {"id": "a"}))
    found = {part["id"]: "" for part in shown if part["type"] == "text-start"}
    ended = [part["id"] for part in shown if part["type"] == "text-end"]
    assert ended == list(found)
    for part in shown:
        found[part["id"]] += part.get("delta", "")
    return found


@pytest.mark.parametrize(
    ("attempts", "expected"),
    [
        (("Hello", "Hello, you"), {"a": "Hello, you"}),
        (("Hello", "He", "Hello, you"), {"a": "Hello, you"}),
        (("Hello", ""), {"a": "Hello"}),
        (("Hello", "Help me"), {"a": "Hello", "a-again": "Help me"}),
        (("Hello", "Hell"), {"a": "Hello", "a-again": "Hell"}),
        (("Hello", "Bye", "Bye, you"), {"a": "Hello", "a-again": "Bye, you"}),
    ],
)
def test_a_block_that_begins_again_goes_on_where_its_text_is_the_same(
    attempts: tuple[str, ...], expected: dict[str, str]
) -> None:
    assert texts(*attempts) == expected


def test_the_messages_of_a_batch_have_parts() -> None:
    run = entries(("message", {"text": "let me see"}), CALL, FOUND, ("message", {"text": "1"}))
    assert with_parts(fold(run)["messages"]) == [
        {
            "role": "assistant",
            "parts": [
                {"type": "text", "text": "let me see"},
                {
                    "type": "tool-search",
                    "toolCallId": "t1",
                    "state": "output-available",
                    "input": {"q": "x"},
                    "output": {"n": 1},
                },
            ],
        },
        {"role": "assistant", "parts": [{"type": "text", "text": "1"}]},
    ]


def test_a_failed_tool_and_one_without_its_call_have_parts_too() -> None:
    failed = with_parts(fold(entries(CALL, FAILED))["messages"])[0]["parts"][0]
    assert (failed["state"], failed["errorText"]) == ("output-error", '{"why":"no"}')
    unseen = with_parts(fold(entries(FOUND))["messages"])[0]["parts"]
    assert unseen == [{"type": "dynamic-tool", "toolCallId": "t1", "state": "output-available", "output": {"n": 1}}]
