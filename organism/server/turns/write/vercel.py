"""A run as the AI SDK's UI message stream, and its messages with ``parts``.

Source: the data stream protocol of AI SDK UI: Server-Sent Events whose data are parts of one message, ``[DONE]`` last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import orjson
from msgspec import field

from organism.events.entity import Entity
from organism.model.run import RunEntry
from organism.model.unseen import AppendOnly
from organism.server.http.streaming import SSE
from organism.server.turns.run_result import FoldedRun
from organism.server.turns.write.sse import DONE, event
from organism.views.run import is_erased

Part = dict[str, Any]
FORMAT: Final = {"x-ag-messages-format": "vercel"}
STREAM: Final = {"x-vercel-ai-ui-message-stream": "v1", **FORMAT}

_WORDS: Final = {"message": "text", "thought": "reasoning"}
_FAILED: Final = frozenset({"error", "killed"})


class _Block(Entity):
    """An open block, sent as the part ``name``."""

    _word: str
    _name: str
    _sent: AppendOnly = field(default_factory=AppendOnly)

    def begin(self) -> Part:
        """The part's start."""
        return {"type": f"{self._word}-start", "id": self._name}

    def restart(self) -> None:
        """The run sends the block again from its beginning."""
        self._sent.restart()

    def add(self, text: str, offset: int | None) -> Iterator[Part]:
        """The part of the text that was not sent before."""
        new = self._sent.take(text, offset)
        if new is None:
            yield from self._apart()
        elif new:
            yield self._delta(new)

    def end(self) -> Iterator[Part]:
        """The part's end. A text that became shorter than what was sent gets a part of its own."""
        if self._sent.is_shorter and self._sent.text:
            yield from self._apart()
        yield self._end()

    def _apart(self) -> Iterator[Part]:
        """Send the block as it came this time, in a new part."""
        yield self._end()
        self._name += "-again"
        text, self._sent = self._sent.text, AppendOnly()
        self._sent.take(text)
        yield self.begin()
        yield self._delta(text)

    def _delta(self, text: str) -> Part:
        return {"type": f"{self._word}-delta", "id": self._name, "delta": text}

    def _end(self) -> Part:
        return {"type": f"{self._word}-end", "id": self._name}


class UiWriter(Entity):
    """Rewrites one run's entries; ``message_id`` names the message that they make. Its headers say what it is.

    A reader of this form stops at the first ``error`` and cannot take text back. So an error is sent only once the run
    has ended with it, and a block that starts again continues where its text is the same.
    """

    _message_id: str
    headers: Mapping[str, str] = field(default_factory=lambda: STREAM)
    media_type: str = SSE
    _has_begun: bool = False
    _whole: int = 0
    _open: dict[tuple[str, str], _Block] = field(default_factory=dict)
    _error: Part | None = None
    _is_last: bool = False

    def waiting(self, reason: str) -> bytes:
        waiting = {"type": "data-waiting", "data": {"reason": reason}, "transient": True}
        return b"".join(map(event, [*self._start(), waiting]))

    def lines(self, entry: RunEntry) -> bytes:
        """The events that the entry becomes; none if this form has no part for it."""
        parts = [*self._start(), *self._parts(entry["type"], entry["data"], is_erased=is_erased(entry))]
        lines = b"".join(map(event, parts))
        return lines + DONE if entry["type"] == "done" else lines

    def end(self, _cost: Mapping[str, str]) -> bytes:
        return b""  # the AI SDK refuses events that it does not know

    def whole(self, folded: FoldedRun) -> dict[str, Any]:
        found = folded.outputs()
        return {**found, "messages": with_parts(found["messages"])}

    def _start(self) -> list[Part]:
        """The first part; nothing once it was sent."""
        start: list[Part] = [] if self._has_begun else [{"type": "start", "messageId": self._message_id}]
        self._has_begun = True
        return start

    def _parts(self, kind: str, data: Mapping[str, Any], *, is_erased: bool) -> Iterator[Part]:
        block, _, phase = kind.partition("_")
        if kind == "error":
            self._error = {"type": "error", "errorText": data.get("message", "")}
        elif is_erased:
            pass
        elif block in _WORDS:
            yield from self._block(_WORDS[block], phase, data)
        elif kind in _ONE_FOR_ONE:
            if kind == "done" and self._error is not None and (self._is_last or data["stopReason"] in _FAILED):
                yield self._error
            yield _ONE_FOR_ONE[kind](data)
        self._is_last = kind == "error"

    def _block(self, word: str, phase: str, data: Mapping[str, Any]) -> Iterator[Part]:
        if not phase:
            self._whole += 1
            name = f"{word}-{self._whole}"
            yield {"type": f"{word}-start", "id": name}
            yield {"type": f"{word}-delta", "id": name, "delta": data["text"]}
            yield {"type": f"{word}-end", "id": name}
            return
        key = (word, data["id"])
        block = self._open.get(key)
        if phase == "start" and block is None:
            block = self._open[key] = _Block(word, data["id"])
            yield block.begin()
        elif phase == "start" and block is not None:
            block.restart()
        elif phase == "delta" and block is not None:
            yield from block.add(data["delta"], data.get("offset"))
        elif block is not None:
            del self._open[key]
            yield from block.end()


def _tool_input(data: Mapping[str, Any]) -> Part:
    raw = data.get("rawInput")
    shown = raw if raw is not None else data["input"]
    return {"type": "tool-input-available", "toolCallId": data["id"], "toolName": data["name"], "input": shown}


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
    "done": lambda data: {"type": "finish", "messageMetadata": {"stopReason": data["stopReason"]}},
}


def with_parts(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The messages of a fold as UI messages: calls of tools belong to the assistant's message before them."""
    shown: list[dict[str, Any]] = []
    calls: dict[Any, Part] = {}
    for message in messages:
        if message["role"] == "tool":
            if not shown:
                shown.append({"role": "assistant", "parts": []})
            _add_tool(shown[-1]["parts"], calls, message)
        else:
            shown.append({"role": message["role"], "parts": [{"type": "text", "text": message["content"]}]})
    return shown


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
