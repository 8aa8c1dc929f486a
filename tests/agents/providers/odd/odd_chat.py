"""Odd answers of servers that say they speak the chat completions API, and what must come of each."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from tests.agents.providers.odd.chunks import (
    CALLED,
    STOP,
    USED,
    A,
    B,
    Odd,
    call,
    calls,
    chunk,
    counted,
    says,
    sse,
    used,
)

TEXTS: dict[str, Odd] = {
    "plain": (sse(chunk({"role": "assistant", "content": ""}), says("he"), says("llo"), STOP), ["hello", "stop"]),
    "no role": (sse(says("hi"), STOP), ["hi", "stop"]),
    "content null": (sse(says(None), says("hi"), STOP), ["hi", "stop"]),
    "content a list": (sse(says([{"type": "text", "text": "h"}, {"text": "i"}]), STOP), ["hi", "stop"]),
    "thinking parts": (sse(says([{"type": "thinking", "thinking": "hm"}]), says("hi"), STOP), ["(hm)", "hi", "stop"]),
    "reasoning_content": (sse(chunk({"reasoning_content": "hm"}), says("hi"), STOP), ["(hm)", "hi", "stop"]),
    "reasoning": (sse(chunk({"reasoning": "hm"}), says("hi"), STOP), ["(hm)", "hi", "stop"]),
    "both names of a thought": (
        sse(chunk({"reasoning": "hm", "reasoning_content": "hm"}), says("hi"), STOP),
        ["(hm)", "hi", "stop"],
    ),
    "a refusal": (sse(chunk({"refusal": "I will not."}), STOP), ["I will not.", "content_filter"]),
    "message in place of delta": (sse({"choices": [{"message": {"content": "hi"}}]}, STOP), ["hi", "stop"]),
    "delta missing": (sse({"choices": [{"index": 0}]}, says("hi"), STOP), ["hi", "stop"]),
    "choices empty": (sse({"choices": [], "prompt_filter_results": []}, says("hi"), STOP), ["hi", "stop"]),
    "a choice that is none": (sse({"choices": [None, 7]}, says("hi"), STOP), ["hi", "stop"]),
    "index missing": (sse({"choices": [{"delta": {"content": "hi"}}]}, STOP), ["hi", "stop"]),
    "a second choice": (sse({"choices": [{"index": 1, "delta": {"content": "no"}}]}, says("hi"), STOP), ["hi", "stop"]),
    "nothing said": (sse(STOP), ["stop"]),
}
FINISHES: dict[str, Odd] = {
    "finish null to the end": (sse(says("hi")), "unavailable"),
    "finish with the text": (sse(chunk({"content": "hi"}, "stop")), ["hi", "stop"]),
    "no mark of the end": (sse(says("hi"), STOP, end=b""), ["hi", "stop"]),
    "more behind the mark": (sse(says("hi"), STOP, "data: [DONE]\n\n", says("no")), ["hi", "stop"]),
    "an unknown reason": (sse(chunk({"content": "hi"}, "because")), ["hi", "stop"]),
    "length": (sse(chunk({"content": "hi"}, "length")), ["hi", "length"]),
    "max_tokens": (sse(chunk({"content": "hi"}, "max_tokens")), ["hi", "length"]),
    "content_filter": (sse(chunk({"content": "hi"}, "content_filter")), ["hi", "content_filter"]),
    "tool_calls without calls": (sse(says("hi"), CALLED), ["hi", "stop"]),
    "stop with calls": (sse(calls(call(0, "a", "f", '{"x":1}')), STOP), [A, "tool_calls"]),
    "finish error": (sse(says("hi"), chunk({}, "error")), "unavailable"),
}
EVENTS: dict[str, Odd] = {
    "CRLF": (sse(says("hi"), STOP).replace(b"\n", b"\r\n"), ["hi", "stop"]),
    "comments": (sse(": OPENROUTER PROCESSING\n\n", says("hi"), ":\n\n", STOP, ": bye\n"), ["hi", "stop"]),
    "names of events": (sse(says("hi"), STOP).replace(b"data: ", b"event: chunk\ndata: "), ["hi", "stop"]),
    "a large event": (sse(says("x" * 300_000), STOP), ["x" * 300_000, "stop"]),
}
CHARACTERS: dict[str, Odd] = {
    "letters of four bytes": (sse(says("🎉"), STOP), ["🎉", "stop"]),
    "an escaped pair": (sse(b'data: {"choices":[{"delta":{"content":"\\ud83c\\udf89"}}]}\n\n', STOP), ["🎉", "stop"]),
    "a pair torn apart": (
        sse(
            b'data: {"choices":[{"delta":{"content":"a\\ud83c"}}]}\n\n',
            b'data: {"choices":[{"delta":{"content":"\\uDF89b"}}]}\n\n',
            STOP,
        ),
        ["a🎉b", "stop"],
    ),
    "half a pair at the end": (
        sse(b'data: {"choices":[{"delta":{"content":"a\\ud83c"}}]}\n\n', STOP),
        ["a\ufffd", "stop"],
    ),
    "the second half alone": (
        sse(b'data: {"choices":[{"delta":{"content":"\\udf89a"}}]}\n\n', STOP),
        ["\ufffda", "stop"],
    ),
    "line separators": (sse(says("a\u2028b\x85c\x0bd"), STOP), ["a\u2028b\x85c\x0bd", "stop"]),
    "no UTF-8": (sse(b'data: {"choices":[{"delta":{"content":"\xff\xfe"}}]}\n\n', STOP), "malformed"),
}
CALLS: dict[str, Odd] = {
    "in pieces": (
        sse(
            calls(call(0, "a", "f", "")), calls(call(0, None, None, '{"x"')), calls(call(0, None, None, ":1}")), CALLED
        ),
        [A, "tool_calls"],
    ),
    "two, in turn": (
        sse(
            calls(call(0, "a", "f", ""), call(1, "b", "g", "")),
            calls(call(0, None, None, '{"x":')),
            calls(call(1, None, None, '{"y":')),
            calls(call(0, None, None, "1}"), call(1, None, None, "2}")),
            CALLED,
        ),
        [A, B, "tool_calls"],
    ),
    "no id": (sse(calls(call(0, None, "f", '{"x":1}')), CALLED), [("new-1", "f", {"x": 1}), "tool_calls"]),
    "one id twice": (
        sse(calls(call(0, "a", "f", '{"x":1}'), call(1, "a", "g", '{"y":2}')), CALLED),
        [A, ("new-1", "g", {"y": 2}), "tool_calls"],
    ),
    "index 0 of each, in pieces": (
        sse(
            calls(call(0, "a", "f", "")),
            calls(call(0, None, None, '{"x":1}')),
            calls(call(0, "b", "g", "")),
            calls(call(0, None, None, '{"y":2}')),
            CALLED,
        ),
        [A, B, "tool_calls"],
    ),
    "index 0 of each, without ids": (
        sse(calls(call(0, None, "f", '{"x":1}'), call(0, None, "f", '{"x":1}')), CALLED),
        [("new-1", "f", {"x": 1}), ("new-2", "f", {"x": 1}), "tool_calls"],
    ),
    "no index": (
        sse(
            calls(call(None, "a", "f", '{"x":'), call(None, "b", "g", '{"y":')),
            calls(call(None, "a", None, "1}")),
            calls(call(None, "b", None, "2}")),
            CALLED,
        ),
        [A, B, "tool_calls"],
    ),
    "no index and no id": (
        sse(calls(call(None, None, "f", '{"x":1}')), calls(call(None, None, "g", '{"y":2}')), CALLED),
        [("new-1", "f", {"x": 1}), ("new-2", "g", {"y": 2}), "tool_calls"],
    ),
    "a new id with each piece": (
        sse(
            calls(call(0, "a", "f", "")), calls(call(0, "z1", None, '{"x"')), calls(call(0, "z2", None, ":1}")), CALLED
        ),
        [A, "tool_calls"],
    ),
    "the whole call once more": (
        sse(calls(call(0, "a", "f", '{"x":1}')), calls(call(0, "a", "f", '{"x":1}')), CALLED),
        [A, "tool_calls"],
    ),
    "arguments an object": (sse(calls(call(0, "a", "f", {"x": 1})), CALLED), [A, "tool_calls"]),
    "arguments null": (
        sse(calls({"index": 0, "id": "a", "function": {"name": "f", "arguments": None}}), CALLED),
        [("a", "f", {}), "tool_calls"],
    ),
    "arguments that say null": (sse(calls(call(0, "a", "f", "null")), CALLED), [("a", "f", {}), "tool_calls"]),
    "arguments no JSON": (sse(calls(call(0, "a", "f", "x = 1")), CALLED), [("a", "f", "x = 1"), "tool_calls"]),
    "arguments not a number": (
        sse(calls(call(0, "a", "f", '{"x":NaN}')), CALLED),
        [("a", "f", '{"x":NaN}'), "tool_calls"],
    ),
    "arguments cut by the length": (
        sse(calls(call(0, "a", "f", '{"x":')), chunk({}, "length")),
        [("a", "f", '{"x":'), "length"],
    ),
    "arguments nested too deeply": (
        sse(calls(call(0, "a", "f", "[" * 3000)), CALLED),
        [("a", "f", "[" * 3000), "tool_calls"],
    ),
    "arguments with half a character": (
        sse(
            calls(call(0, "a", "f", "")),
            b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\\ud83c"}}]}}]}\n\n',
            CALLED,
        ),
        [("a", "f", "\ufffd"), "tool_calls"],
    ),
    "no function around it": (sse(calls({"id": "a", "name": "f", "arguments": '{"x":1}'}), CALLED), [A, "tool_calls"]),
    "function_call": (
        sse(
            chunk({"function_call": {"name": "f", "arguments": '{"x":'}}),
            chunk({"function_call": {"arguments": "1}"}}),
            chunk({}, "function_call"),
        ),
        [("new-1", "f", {"x": 1}), "tool_calls"],
    ),
    "text and calls": (sse(says("hi"), calls(call(0, "a", "f", '{"x":1}')), CALLED), ["hi", A, "tool_calls"]),
    "no name": (sse(calls(call(0, "a", None, "{}")), CALLED), "malformed"),
    "a piece null": (sse(calls(None), CALLED), "malformed"),
    "cut within the arguments": (sse(calls(call(0, "a", "f", '{"x":')), end=b""), "unavailable"),
}
USAGES: dict[str, Odd] = {
    "in a chunk of its own": (used(USED), counted(5, 2, None)),
    "with the reason": (sse(says("hi"), chunk({}, "stop", usage=USED)), counted(5, 2, None)),
    "again and again": (
        sse(
            chunk({"content": "h"}, usage={**USED, "completion_tokens": 1}), chunk({"content": "i"}, "stop", usage=USED)
        ),
        counted(5, 2, None),
    ),
    "empty": (used({}), counted()),
    "whole floats": (used({"prompt_tokens": 5.0, "completion_tokens": 2.0}), counted(5, 2, None)),
    "negative": (used({"prompt_tokens": -5, "completion_tokens": 2}), counted()),
    "out of all measure": (used({"prompt_tokens": 10**30, "completion_tokens": 2}), counted()),
    "the sum in place of the answer's": (used({"prompt_tokens": 5, "total_tokens": 7}), counted(5, 2, None)),
    "good, then bad": (
        sse(chunk({"content": "hi"}, usage=USED), chunk({}, "stop", usage={"prompt_tokens": -1})),
        counted(5, 2, None),
    ),
    "with a cost": (used({**USED, "cost": 0.00014}), counted(5, 2, Decimal("0.00014"))),
    "with no cost to pay": (used({**USED, "cost": 0}), counted(5, 2, Decimal(0))),
    "with a negative cost": (used({**USED, "cost": -1}), counted(5, 2, None)),
    "with a cost that is a word": (used({**USED, "cost": "free"}), counted(5, 2, None)),
}
ERRORS: dict[str, Odd] = {
    "at once": (sse({"error": {"message": "Overloaded"}}), "unavailable"),
    "within the text": (sse(says("hi"), {"error": {"message": "Overloaded"}}), "unavailable"),
    "with a status": (sse({"error": {"code": 429, "message": "Slow down"}}), "rate_limited"),
    "with a name": (sse({"error": {"code": "rate_limit_exceeded"}}), "rate_limited"),
    "with a type": (sse({"error": {"type": "invalid_request_error"}}), "rejected"),
    "of the key": (sse({"error": {"code": 401}}), "unauthorized"),
    "of the time": (sse({"error": {"code": 504}}), "timeout"),
    "of the length": (sse({"error": {"code": "context_length_exceeded", "type": "invalid_request_error"}}), "rejected"),
    "of the account": (sse({"error": {"type": "insufficient_quota", "code": 429}}), "rejected"),
    "a text": (sse({"error": "CUDA out of memory"}), "unavailable"),
    "by the name of the event": (sse('event: error\ndata: {"message": "Broken"}\n\n'), "unavailable"),
    "in a field of its own": (sse(says("hi"), 'error: {"code": 500, "message": "Broken"}\n\n'), "unavailable"),
    "null": (sse({**says("hi"), "error": None}, STOP), ["hi", "stop"]),
    "behind the reason": (sse(says("hi"), STOP, {"error": {"code": 500}}), ["hi", "stop"]),
}
GARBAGE: dict[str, Odd] = {
    "nothing": (b"", "unavailable"),
    "comments alone": (b": ping\n\n: ping\n\n", "unavailable"),
    "usage alone": (sse({"choices": [], "usage": USED}), "unavailable"),
    "cut between events": (sse(says("hi"), end=b""), "unavailable"),
    "cut within an event": (sse(says("hi"), b'data: {"choices":[{"del', end=b""), "unavailable"),
    "a page for people": (b"<!DOCTYPE html><title>Sign in</title>", "malformed"),
    "a plain word": (b"ok", "unavailable"),
    "bytes of no kind": (bytes(range(128, 256)), "malformed"),
    "lines of JSON": (
        b'{"message":{"content":"h"},"done":false}\n{"message":{"content":"i"},"done":true}\n',
        "malformed",
    ),
    "data that is no JSON": (sse("data: hello\n\n"), "malformed"),
    "data that is a list": (sse([says("hi")]), "malformed"),
    "data nested too deeply": (sse(b"data: " + b"[" * 100_000 + b"\n\n"), "malformed"),
    "an event out of all measure": (b'data: {"x": "' + b"x" * (9 << 20), "malformed"),
    "a list": (b"[]", "malformed"),
    "an object without choices": (b'{"status": "ok"}', "malformed"),
    "an empty list of choices": (b'{"choices": []}', "unavailable"),
    "an object cut in the middle": (b'{"choices": [{"message": {"content": "h', "malformed"),
}


def whole(message: Any, finish: Any = "stop", **more: Any) -> bytes:
    """An answer in one piece."""
    return json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": finish}], **more}).encode()


WHOLE: dict[str, Odd] = {
    "an answer": (whole({"role": "assistant", "content": "hi"}, usage=USED), ["hi", (5, 2, None), "stop"]),
    "without a reason": (whole({"content": "hi"}, None), ["hi", "stop"]),
    "with a thought": (whole({"content": "hi", "reasoning_content": "hm"}), ["(hm)", "hi", "stop"]),
    "with calls": (
        whole(
            {"content": None, "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": '{"x":1}'}}]},
            "tool_calls",
        ),
        [A, "tool_calls"],
    ),
    "with two calls": (
        whole({"tool_calls": [{"function": {"name": n, "arguments": "{}"}} for n in "fg"]}),
        [("new-1", "f", {}), ("new-2", "g", {}), "tool_calls"],
    ),
    "of two choices the first": (
        json.dumps(
            {"choices": [{"index": 0, "message": {"content": "hi"}}, {"index": 1, "message": {"content": "no"}}]}
        ).encode(),
        ["hi", "stop"],
    ),
    "an error": (b'{"error": {"message": "Broken", "code": 500}}', "unavailable"),
}
ODD: dict[str, Odd] = {
    f"{kind}: {name}": odd
    for kind, table in {
        "text": TEXTS,
        "finish": FINISHES,
        "events": EVENTS,
        "characters": CHARACTERS,
        "calls": CALLS,
        "usage": USAGES,
        "error": ERRORS,
        "garbage": GARBAGE,
        "whole": WHOLE,
    }.items()
    for name, odd in table.items()
}
SOUND = sse(*map(says, ("grüße ", "🎉")), calls(call(0, "a", "f", '{"x":"ü"}')), CALLED, end=b"")
"""A sound stream of text and a call, without the mark of its end."""
