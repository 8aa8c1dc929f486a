"""Odd answers of servers that say they speak the messages API, and what must come of each."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from tests.agents.providers.odd_chat import Odd

A, B = ("a", "f", {"x": 1}), ("b", "g", {"y": 2})


def event(kind: str, name: str | None = None, **fields: Any) -> bytes:
    """An event; ``name`` is what stands in its ``event`` field, if that is not its type."""
    fields_json = json.dumps({"type": kind, **fields}, ensure_ascii=False)
    return f"event: {kind if name is None else name}\ndata: {fields_json}\n\n".encode()


def start(**usage: Any) -> bytes:
    return event("message_start", message={"role": "assistant", "content": [], "usage": usage})


def begin(index: Any, **block: Any) -> bytes:
    return event("content_block_start", index=index, content_block=block)


def delta(index: Any, **said: Any) -> bytes:
    return event("content_block_delta", index=index, delta=said)


def text(said: Any, index: Any = 0) -> bytes:
    return delta(index, type="text_delta", text=said)


def given(json_text: Any, index: Any = 0) -> bytes:
    return delta(index, type="input_json_delta", partial_json=json_text)


def end(reason: Any = "end_turn", **usage: Any) -> bytes:
    return event("message_delta", delta={"stop_reason": reason}, usage=usage)


STOP = event("message_stop")
F, G = (begin(0, type="tool_use", id="a", name="f", input={}), begin(1, type="tool_use", id="b", name="g", input={}))
HI = begin(0, type="text", text="") + text("hi") + event("content_block_stop", index=0)

STREAMS: dict[str, Odd] = {
    "plain": (start(input_tokens=5) + HI + end(output_tokens=2) + STOP, ["hi", (5, 2, None), "stop"]),
    "text in the block's beginning": (begin(0, type="text", text="h") + text("i") + end() + STOP, ["hi", "stop"]),
    "unknown events": (event("news", text="no") + HI + end() + STOP, ["hi", "stop"]),
    "unknown blocks": (
        begin(0, type="server_tool_use", id="s", name="web_search", input={}) + given("{}", 0) + HI + end() + STOP,
        ["hi", "stop"],
    ),
    "a thought": (
        begin(0, type="thinking", thinking="")
        + delta(0, type="thinking_delta", thinking="hm")
        + delta(0, type="signature_delta", signature="s")
        + HI
        + end()
        + STOP,
        ["(hm)", "hi", "stop"],
    ),
    "text that is null": (text(None) + text("hi") + end() + STOP, ["hi", "stop"]),
    "nothing behind the reason": (HI + end(), ["hi", "stop"]),
    "no reason": (HI + STOP, ["hi", "stop"]),
    "max_tokens": (HI + end("max_tokens") + STOP, ["hi", "length"]),
    "refusal": (HI + end("refusal") + STOP, ["hi", "refusal"]),
    "cut behind the text": (start() + HI, "unavailable"),
    "nothing": (b"", "unavailable"),
    "cut within an event": (HI + b'event: message_delta\ndata: {"typ', "unavailable"),
    "garbage behind the reason": (HI + end() + b"data: \xff\n\n", ["hi", "stop"]),
    "garbage before it": (HI + b"data: \xff\n\n" + end() + STOP, "malformed"),
    "a delta that is a text": (event("content_block_delta", index=0, delta="hi"), "malformed"),
    "a page for people": (b"<html>", "malformed"),
    "an error": (event("error", error={"type": "overloaded_error", "message": "Overloaded"}), "unavailable"),
    "an error without words": (b"event: error\ndata: x\n\n", "unavailable"),
}
CALLS: dict[str, Odd] = {
    "in pieces": (F + given('{"x"') + given(":1}") + end("tool_use") + STOP, [A, "tool_calls"]),
    "two, in turn": (
        F + G + given('{"x":') + given('{"y":', 1) + given("2}", 1) + given("1}") + end("tool_use") + STOP,
        [A, B, "tool_calls"],
    ),
    "a delta that is an object": (F + given({"x": 1}) + end("tool_use") + STOP, [A, "tool_calls"]),
    "without an index": (
        begin(None, type="tool_use", id="a", name="f", input={}) + given('{"x":1}', None) + end("tool_use") + STOP,
        [A, "tool_calls"],
    ),
    "index 0 of each": (
        F + given('{"x":1}') + begin(0, type="tool_use", id="b", name="g") + given('{"y":2}') + end("tool_use") + STOP,
        [A, B, "tool_calls"],
    ),
    "without an id": (
        begin(0, type="tool_use", name="f") + given('{"x":1}') + end("tool_use") + STOP,
        [("new-1", "f", {"x": 1}), "tool_calls"],
    ),
    "no JSON": (F + given("x = 1") + end("tool_use") + STOP, [("a", "f", "x = 1"), "tool_calls"]),
    "without a name": (begin(0, type="tool_use", id="a") + end("tool_use") + STOP, "malformed"),
    "arguments for no call": (given("{}") + HI + end() + STOP, ["hi", "stop"]),
}
USAGES: dict[str, Odd] = {
    "with what was cached": (
        start(input_tokens=5, cache_read_input_tokens=10, cache_creation_input_tokens=3) + HI + end(output_tokens=2),
        ["hi", (18, 2, None), "stop"],
    ),
    "at the end alone": (start() + HI + end(input_tokens=5, output_tokens=2), ["hi", (5, 2, None), "stop"]),
    "without the answer's": (start(input_tokens=5) + HI + end(), ["hi", "stop"]),
    **{
        f"of {name} {count!r}": (
            start(input_tokens=5, **{name: count}) + HI + end(output_tokens=2),
            ["hi", "stop"],
        )
        for name in ("cache_read_input_tokens", "cache_creation_input_tokens")
        for count in (-5, -(10**30), 10**30, 1.5, True, "12")
    },
    "with a cost": (
        start(input_tokens=5) + HI + end(output_tokens=2, cost=0.5),
        ["hi", (5, 2, Decimal("0.5")), "stop"],
    ),
}


def whole(*content: Any, reason: Any = "end_turn", **more: Any) -> bytes:
    """An answer in one piece."""
    return json.dumps({"type": "message", "content": list(content), "stop_reason": reason, **more}).encode()


WHOLE: dict[str, Odd] = {
    "an answer": (
        whole({"type": "text", "text": "hi"}, usage={"input_tokens": 5, "output_tokens": 2}),
        ["hi", (5, 2, None), "stop"],
    ),
    "a thought and a call": (
        whole(
            {"type": "thinking", "thinking": "hm"},
            {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
            reason="tool_use",
        ),
        ["(hm)", A, "tool_calls"],
    ),
    "nothing": (whole(), ["stop"]),
    "an error": (b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', "unavailable"),
    "no content": (b'{"type":"message"}', "malformed"),
}
ODD: dict[str, Odd] = {
    f"{kind}: {name}": odd
    for kind, table in {"stream": STREAMS, "calls": CALLS, "usage": USAGES, "whole": WHOLE}.items()
    for name, odd in table.items()
}
SOUND = start() + text("grüße 🎉") + F + given('{"x":"ü"}') + end("tool_use") + STOP
"""A sound stream of text and a call."""
