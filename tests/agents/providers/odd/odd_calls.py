"""Odd tool calls and usage of the chat completions API, and what must come of each."""

from __future__ import annotations

from decimal import Decimal

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
    "an empty id": (sse(calls(call(0, "", "f", '{"x":1}')), CALLED), [("new-1", "f", {"x": 1}), "tool_calls"]),
    "a number for an id": (sse(calls(call(0, 7, "f", '{"x":1}')), CALLED), [("7", "f", {"x": 1}), "tool_calls"]),
    "one id twice": (
        sse(calls(call(0, "a", "f", '{"x":1}'), call(1, "a", "g", '{"y":2}')), CALLED),
        [A, ("new-1", "g", {"y": 2}), "tool_calls"],
    ),
    "index 0 of each": (
        sse(calls(call(0, "a", "f", '{"x":1}')), calls(call(0, "b", "g", '{"y":2}')), CALLED),
        [A, B, "tool_calls"],
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
    "no index, the last goes on": (
        sse(
            calls(call(None, "a", "f", '{"x":1}')),
            calls(call(None, "b", "g", '{"y"')),
            calls(call(None, None, None, ":2}")),
            CALLED,
        ),
        [A, B, "tool_calls"],
    ),
    "no index and no id": (
        sse(calls(call(None, None, "f", '{"x":1}')), calls(call(None, None, "g", '{"y":2}')), CALLED),
        [("new-1", "f", {"x": 1}), ("new-2", "g", {"y": 2}), "tool_calls"],
    ),
    "a text for an index": (
        sse(calls(call("0", "a", "f", '{"x":')), calls(call("0", None, None, "1}")), CALLED),
        [A, "tool_calls"],
    ),
    "a new id with each piece": (
        sse(
            calls(call(0, "a", "f", "")), calls(call(0, "z1", None, '{"x"')), calls(call(0, "z2", None, ":1}")), CALLED
        ),
        [A, "tool_calls"],
    ),
    "the name with each piece": (
        sse(calls(call(0, "a", "f", '{"x"')), calls(call(0, "a", "f", ":1}")), calls(call(0, "a", "f", "")), CALLED),
        [A, "tool_calls"],
    ),
    "the whole call once more": (
        sse(calls(call(0, "a", "f", '{"x":1}')), calls(call(0, "a", "f", '{"x":1}')), CALLED),
        [A, "tool_calls"],
    ),
    "arguments an object": (sse(calls(call(0, "a", "f", {"x": 1})), CALLED), [A, "tool_calls"]),
    "arguments an empty object first": (
        sse(calls(call(0, "a", "f", {})), calls(call(0, None, None, '{"x":1}')), CALLED),
        [A, "tool_calls"],
    ),
    "arguments null": (
        sse(calls({"index": 0, "id": "a", "function": {"name": "f", "arguments": None}}), CALLED),
        [("a", "f", {}), "tool_calls"],
    ),
    "arguments missing": (sse(calls(call(0, "a", "f")), CALLED), [("a", "f", {}), "tool_calls"]),
    "arguments blank": (sse(calls(call(0, "a", "f", " \n")), CALLED), [("a", "f", {}), "tool_calls"]),
    "arguments that say null": (sse(calls(call(0, "a", "f", "null")), CALLED), [("a", "f", {}), "tool_calls"]),
    "arguments no JSON": (sse(calls(call(0, "a", "f", "x = 1")), CALLED), [("a", "f", "x = 1"), "tool_calls"]),
    "arguments a list": (sse(calls(call(0, "a", "f", [1])), CALLED), [("a", "f", "[1]"), "tool_calls"]),
    "arguments a number": (sse(calls(call(0, "a", "f", 3)), CALLED), [("a", "f", "3"), "tool_calls"]),
    "arguments a text of JSON": (sse(calls(call(0, "a", "f", '"{}"')), CALLED), [("a", "f", '"{}"'), "tool_calls"]),
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
    "one call without a list": (sse(chunk({"tool_calls": call(0, "a", "f", '{"x":1}')}), CALLED), [A, "tool_calls"]),
    "tool_calls null": (sse(chunk({"tool_calls": None, "content": "hi"}), STOP), ["hi", "stop"]),
    "function_call": (
        sse(
            chunk({"function_call": {"name": "f", "arguments": '{"x":'}}),
            chunk({"function_call": {"arguments": "1}"}}),
            chunk({}, "function_call"),
        ),
        [("new-1", "f", {"x": 1}), "tool_calls"],
    ),
    "text and calls": (sse(says("hi"), calls(call(0, "a", "f", '{"x":1}')), CALLED), ["hi", A, "tool_calls"]),
    "many": (
        sse(*(calls(call(n, f"i{n}", "f", "{}")) for n in range(64)), CALLED),
        [*((f"i{n}", "f", {}) for n in range(64)), "tool_calls"],
    ),
    "no name": (sse(calls(call(0, "a", None, "{}")), CALLED), "malformed"),
    "a piece null": (sse(calls(None), CALLED), "malformed"),
    "a piece a text": (sse(calls("f()"), CALLED), "malformed"),
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
    "null": (used(None), counted()),
    "a list": (used([1]), counted()),
    "empty": (used({}), counted()),
    "zero": (used({"prompt_tokens": 0, "completion_tokens": 0}), counted(0, 0, None)),
    "whole floats": (used({"prompt_tokens": 5.0, "completion_tokens": 2.0}), counted(5, 2, None)),
    "fractions": (used({"prompt_tokens": 5.5, "completion_tokens": 2}), counted()),
    "negative": (used({"prompt_tokens": -5, "completion_tokens": 2}), counted()),
    "texts": (used({"prompt_tokens": "5", "completion_tokens": "2"}), counted()),
    "booleans": (used({"prompt_tokens": True, "completion_tokens": True}), counted()),
    "out of all measure": (used({"prompt_tokens": 10**30, "completion_tokens": 2}), counted()),
    "no number": (
        sse(says("hi"), STOP, b'data: {"usage":{"prompt_tokens":1e999,"completion_tokens":2}}\n\n'),
        counted(),
    ),
    "the sum in place of the answer's": (used({"prompt_tokens": 5, "total_tokens": 7}), counted(5, 2, None)),
    "a sum that is too small": (used({"prompt_tokens": 5, "total_tokens": 3}), counted()),
    "the sum alone": (used({"total_tokens": 7}), counted()),
    "good, then bad": (
        sse(chunk({"content": "hi"}, usage=USED), chunk({}, "stop", usage={"prompt_tokens": -1})),
        counted(5, 2, None),
    ),
    "with a cost": (used({**USED, "cost": 0.00014}), counted(5, 2, Decimal("0.00014"))),
    "with a cost in text": (used({**USED, "cost": "1.5e-5"}), counted(5, 2, Decimal("1.5e-5"))),
    "with no cost to pay": (used({**USED, "cost": 0}), counted(5, 2, Decimal(0))),
    "with a negative cost": (used({**USED, "cost": -1}), counted(5, 2, None)),
    "with a cost that is no number": (used({**USED, "cost": "NaN"}), counted(5, 2, None)),
    "with a cost out of all measure": (used({**USED, "cost": "1e400"}), counted(5, 2, None)),
    "with a cost that is a word": (used({**USED, "cost": "free"}), counted(5, 2, None)),
}
