"""Answers in the words of the chat completions API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.agents.peer.answers import Answer, Called, in_pieces


def events(answer: Answer, asked: dict[str, Any]) -> list[bytes]:
    """The events of a stream."""
    chunks = [_chunk(asked, {"role": "assistant", "content": ""}), *_deltas(answer, asked)]
    chunks.append(_chunk(asked, {}, _finish(answer)))
    if (usage := _usage(answer)) and (asked.get("stream_options") or {}).get("include_usage"):
        chunks.append({**_chunk(asked, {}), "choices": [], "usage": usage})
    return [*(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks), b"data: [DONE]\n\n"]


def whole(answer: Answer, asked: dict[str, Any]) -> bytes:
    """The answer in one piece."""
    calls = [{"id": call.id, "type": "function", "function": _function(call)} for call in answer.calls]
    message = {"role": "assistant", "content": answer.text or None, "tool_calls": calls or None}
    if answer.thought:
        message["reasoning_content"] = answer.thought
    choice = {"index": 0, "message": message, "finish_reason": _finish(answer)}
    return json.dumps({**_head(asked, "chat.completion"), "choices": [choice], "usage": _usage(answer)}).encode()


def failure(answer: Answer) -> bytes:
    """An error."""
    kind = "rate_limit_error" if answer.status == 429 else "invalid_request_error"
    return json.dumps({"error": {"message": answer.error, "type": kind, "param": None, "code": None}}).encode()


def _deltas(answer: Answer, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for piece in in_pieces(answer.thought, answer.pieces):
        yield _chunk(asked, {"reasoning_content": piece})
    for piece in in_pieces(answer.text, answer.pieces):
        yield _chunk(asked, {"content": piece})
    for index, call in enumerate(answer.calls):
        begin = {"index": index, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": ""}}
        yield _chunk(asked, {"tool_calls": [begin]})
        for piece in in_pieces(_function(call)["arguments"], answer.pieces):
            yield _chunk(asked, {"tool_calls": [{"index": index, "function": {"arguments": piece}}]})


def _function(call: Called) -> dict[str, str]:
    text = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)
    return {"name": call.name, "arguments": text}


def _finish(answer: Answer) -> str:
    return answer.finish or ("tool_calls" if answer.calls else "stop")


def _usage(answer: Answer) -> dict[str, Any] | None:
    if answer.input_tokens is None or answer.output_tokens is None:
        return None
    total = answer.input_tokens + answer.output_tokens
    counted = {"prompt_tokens": answer.input_tokens, "completion_tokens": answer.output_tokens, "total_tokens": total}
    return counted if answer.cost is None else {**counted, "cost": answer.cost}


def _head(asked: dict[str, Any], kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-peer", "object": kind, "created": 1, "model": asked.get("model", "")}


def _chunk(asked: dict[str, Any], delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {**_head(asked, "chat.completion.chunk"), "choices": [choice]}
