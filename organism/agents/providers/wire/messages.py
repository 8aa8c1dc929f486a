"""The messages API: a request in its words, and its answers as parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from organism.agents.providers.wire.characters import Characters
from organism.agents.providers.wire.events import Event
from organism.agents.providers.wire.faults import Faults
from organism.agents.providers.wire.json_text import loads
from organism.agents.providers.wire.numbers import tokens, used
from organism.agents.providers.wire.said import understood
from organism.agents.providers.wire.tool_calls import NewId, Unfinished, finished, written
from organism.model.completion import Finish, FinishReason, ModelRequest, Part, TextDelta, ThoughtDelta

PATH: Final = "/v1/messages"
OPTIONAL: Final = ("temperature", "output_config")
MAX_TOKENS: Final = 4096
"""The API wants a bound; this one every model takes."""
MOST_TEMPERATURE: Final = 1.0
FINISHES: Final[Mapping[str, FinishReason]] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
INPUT_COUNTS: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")

_NO_ID: Final = re.compile(r"[^A-Za-z0-9_-]")

Fit = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Makes of a JSON Schema one that the API takes."""


def body(request: ModelRequest, without: frozenset[str], fit: Fit) -> dict[str, Any]:
    """The request, less the parameters that the server does not take."""
    told: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_tokens or MAX_TOKENS,
        "messages": _turns(request.messages),
        "stream": True,
        "temperature": min(request.temperature, MOST_TEMPERATURE),
    }
    if system := _system(request.messages):
        told["system"] = system
    if request.tools:
        told["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in request.tools
        ]
    schema = _schema(request.response_format)
    if schema is not None:
        told["output_config"] = {"format": {"type": "json_schema", "schema": fit(schema)}}
    return {name: value for name, value in told.items() if name not in without}


def _schema(form: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The JSON Schema in a response format, if it has one."""
    if form is None or form.get("type") in ("json_object", "text"):
        return None
    inner = form.get("json_schema")
    if form.get("type") == "json_schema" and isinstance(inner, Mapping):
        schema = inner.get("schema")
        return schema if isinstance(schema, Mapping) else None
    return form


def _system(messages: Sequence[Mapping[str, Any]]) -> str:
    """What stands above the talk; the API knows no system messages within it."""
    texts = (_text(message.get("content")) for message in messages if message.get("role") in {"system", "developer"})
    return "\n\n".join(text for text in texts if text)


def _turns(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The talk. Results of tools are said by the user; what one side says in a row is one turn."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        if message.get("role") in {"system", "developer"}:
            continue
        role = "assistant" if message.get("role") == "assistant" else "user"
        if not (blocks := _blocks(message)):
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    return turns


def _blocks(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    if message.get("role") == "tool":
        text = _text(message.get("content"))
        return [{"type": "tool_result", "tool_use_id": _id(message.get("tool_call_id")), "content": text}]
    text = _text(message.get("content"))
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text.strip() else []
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        name, given = function.get("name"), _input(function.get("arguments"))
        blocks.append({"type": "tool_use", "id": _id(call.get("id")), "name": name, "input": given})
    return blocks


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list | tuple) else ()
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, Mapping) and "text" in part)


def _id(value: Any) -> str:
    """The id of a call as this API takes it; other providers have given it, before a fallback."""
    return _NO_ID.sub("_", str(value))


def _input(arguments: Any) -> Mapping[str, Any]:
    """The arguments of a call; those that were no JSON object are shown under a name."""
    if isinstance(arguments, Mapping):
        return arguments
    try:
        value = loads(str(arguments or "{}").encode("utf-8", "replace"))
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"arguments": str(arguments)}


class MessagesReader:
    """Reads one answer. See ``Reader``."""

    def __init__(self, faults: Faults, new_id: NewId) -> None:
        self._faults = faults
        self._new_id = new_id
        self._text, self._thought = Characters(), Characters()
        self._calls: list[Unfinished] = []
        self._by_index: dict[Any, Unfinished] = {}
        self._counts: dict[str, Any] = {}
        self._finish = ""
        self._has_spoken = False
        self.is_finished = False
        self.is_ended = False

    def event(self, event: Event) -> Iterator[Part]:
        """See ``Reader``."""
        if not event.data.strip() or event.data.strip() == b"[DONE]":
            return
        if (told := self._read(event)) is None:
            return
        kind = _string(told.get("type")) or event.name
        self._has_spoken = self._has_spoken or kind.startswith(("message_", "content_"))
        if kind == "content_block_start":
            yield from self._block(told.get("index"), told.get("content_block"))
        elif kind == "content_block_delta":
            yield from self._delta(told.get("index"), told.get("delta"))
        elif kind in {"message_start", "message_delta"}:
            self._progress(told)
        elif kind == "message_stop":
            self.is_ended = True

    def whole(self, document: Mapping[str, Any]) -> Iterator[Part]:
        """See ``Reader``."""
        if document.get("error"):
            raise self._faults.told(understood(document))
        if not isinstance(document.get("content"), list):
            raise self._faults.malformed("with JSON that has no `content`")
        for index, block in enumerate(document["content"]):
            yield from self._block(index, block)
        self._progress({"delta": document, "usage": document.get("usage")})
        self._has_spoken = self.is_ended = True

    def end(self) -> Iterator[Part]:
        """See ``Reader``."""
        if not self._has_spoken or not (self._finish or self.is_ended):
            raise self._faults.cut()
        yield from self._said(self._thought.rest(), self._text.rest())
        calls = list(finished(self._calls, self._new_id))
        if not all(call.name for call in calls):
            raise self._faults.malformed("with a tool call that names no tool")
        yield from calls
        given = [tokens(self._counts.get(name)) for name in INPUT_COUNTS]
        all_given = None if given[0] is None else sum(count or 0 for count in given)
        if usage := used(self._counts, all_given, tokens(self._counts.get("output_tokens"))):
            yield usage
        yield Finish(FINISHES.get(self._finish) or ("tool_calls" if calls else "stop"))

    def _read(self, event: Event) -> Mapping[str, Any] | None:
        """What the event says. The answer that is whole already is not lost to what stands behind it."""
        try:
            document = loads(event.data)
        except ValueError:
            document = None
        if event.name == "error" or (isinstance(document, dict) and document.get("error")):
            raise self._faults.told(understood(document or event.data.decode("utf-8", "replace")))
        if isinstance(document, dict):
            return document
        if self.is_finished:
            return None
        raise self._faults.malformed("with an event that is no JSON object")

    def _block(self, index: Any, block: Any) -> Iterator[Part]:
        """A block begins; a server that does not stream gives all of it at once."""
        if not isinstance(block, dict):
            raise self._faults.malformed("with a block that is no object")
        kind = _string(block.get("type"))
        if kind == "tool_use":
            call = Unfinished(_string(block.get("id")), _string(block.get("name")))
            call.add(written(block.get("input")))
            self._calls.append(call)
            self._by_index[_key(index)] = call
        elif kind in {"text", "thinking"}:
            yield from self._spoken(block)

    def _delta(self, index: Any, delta: Any) -> Iterator[Part]:
        if not isinstance(delta, dict):
            raise self._faults.malformed("with a delta that is no object")
        if "partial_json" in delta:
            call = self._by_index.get(_key(index))
            if call is not None:
                call.add(written(delta["partial_json"]))
        else:
            yield from self._spoken(delta)

    def _spoken(self, said: Mapping[str, Any]) -> Iterator[Part]:
        thought, text = _string(said.get("thinking")), _string(said.get("text"))
        yield from self._said(self._thought.take(thought), self._text.take(text))

    def _said(self, thought: str, text: str) -> Iterator[Part]:
        if thought:
            yield ThoughtDelta(thought)
        if text:
            yield TextDelta(text)

    def _progress(self, told: Mapping[str, Any]) -> None:
        """The counts so far, and the reason of the end once it is known."""
        message, delta = told.get("message"), told.get("delta")
        for usage in (message.get("usage") if isinstance(message, dict) else None, told.get("usage")):
            self._counts |= {k: v for k, v in usage.items() if v is not None} if isinstance(usage, dict) else {}
        reason = delta.get("stop_reason") if isinstance(delta, dict) else None
        if isinstance(reason, str) and reason:
            self._finish = reason
            self.is_finished = True


def _key(index: Any) -> int | None:
    """The place of a block; all that have none share one, where the last one begun stands."""
    return index if isinstance(index, int) else None


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
