"""A run as the AI SDK's UI message stream, and its messages with ``parts`` (spec 4.5).

Source: the data stream protocol of AI SDK UI: Server-Sent Events whose data are parts of one message, ``[DONE]`` last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from organism.model.run import RunEntry

Part = dict[str, Any]
DONE: Final = b"data: [DONE]\n\n"
HEADERS: Final = ((b"x-vercel-ai-ui-message-stream", b"v1"), (b"x-ag-messages-format", b"vercel"))

_WORDS: Final = {"message": "text", "thought": "reasoning"}


class UiStream:
    """Rewrites one run's entries; ``message_id`` names the message that they make."""

    def __init__(self, message_id: str) -> None:
        self._message_id = message_id
        self._has_begun = False
        self._whole = 0
        self._held: dict[str, int] = {}

    def lines(self, entry: RunEntry) -> bytes:
        """The events that the entry becomes; none for what this form has no word for."""
        parts = list(self._parts(entry["type"], entry["data"]))
        if not self._has_begun:
            self._has_begun = True
            parts.insert(0, {"type": "start", "messageId": self._message_id})
        told = b"".join(b"data: %b\n\n" % orjson.dumps(part) for part in parts)
        return told + DONE if entry["type"] == "done" else told

    def _parts(self, kind: str, data: Mapping[str, Any]) -> Iterator[Part]:
        block, _, phase = kind.partition("_")
        if block in _WORDS:
            yield from self._block(_WORDS[block], phase, data)
        elif kind in _ONE_FOR_ONE:
            yield _ONE_FOR_ONE[kind](data)

    def _block(self, word: str, phase: str, data: Mapping[str, Any]) -> Iterator[Part]:
        if not phase:
            self._whole += 1
            name = f"{word}-{self._whole}"
            yield {"type": f"{word}-start", "id": name}
            yield {"type": f"{word}-delta", "id": name, "delta": data["text"]}
            yield {"type": f"{word}-end", "id": name}
            return
        name = data["id"]
        if phase == "start":
            self._held[name] = 0
        elif phase == "delta":
            held = self._held.get(name, 0)
            delta = data["delta"][max(0, held - data.get("offset", held)) :]
            self._held[name] = held + len(delta)
            yield {"type": f"{word}-delta", "id": name, "delta": delta}
            return
        yield {"type": f"{word}-{phase}", "id": name}


def _tool_input(data: Mapping[str, Any]) -> Part:
    raw = data.get("rawInput")
    given = raw if raw is not None else data["input"]
    return {"type": "tool-input-available", "toolCallId": data["id"], "toolName": data["name"], "input": given}


def _tool_output(data: Mapping[str, Any]) -> Part:
    if data["isError"]:
        return {"type": "tool-output-error", "toolCallId": data["id"], "errorText": _text(data["output"])}
    return {"type": "tool-output-available", "toolCallId": data["id"], "output": data["output"]}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


_ONE_FOR_ONE: Final[dict[str, Callable[[Mapping[str, Any]], Part]]] = {
    "tool_call": _tool_input,
    "tool_result": _tool_output,
    "interaction_request": lambda data: {"type": "data-interaction-request", "id": data["id"], "data": dict(data)},
    "interaction_response": lambda data: {"type": "data-interaction-response", "id": data["id"], "data": dict(data)},
    "data": lambda data: {"type": f"data-{data['name']}", "data": data["data"]},
    "file": lambda data: {"type": "file", "url": data["url"], "mediaType": data["mediaType"]},
    "usage": lambda data: {"type": "data-usage", "data": dict(data)},
    "error": lambda data: {"type": "error", "errorText": data["message"]},
    "done": lambda data: {"type": "finish", "messageMetadata": {"stopReason": data["stopReason"]}},
}


def with_parts(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages of a fold as UI messages: a run of tools belongs to the assistant's message before it."""
    told: list[dict[str, Any]] = []
    calls: dict[Any, Part] = {}
    for message in messages:
        if message["role"] == "tool":
            if not told:
                told.append({"role": "assistant", "parts": []})
            _add_tool(told[-1]["parts"], calls, message)
        else:
            told.append({"role": message["role"], "parts": [{"type": "text", "text": message["content"]}]})
    return told


def _add_tool(parts: list[Part], calls: dict[Any, Part], message: Mapping[str, Any]) -> None:
    name = message["tool_call_id"]
    if "is_error" not in message:
        known = {"type": f"tool-{message['tool_name']}", "toolCallId": name}
        calls[name] = {**known, "state": "input-available", "input": message["input"]}
        parts.append(calls[name])
        return
    call = calls.get(name)
    if call is None:
        call = calls[name] = {"type": "dynamic-tool", "toolCallId": name}
        parts.append(call)
    if message["is_error"]:
        call.update(state="output-error", errorText=_text(message["content"]))
    else:
        call.update(state="output-available", output=message["content"])
