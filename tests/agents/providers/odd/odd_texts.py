"""Odd texts, ends and events of the chat completions API, and what must come of each."""

from __future__ import annotations

import json

from tests.agents.providers.odd.chunks import CALLED, STOP, A, Odd, call, calls, chunk, says, sse

TEXTS: dict[str, Odd] = {
    "plain": (sse(chunk({"role": "assistant", "content": ""}), says("he"), says("llo"), STOP), ["hello", "stop"]),
    "no role": (sse(says("hi"), STOP), ["hi", "stop"]),
    "a role in each delta": (sse(chunk({"role": "assistant", "content": "hi"}), STOP), ["hi", "stop"]),
    "content null": (sse(says(None), says("hi"), STOP), ["hi", "stop"]),
    "content a list": (sse(says([{"type": "text", "text": "h"}, {"text": "i"}]), STOP), ["hi", "stop"]),
    "content a list of nothing known": (sse(says([None, 1, {"type": "image"}]), says("hi"), STOP), ["hi", "stop"]),
    "content a number": (sse(says(42), says("hi"), STOP), ["hi", "stop"]),
    "thinking parts": (sse(says([{"type": "thinking", "thinking": "hm"}]), says("hi"), STOP), ["(hm)", "hi", "stop"]),
    "thinking parts with parts": (
        sse(says([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]), says("hi"), STOP),
        ["(hm)", "hi", "stop"],
    ),
    "reasoning_content": (sse(chunk({"reasoning_content": "hm"}), says("hi"), STOP), ["(hm)", "hi", "stop"]),
    "reasoning": (sse(chunk({"reasoning": "hm"}), says("hi"), STOP), ["(hm)", "hi", "stop"]),
    "both names of a thought": (
        sse(chunk({"reasoning": "hm", "reasoning_content": "hm"}), says("hi"), STOP),
        ["(hm)", "hi", "stop"],
    ),
    "a thought that is no text": (sse(chunk({"reasoning": {"a": 1}}), says("hi"), STOP), ["hi", "stop"]),
    "a refusal": (sse(chunk({"refusal": "I will not."}), STOP), ["I will not.", "content_filter"]),
    "message in place of delta": (sse({"choices": [{"message": {"content": "hi"}}]}, STOP), ["hi", "stop"]),
    "delta null": (sse(chunk(None), says("hi"), STOP), ["hi", "stop"]),
    "delta a text": (sse(chunk("hi"), says("hi"), STOP), ["hi", "stop"]),
    "delta missing": (sse({"choices": [{"index": 0}]}, says("hi"), STOP), ["hi", "stop"]),
    "choices null": (sse({"choices": None}, says("hi"), STOP), ["hi", "stop"]),
    "choices empty": (sse({"choices": [], "prompt_filter_results": []}, says("hi"), STOP), ["hi", "stop"]),
    "choices missing": (sse({"id": "x"}, says("hi"), STOP), ["hi", "stop"]),
    "choices an object": (sse({"choices": {"0": {}}}, says("hi"), STOP), ["hi", "stop"]),
    "a choice that is none": (sse({"choices": [None, 7]}, says("hi"), STOP), ["hi", "stop"]),
    "index missing": (sse({"choices": [{"delta": {"content": "hi"}}]}, STOP), ["hi", "stop"]),
    "index a list": (sse({"choices": [{"index": [], "delta": {"content": "no"}}]}, says("hi"), STOP), ["hi", "stop"]),
    "a second choice": (sse({"choices": [{"index": 1, "delta": {"content": "no"}}]}, says("hi"), STOP), ["hi", "stop"]),
    "nothing said": (sse(STOP), ["stop"]),
    "text behind the end": (sse(says("h"), STOP, says("i")), ["hi", "stop"]),
}
FINISHES: dict[str, Odd] = {
    "finish null to the end": (sse(says("hi")), "unavailable"),
    "finish with the text": (sse(chunk({"content": "hi"}, "stop")), ["hi", "stop"]),
    "finish twice": (sse(says("hi"), STOP, STOP), ["hi", "stop"]),
    "no mark of the end": (sse(says("hi"), STOP, end=b""), ["hi", "stop"]),
    "the last event without a blank line": (
        sse(says("hi"), b"data: " + json.dumps(STOP).encode(), end=b""),
        "unavailable",
    ),
    "the mark twice": (sse(says("hi"), STOP, "data: [DONE]\n\n"), ["hi", "stop"]),
    "more behind the mark": (sse(says("hi"), STOP, "data: [DONE]\n\n", says("no")), ["hi", "stop"]),
    "garbage behind the mark": (sse(says("hi"), STOP) + b"<html>\xff", ["hi", "stop"]),
    "eos": (sse(chunk({"content": "hi"}, "eos")), ["hi", "stop"]),
    "stop_sequence": (sse(chunk({"content": "hi"}, "stop_sequence")), ["hi", "stop"]),
    "an unknown reason": (sse(chunk({"content": "hi"}, "because")), ["hi", "stop"]),
    "length": (sse(chunk({"content": "hi"}, "length")), ["hi", "length"]),
    "max_tokens": (sse(chunk({"content": "hi"}, "max_tokens")), ["hi", "length"]),
    "LENGTH": (sse(chunk({"content": "hi"}, "LENGTH")), ["hi", "length"]),
    "content_filter": (sse(chunk({"content": "hi"}, "content_filter")), ["hi", "content_filter"]),
    "tool_calls without calls": (sse(says("hi"), CALLED), ["hi", "stop"]),
    "stop with calls": (sse(calls(call(0, "a", "f", '{"x":1}')), STOP), [A, "tool_calls"]),
    "finish error": (sse(says("hi"), chunk({}, "error")), "unavailable"),
    "finish abort": (sse(says("hi"), chunk({}, "abort")), "unavailable"),
}
EVENTS: dict[str, Odd] = {
    "CRLF": (sse(says("hi"), STOP).replace(b"\n", b"\r\n"), ["hi", "stop"]),
    "CR": (sse(says("hi"), STOP).replace(b"\n", b"\r"), ["hi", "stop"]),
    "line ends of all kinds": (
        sse(says("h")).replace(b"\n", b"\r")[:-14] + sse(says("i"), end=b"").replace(b"\n", b"\r\n") + sse(STOP),
        ["hi", "stop"],
    ),
    "comments": (sse(": OPENROUTER PROCESSING\n\n", says("hi"), ":\n\n", STOP, ": bye\n"), ["hi", "stop"]),
    "a comment within an event": (sse(": a\ndata: " + json.dumps(says("hi")) + "\n: b\n\n", STOP), ["hi", "stop"]),
    "blank lines": (sse("\n\n\n", says("hi"), "\n\n", STOP), ["hi", "stop"]),
    "no space": (sse(says("hi"), STOP).replace(b"data: ", b"data:"), ["hi", "stop"]),
    "two spaces": (sse(says("hi"), STOP).replace(b"data: ", b"data:  "), ["hi", "stop"]),
    "names of events": (sse(says("hi"), STOP).replace(b"data: ", b"event: chunk\ndata: "), ["hi", "stop"]),
    "ids and retries": (sse(says("hi"), STOP).replace(b"data: ", b"id: 7\nretry: 10\ndata: "), ["hi", "stop"]),
    "unknown fields": (sse("lang: en\n", says("hi"), STOP), ["hi", "stop"]),
    "fields without a colon": (sse("event\n", says("hi"), STOP), ["hi", "stop"]),
    "data over many lines": (
        sse("data: " + json.dumps(says("hi"), indent=1).replace("\n", "\ndata: ") + "\n\n", STOP),
        ["hi", "stop"],
    ),
    "data over many lines that end with CRLF": (
        sse("data: " + json.dumps(says("hi"), indent=1).replace("\n", "\ndata: ") + "\n\n", STOP).replace(
            b"\n", b"\r\n"
        ),
        ["hi", "stop"],
    ),
    "a large event": (sse(says("x" * 300_000), STOP), ["x" * 300_000, "stop"]),
}
CHARACTERS: dict[str, Odd] = {
    "letters of two bytes": (sse(says("grüße"), STOP), ["grüße", "stop"]),
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
    "half a pair in a thought": (
        sse(b'data: {"choices":[{"delta":{"reasoning":"\\ud83c"}}]}\n\n', says("hi"), STOP),
        ["(\ufffd)", "hi", "stop"],
    ),
    "a NUL": (sse(says("a\0b"), STOP), ["a\0b", "stop"]),
    "line separators": (sse(says("a\u2028b\x85c\x0bd"), STOP), ["a\u2028b\x85c\x0bd", "stop"]),
    "no UTF-8": (sse(b'data: {"choices":[{"delta":{"content":"\xff\xfe"}}]}\n\n', STOP), "malformed"),
    "a character cut in the bytes": (sse(b'data: {"choices":[{"delta":{"content":"\xc3"}}]}\n\n', STOP), "malformed"),
}
