"""The chat completions API: a request in its words, and its answers as parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from organism.agents.providers.wire.characters import Characters
from organism.agents.providers.wire.events import Event
from organism.agents.providers.wire.faults import Faults
from organism.agents.providers.wire.json_text import loads
from organism.agents.providers.wire.numbers import dollars, tokens, used
from organism.agents.providers.wire.said import understood
from organism.agents.providers.wire.tool_calls import Calls, NewId, finished
from organism.model.completion import Finish, FinishReason, ModelRequest, Part, TextDelta, ThoughtDelta, Usage

PATH: Final = "/chat/completions"
OPTIONAL: Final = ("stream_options", "stream", "max_tokens", "temperature", "response_format")
DONE: Final = b"[DONE]"
COST_HEADER: Final = "x-litellm-response-cost"
FINISHES: Final[Mapping[str, FinishReason]] = {
    "length": "length",
    "max_tokens": "length",
    "max_length": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "refusal": "content_filter",
}
"""Whatever else a server says is the end that it was meant to be."""
BROKEN_OFF: Final = frozenset({"error", "abort", "aborted", "cancelled", "network_error"})
UNNAMED: Final = "answer"

_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")


def body(request: ModelRequest, without: frozenset[str]) -> dict[str, Any]:
    """The request, less the parameters that the server does not take; ``max_tokens`` then goes by its newer name."""
    told: dict[str, Any] = {"model": request.model, "messages": request.messages, "stream": True}
    told |= {"stream_options": {"include_usage": True}, "temperature": request.temperature}
    if request.max_tokens is not None:
        told["max_tokens"] = request.max_tokens
        if "max_tokens" in without:
            told["max_completion_tokens"] = request.max_tokens
    if request.tools:
        told["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
            }
            for tool in request.tools
        ]
    if request.response_format is not None:
        told["response_format"] = wrapped(request.response_format)
    if "stream" in without:
        del told["stream_options"]
    return {name: value for name, value in told.items() if name not in without}


def wrapped(form: Mapping[str, Any]) -> Mapping[str, Any]:
    """A response format: a plain JSON Schema is put into the form that the API wants, another one stands."""
    if form.get("type") in ("json_schema", "json_object", "text") and "properties" not in form:
        return form
    name = _NO_NAME.sub("_", str(form.get("title") or UNNAMED))[:64]
    return {"type": "json_schema", "json_schema": {"name": name, "schema": form, "strict": _is_closed(form)}}


def _is_closed(schema: Any) -> bool:
    """Whether every object in the schema is what ``strict`` demands: closed, and with all of its fields required."""
    if isinstance(schema, list | tuple):
        return all(map(_is_closed, schema))
    if not isinstance(schema, Mapping):
        return True
    fields = schema.get("properties")
    if isinstance(fields, Mapping) or schema.get("type") == "object":
        required = schema.get("required") or ()
        if schema.get("additionalProperties") is not False or set(required) != set(fields or ()):
            return False
    return all(map(_is_closed, schema.values()))


class ChatReader:
    """Reads one answer. See ``Reader``."""

    def __init__(self, faults: Faults, headers: Mapping[str, str], new_id: NewId) -> None:
        self._faults = faults
        self._cost = dollars(headers.get(COST_HEADER))
        self._new_id = new_id
        self._text, self._thought = Characters(), Characters()
        self._calls = Calls()
        self._usage: Usage | None = None
        self._finish = ""
        self._has_spoken = False
        self._has_refused = False
        self.is_finished = False
        self.is_ended = False

    def event(self, event: Event) -> Iterable[Part]:
        """See ``Reader``."""
        data = event.data.strip()
        if data.startswith(DONE):
            self.is_ended = True
        elif data and (chunk := self._read(event)) is not None:
            return self._chunk(chunk)
        return ()

    def whole(self, document: Mapping[str, Any]) -> Iterator[Part]:
        """See ``Reader``."""
        if not document.get("error") and not isinstance(document.get("choices"), list):
            raise self._faults.malformed("with JSON that has no `choices`")
        yield from self._chunk(document)
        self.is_ended = True

    def end(self) -> Iterator[Part]:
        """See ``Reader``."""
        if not self._has_spoken or not (self._finish or self.is_ended):
            raise self._faults.cut()
        thought, text = self._thought.rest(), self._text.rest()
        if thought:
            yield ThoughtDelta(thought)
        if text:
            yield TextDelta(text)
        calls = list(finished(self._calls.all, self._new_id))
        if not all(call.name for call in calls):
            raise self._faults.malformed("with a tool call that names no tool")
        yield from calls
        if self._usage is not None:
            yield self._usage
        yield Finish(self._reason(has_calls=bool(calls)))

    def _read(self, event: Event) -> Mapping[str, Any] | None:
        """What the event says. The answer that is whole already is not lost to what stands behind it."""
        try:
            document = loads(event.data)
        except ValueError:
            document = None
        if event.name == "error":
            raise self._faults.told(understood(document or event.data.decode("utf-8", "replace")))
        if isinstance(document, dict):
            return document
        if self.is_finished:
            return None
        raise self._faults.malformed("with an event that is no JSON object")

    def _chunk(self, chunk: Mapping[str, Any]) -> Iterator[Part]:
        if chunk.get("error"):
            raise self._faults.told(understood(chunk))
        self._count(chunk.get("usage"))
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if not isinstance(choice, dict) or choice.get("index") not in (0, None):
                continue
            self._has_spoken = True
            delta = choice.get("delta") or choice.get("message")
            if isinstance(delta, dict):
                thought, text = self._heard(delta)
                if thought:
                    yield ThoughtDelta(thought)
                if text:
                    yield TextDelta(text)
            self._stop(choice.get("finish_reason"))

    def _stop(self, finish: object) -> None:
        """Why the model stopped, if it has."""
        if not isinstance(finish, str) or not finish:
            return
        if finish.lower() in BROKEN_OFF:
            raise self._faults.cut()
        self._finish = finish.lower()
        self.is_finished = True

    def _heard(self, delta: Mapping[str, Any]) -> tuple[str, str]:
        """Thought and text of a delta; its pieces of calls are kept."""
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        inner, text = _texts(delta.get("content"))
        refusal = delta.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._has_refused = True
            text += refusal
        for piece in _pieces(delta):
            if not isinstance(piece, dict):
                raise self._faults.malformed("with a tool call that is no object")
            self._calls.take(piece)
        thought = thought + inner if isinstance(thought, str) else inner
        return self._thought.take(thought), self._text.take(text)

    def _count(self, told: Any) -> None:
        """The usage; where a server tells it again and again, the last time counts."""
        if not isinstance(told, dict):
            return
        given, all_ = tokens(told.get("prompt_tokens")), tokens(told.get("total_tokens"))
        written = tokens(told.get("completion_tokens"))
        if written is None and given is not None and all_ is not None and all_ >= given:
            written = all_ - given
        usage = used(told, given, written)
        if usage is not None and usage.cost_usd is None and self._cost:
            usage = Usage(usage.input_tokens, usage.output_tokens, self._cost)
        self._usage = usage or self._usage

    def _reason(self, *, has_calls: bool) -> FinishReason:
        if self._has_refused:
            return "content_filter"
        return FINISHES.get(self._finish) or ("tool_calls" if has_calls else "stop")


def _pieces(delta: Mapping[str, Any]) -> list[Any]:
    """The pieces of tool calls in a delta; ``function_call`` is how there once was one at most."""
    calls, one = delta.get("tool_calls"), delta.get("function_call")
    if calls:
        return calls if isinstance(calls, list) else [calls]
    return [{"index": 0, "function": one}] if one else []


def _texts(content: Any) -> tuple[str, str]:
    """Thought and text of a content, which is a text or a list of typed parts."""
    if isinstance(content, str):
        return "", content
    thought = text = ""
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and part.get("type") == "thinking":
            inner = part.get("thinking")
            thought += inner if isinstance(inner, str) else _texts(inner)[1]
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            text += part["text"]
    return thought, text
