"""Chunks of the chat completions API, and what they add up to, in few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.agents.providers.odd.reading import sse

Odd = tuple[bytes, str | list[Any]]
Delta = Mapping[str, Any]


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
