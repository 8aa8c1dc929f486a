"""Streams of events, and what came of them in short."""

from __future__ import annotations

import json
from typing import Any

from organism.model.completion import Finish, Part, TextDelta, ThoughtDelta, ToolCall, Usage


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
