"""Errors, garbage and whole documents in place of a stream of the chat completions API."""

from __future__ import annotations

import json
from typing import Any

from tests.agents.providers.odd.chunks import STOP, USED, A, Odd, says, sse

ERRORS: dict[str, Odd] = {
    "at once": (sse({"error": {"message": "Overloaded"}}), "unavailable"),
    "within the text": (sse(says("hi"), {"error": {"message": "Overloaded"}}), "unavailable"),
    "beside empty choices": (sse({"choices": [], "error": {"code": 502, "message": "No capacity"}}), "unavailable"),
    "with a status": (sse({"error": {"code": 429, "message": "Slow down"}}), "rate_limited"),
    "with a status in text": (sse({"error": {"code": "503", "message": "Busy"}}), "unavailable"),
    "with a name": (sse({"error": {"code": "rate_limit_exceeded"}}), "rate_limited"),
    "with a type": (sse({"error": {"type": "invalid_request_error"}}), "rejected"),
    "of the key": (sse({"error": {"code": 401}}), "unauthorized"),
    "of the key, by name": (sse({"error": {"type": "authentication_error"}}), "unauthorized"),
    "of the time": (sse({"error": {"code": 504}}), "timeout"),
    "of the length": (sse({"error": {"code": "context_length_exceeded", "type": "invalid_request_error"}}), "rejected"),
    "of the account": (sse({"error": {"type": "insufficient_quota", "code": 429}}), "rejected"),
    "a text": (sse({"error": "CUDA out of memory"}), "unavailable"),
    "an unknown shape": (sse({"error": [1, 2]}), "unavailable"),
    "by the name of the event": (sse('event: error\ndata: {"message": "Broken"}\n\n'), "unavailable"),
    "by the name of the event, no JSON": (
        sse("event: error\ndata: Number of choices must be positive.\n\n"),
        "malformed",
    ),
    "in a field of its own": (sse(says("hi"), 'error: {"code": 500, "message": "Broken"}\n\n'), "unavailable"),
    "null": (sse({**says("hi"), "error": None}, STOP), ["hi", "stop"]),
    "behind the reason": (sse(says("hi"), STOP, {"error": {"code": 500}}), ["hi", "stop"]),
}
GARBAGE: dict[str, Odd] = {
    "nothing": (b"", "unavailable"),
    "blank": (b"\n\n  \n", "unavailable"),
    "comments alone": (b": ping\n\n: ping\n\n", "unavailable"),
    "the mark of the end alone": (sse(), "unavailable"),
    "usage alone": (sse({"choices": [], "usage": USED}), "unavailable"),
    "cut between events": (sse(says("hi"), end=b""), "unavailable"),
    "cut within an event": (sse(says("hi"), b'data: {"choices":[{"del', end=b""), "unavailable"),
    "cut within the mark of the end": (sse(says("hi"), end=b"data: [DO"), "unavailable"),
    "cut, with unknown fields": (sse("lang: en\n", says("hi"), end=b""), "unavailable"),
    "cut within a name": (sse(says("hi"), b"dat", end=b""), "unavailable"),
    "a page for people": (b"<!DOCTYPE html><title>Sign in</title>", "malformed"),
    "a page behind blank lines": (b"\r\n\r\n <html>", "malformed"),
    "a plain word": (b"ok", "unavailable"),
    "null": (b"null", "unavailable"),
    "a number": (b"42\n", "unavailable"),
    "zeros": (b"\0" * 64, "unavailable"),
    "bytes of no kind": (bytes(range(128, 256)), "malformed"),
    "lines of JSON": (
        b'{"message":{"content":"h"},"done":false}\n{"message":{"content":"i"},"done":true}\n',
        "malformed",
    ),
    "data that is no JSON": (sse("data: hello\n\n"), "malformed"),
    "data that is null": (sse("data: null\n\n"), "malformed"),
    "data that is a list": (sse([says("hi")]), "malformed"),
    "data that is a text": (sse('data: "hi"\n\n'), "malformed"),
    "data nested too deeply": (sse(b"data: " + b"[" * 100_000 + b"\n\n"), "malformed"),
    "data nested too deeply, with half a character": (sse(b"data: " + b"[" * 100_000 + b'"\\ud83c"\n\n'), "malformed"),
    "an event out of all measure": (b'data: {"x": "' + b"x" * (9 << 20), "malformed"),
    "a list": (b"[]", "malformed"),
    "a list of numbers": (b"[1, 2]", "malformed"),
    "an object without choices": (b'{"status": "ok"}', "malformed"),
    "choices that are no list": (b'{"choices": {}}', "malformed"),
    "an empty list of choices": (b'{"choices": []}', "unavailable"),
    "an object cut in the middle": (b'{"choices": [{"message": {"content": "h', "malformed"),
    "an object with more behind it": (b'{"choices": []} trailing', "malformed"),
}


def whole(message: Any, finish: Any = "stop", **more: Any) -> bytes:
    """An answer in one piece."""
    return json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": finish}], **more}).encode()


WHOLE: dict[str, Odd] = {
    "an answer": (whole({"role": "assistant", "content": "hi"}, usage=USED), ["hi", (5, 2, None), "stop"]),
    "without a reason": (whole({"content": "hi"}, None), ["hi", "stop"]),
    "with a thought": (whole({"content": "hi", "reasoning_content": "hm"}), ["(hm)", "hi", "stop"]),
    "with blanks around it": (b"\n  " + whole({"content": "hi"}) + b"\n\n", ["hi", "stop"]),
    "over many lines": (json.dumps(json.loads(whole({"content": "hi"})), indent=2).encode(), ["hi", "stop"]),
    "with calls": (
        whole(
            {"content": None, "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": '{"x":1}'}}]},
            "tool_calls",
        ),
        [A, "tool_calls"],
    ),
    "with arguments that are an object": (
        whole({"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": {"x": 1}}}]}),
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
    "an error in a list": (b'[{"error": {"message": "Slow down", "code": 429}}]', "malformed"),
}
