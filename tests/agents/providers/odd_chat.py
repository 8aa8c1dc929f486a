"""Odd answers of servers that say they speak the chat completions API, and what must come of each."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from organism.model.completion import Finish, Part, ToolCall, Usage, added_up

Odd = tuple[bytes, str | list[Any]]


def summed(parts: list[Part]) -> list[Any]:
    """The parts in short: thought and text in one piece each, calls as tuples, usage as a tuple, the reason last."""
    came = added_up(parts)
    thought, text = came.thought, came.text
    calls = [(call.id, call.name, call.raw or call.input) for call in parts if isinstance(call, ToolCall)]
    usage = [(use.input_tokens, use.output_tokens, use.cost_usd) for use in parts if isinstance(use, Usage)]
    assert [at for at, part in enumerate(parts) if isinstance(part, Finish)] == [len(parts) - 1]
    last = parts[-1]
    assert isinstance(last, Finish)
    return [*([f"({thought})"] if thought else []), *([text] if text else []), *calls, *usage, last.reason]


def sse(*documents: Any, end: bytes = b"data: [DONE]\n\n") -> bytes:
    """A stream of these events; texts and bytes stand as they are."""
    return b"".join(map(_event, documents)) + end


def _event(document: Any) -> bytes:
    if isinstance(document, bytes):
        return document
    if isinstance(document, str):
        return document.encode()
    return b"data: " + json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n\n"


def chunk(delta: Any = None, finish: Any = None, **more: Any) -> dict[str, Any]:
    """A chunk; ``more`` are its other fields, next to the choices."""
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def says(text: Any) -> dict[str, Any]:
    return chunk({"content": text})


def calls(*pieces: Any) -> dict[str, Any]:
    return chunk({"tool_calls": list(pieces)})


def call(index: Any = None, id_: Any = None, name: Any = None, arguments: Any = None) -> dict[str, Any]:
    """A piece of a call with what is given; what is None is left out."""
    function = {k: v for k, v in {"name": name, "arguments": arguments}.items() if v is not None}
    return {k: v for k, v in {"index": index, "id": id_, "function": function}.items() if v is not None}


STOP = chunk({}, "stop")
CALLED = chunk({}, "tool_calls")
A, B = ("a", "f", {"x": 1}), ("b", "g", {"y": 2})
USED = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}


def used(usage: Any) -> bytes:
    return sse(says("hi"), STOP, {"choices": [], "usage": usage})


def counted(*usage: Any) -> list[Any]:
    return ["hi", *([tuple(usage)] if usage else []), "stop"]


TEXTS: dict[str, Odd] = {
    "plain": (sse(chunk({"role": "assistant", "content": ""}), says("he"), says("llo"), STOP), ["hello", "stop"]),
    "content a list": (sse(says([{"type": "text", "text": "h"}, {"text": "i"}]), STOP), ["hi", "stop"]),
    "thinking parts": (sse(says([{"type": "thinking", "thinking": "hm"}]), says("hi"), STOP), ["(hm)", "hi", "stop"]),
    "reasoning_content": (sse(chunk({"reasoning_content": "hm"}), says("hi"), STOP), ["(hm)", "hi", "stop"]),
    "reasoning": (sse(chunk({"reasoning": "hm"}), says("hi"), STOP), ["(hm)", "hi", "stop"]),
    "a refusal": (sse(chunk({"refusal": "I will not."}), STOP), ["I will not.", "refusal"]),
    "a second choice": (sse({"choices": [{"index": 1, "delta": {"content": "no"}}]}, says("hi"), STOP), ["hi", "stop"]),
    "text behind the end": (sse(says("h"), STOP, says("i")), ["hi", "stop"]),
}
FINISHES: dict[str, Odd] = {
    "finish null to the end": (sse(says("hi")), "unavailable"),
    "finish with the text": (sse(chunk({"content": "hi"}, "stop")), ["hi", "stop"]),
    "no mark of the end": (sse(says("hi"), STOP, end=b""), ["hi", "stop"]),
    "an unknown reason": (sse(chunk({"content": "hi"}, "because")), ["hi", "stop"]),
    "length": (sse(chunk({"content": "hi"}, "length")), ["hi", "length"]),
    "content_filter": (sse(chunk({"content": "hi"}, "content_filter")), ["hi", "content_filter"]),
    "tool_calls without calls": (sse(says("hi"), CALLED), ["hi", "stop"]),
    "stop with calls": (sse(calls(call(0, "a", "f", '{"x":1}')), STOP), [A, "tool_calls"]),
    "finish error": (sse(says("hi"), chunk({}, "error")), "unavailable"),
}
EVENTS: dict[str, Odd] = {
    "comments": (sse(": OPENROUTER PROCESSING\n\n", says("hi"), ":\n\n", STOP, ": bye\n"), ["hi", "stop"]),
}
CHARACTERS: dict[str, Odd] = {
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
    "half a pair in a thought": (
        sse(b'data: {"choices":[{"delta":{"reasoning":"\\ud83c"}}]}\n\n', says("hi"), STOP),
        ["(\ufffd)", "hi", "stop"],
    ),
    "no UTF-8": (sse(b'data: {"choices":[{"delta":{"content":"\xff\xfe"}}]}\n\n', STOP), "malformed"),
}
CALLS: dict[str, Odd] = {
    "in pieces": (
        sse(
            calls(call(0, "a", "f", "")), calls(call(0, None, None, '{"x"')), calls(call(0, None, None, ":1}")), CALLED
        ),
        [A, "tool_calls"],
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
    "arguments no JSON": (sse(calls(call(0, "a", "f", "x = 1")), CALLED), [("a", "f", "x = 1"), "tool_calls"]),
    "arguments cut by the length": (
        sse(calls(call(0, "a", "f", '{"x":')), chunk({}, "length")),
        [("a", "f", '{"x":'), "length"],
    ),
    "no name": (sse(calls(call(0, "a", None, "{}")), CALLED), "malformed"),
    "a piece a text": (sse(calls("f()"), CALLED), "malformed"),
    "256 of them": (
        sse(calls(*(call(at, f"c{at}", "f", "{}") for at in range(256))), CALLED),
        [*((f"c{at}", "f", {}) for at in range(256)), "tool_calls"],
    ),
    "more than any model asks for": (
        sse(calls(*(call(at, f"c{at}", "f", "{}") for at in range(257))), CALLED),
        "malformed",
    ),
    "60,000 of one index": (sse(calls(*(call(0, f"c{at}", "f", "{}") for at in range(60_000))), CALLED), "malformed"),
    "60,000 without an index": (sse(calls(*(call(None, f"c{at}", "f") for at in range(60_000))), CALLED), "malformed"),
    "cut within the arguments": (sse(calls(call(0, "a", "f", '{"x":')), end=b""), "unavailable"),
}
NO_COUNTS: tuple[Any, ...] = (
    *(-1, -1_000_000, 10**13, 10**30, 1e300, float("nan"), float("inf"), 1.5, True, "12", "x", [], {}),
)
USAGES: dict[str, Odd] = {
    "in a chunk of its own": (used(USED), counted(5, 2, None)),
    "with the reason": (sse(says("hi"), chunk({}, "stop", usage=USED)), counted(5, 2, None)),
    "good, then bad": (
        sse(chunk({"content": "hi"}, usage=USED), chunk({}, "stop", usage={"prompt_tokens": -1})),
        counted(5, 2, None),
    ),
    **{
        f"of {count!r} tokens": (used({**USED, name: count}), counted())
        for name in ("prompt_tokens", "completion_tokens")
        for count in NO_COUNTS
    },
    "of whole numbers with a point": (used({**USED, "prompt_tokens": 5.0}), counted(5, 2, None)),
    "with a cost": (used({**USED, "cost": 0.00014}), counted(5, 2, Decimal("0.00014"))),
    "with a cost out of all measure": (used({**USED, "cost": "1e400"}), counted(5, 2, None)),
}
ERRORS: dict[str, Odd] = {
    "at once": (sse({"error": {"message": "Overloaded"}}), "unavailable"),
    "with a status": (sse({"error": {"code": 429, "message": "Slow down"}}), "rate_limited"),
    "with a name": (sse({"error": {"code": "rate_limit_exceeded"}}), "rate_limited"),
    "with a type": (sse({"error": {"type": "invalid_request_error"}}), "rejected"),
    "of the key": (sse({"error": {"code": 401}}), "unauthorized"),
    "of the account": (sse({"error": {"type": "insufficient_quota", "code": 429}}), "rejected"),
    "a text": (sse({"error": "CUDA out of memory"}), "unavailable"),
    "by the name of the event": (sse('event: error\ndata: {"message": "Broken"}\n\n'), "unavailable"),
    "in a field of its own": (sse(says("hi"), 'error: {"code": 500, "message": "Broken"}\n\n'), "unavailable"),
    "behind the reason": (sse(says("hi"), STOP, {"error": {"code": 500}}), ["hi", "stop"]),
}
GARBAGE: dict[str, Odd] = {
    "nothing": (b"", "unavailable"),
    "the mark of the end alone": (sse(), "unavailable"),
    "cut between events": (sse(says("hi"), end=b""), "unavailable"),
    "cut within an event": (sse(says("hi"), b'data: {"choices":[{"del', end=b""), "unavailable"),
    "a page for people": (b"<!DOCTYPE html><title>Sign in</title>", "malformed"),
    "bytes of no kind": (bytes(range(128, 256)), "malformed"),
    "data that is no JSON": (sse("data: hello\n\n"), "malformed"),
    "data that is a text": (sse('data: "hi"\n\n'), "malformed"),
    "data nested too deeply, with half a character": (sse(b"data: " + b"[" * 100_000 + b'"\\ud83c"\n\n'), "malformed"),
    "an event out of all measure": (b'data: {"x": "' + b"x" * (9 << 20), "malformed"),
    "an object without choices": (b'{"status": "ok"}', "malformed"),
    "an object cut in the middle": (b'{"choices": [{"message": {"content": "h', "malformed"),
}


def whole(message: Any, finish: Any = "stop", **more: Any) -> bytes:
    """An answer in one piece."""
    return json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": finish}], **more}).encode()


WHOLE: dict[str, Odd] = {
    "an answer": (whole({"role": "assistant", "content": "hi"}, usage=USED), ["hi", (5, 2, None), "stop"]),
    "without a reason": (whole({"content": "hi"}, None), ["hi", "stop"]),
    "with calls": (
        whole(
            {"content": None, "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": '{"x":1}'}}]},
            "tool_calls",
        ),
        [A, "tool_calls"],
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
