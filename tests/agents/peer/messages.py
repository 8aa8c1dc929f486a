"""Answers in the words of the messages API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.agents.peer.answers import Answer, Called, in_pieces


def events(answer: Answer, asked: dict[str, Any]) -> list[bytes]:
    """The events of a stream."""
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**_head(answer, asked), "content": []}},
        {"type": "ping"},
    ]
    for index, (begin, deltas) in enumerate(_blocks(answer)):
        events.append({"type": "content_block_start", "index": index, "content_block": begin})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    end = {"stop_reason": _finish(answer), "stop_sequence": None}
    events.append({"type": "message_delta", "delta": end, "usage": {"output_tokens": answer.output_tokens}})
    events.append({"type": "message_stop"})
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]


def failure(answer: Answer) -> bytes:
    """An error."""
    kind = {429: "rate_limit_error", 529: "overloaded_error"}.get(answer.status, "invalid_request_error")
    return json.dumps({"type": "error", "error": {"type": kind, "message": answer.error}}).encode()


def _blocks(answer: Answer) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    if answer.thought:
        pieces = in_pieces(answer.thought, answer.pieces)
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces]
        yield {"type": "thinking", "thinking": ""}, [*deltas, {"type": "signature_delta", "signature": "s"}]
    if answer.text:
        pieces = in_pieces(answer.text, answer.pieces)
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces]
    for call in answer.calls:
        pieces = in_pieces(_arguments(call), answer.pieces)
        begin = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        yield begin, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


def _arguments(call: Called) -> str:
    return call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)


def _finish(answer: Answer) -> str:
    return answer.finish or ("tool_use" if answer.calls else "end_turn")


def _head(answer: Answer, asked: dict[str, Any]) -> dict[str, Any]:
    message = {"id": "msg_peer", "type": "message", "role": "assistant", "model": asked.get("model", "")}
    return {**message, "stop_reason": None, "usage": {"input_tokens": answer.input_tokens, "output_tokens": 1}}
