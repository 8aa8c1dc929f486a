"""Streams of events, chunks of the chat completions API, and what they add up to, in few words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from organism.model.completion import Finish, Part, TextDelta, ThoughtDelta, ToolCall, Usage

Odd = tuple[bytes, str | list[Any]]
Delta = Mapping[str, Any]


def summed(parts: list[Part]) -> list[Any]:
    """The parts in short: thought and text in one piece each, calls as tuples, usage as a tuple, the reason last."""
    thought = "".join(part.text for part in parts if isinstance(part, ThoughtDelta))
    text = "".join(part.text for part in parts if isinstance(part, TextDelta))
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
    """A chunk; ``more`` stands beside the choices."""
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
