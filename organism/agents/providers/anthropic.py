"""Models behind the messages API: Anthropic's own, and servers that are compatible with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from organism.agents.providers import ProviderError
from organism.agents.providers.failures import Access, Failures, server_error
from organism.agents.providers.messages import SYSTEM_ROLES, text_of
from organism.agents.providers.server import (
    AnswerInPieces,
    Api,
    CallInPieces,
    Sdk,
    Server,
    arguments_of,
    arguments_text,
    deltas,
    tokens,
    usage_of,
)
from organism.model.completion import FinishReason, ModelRequest, Part, whole_characters

if TYPE_CHECKING:
    import httpx2

MAX_TOKENS: Final = 4096
"""Sent where no bound is given: the API demands one, and every model takes this."""
MOST_TEMPERATURE: Final = 1.0
FINISHES: Final[Mapping[str, FinishReason]] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
INPUT_COUNTS: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")

_NO_ID: Final = re.compile(r"[^A-Za-z0-9_-]")


def _connect(access: Access, key: str, http: httpx2.AsyncClient) -> Sdk:
    try:
        import anthropic
    except ImportError as error:
        remedy = "install it by `pip install 'organism[anthropic]'`"
        raise ProviderError("rejected", f"The provider `anthropic` lacks its package: {remedy}.") from error

    client = anthropic.AsyncAnthropic(
        api_key=key, base_url=access.base_url, max_retries=0, open_telemetry=False, http_client=http
    )
    return Sdk(client, anthropic.AsyncStream[object], anthropic.AnthropicError)


def _body(request: ModelRequest, without: frozenset[str]) -> dict[str, Any]:
    sent: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_tokens or MAX_TOKENS,
        "messages": _turns(request.messages),
        "stream": True,
        "temperature": min(request.temperature, MOST_TEMPERATURE),
    }
    if system := _system(request.messages):
        sent["system"] = system
    if request.tools:
        sent["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in request.tools
        ]
    schema = _schema(request.response_format)
    if schema is not None:
        sent["output_config"] = {"format": {"type": "json_schema", "schema": _accepted(schema)}}
    return {name: value for name, value in sent.items() if name not in without}


def _accepted(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema as the API takes it; one that the SDK cannot convert goes as it is."""
    from anthropic import transform_schema

    try:
        return transform_schema(dict(schema))
    except (AssertionError, AttributeError, TypeError, ValueError):
        return schema


def _schema(form: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if form is None or form.get("type") in ("json_object", "text"):
        return None
    inner = form.get("json_schema")
    if form.get("type") == "json_schema" and isinstance(inner, Mapping):
        schema = inner.get("schema")
        return schema if isinstance(schema, Mapping) else None
    return form


def _system(messages: Sequence[Mapping[str, Any]]) -> str:
    texts = (text_of(message.get("content")) for message in messages if message.get("role") in SYSTEM_ROLES)
    return "\n\n".join(text for text in texts if text)


def _turns(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The conversation. Results of tools belong to the user; consecutive messages of one side are one turn."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        if message.get("role") in SYSTEM_ROLES:
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
    text = text_of(message.get("content"))
    if message.get("role") == "tool":
        return [{"type": "tool_result", "tool_use_id": _id(message.get("tool_call_id")), "content": text}]
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text.strip() else []
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        name, given = function.get("name"), _input(function.get("arguments"))
        blocks.append({"type": "tool_use", "id": _id(call.get("id")), "name": name, "input": given})
    return blocks


def _id(value: Any) -> str:
    """The id of a call as this API takes it; another provider may have given it."""
    return _NO_ID.sub("_", str(value))


def _input(arguments: Any) -> Mapping[str, Any]:
    if isinstance(arguments, Mapping):
        return arguments
    given = arguments_of(whole_characters(str(arguments or "{}")))
    return {"arguments": str(arguments)} if given is None else given


class MessagesReader:
    def __init__(self, failures: Failures) -> None:
        self._failures = failures
        self._answer = AnswerInPieces(failures, "toolu")
        self._by_index: dict[int | None, CallInPieces] = {}
        self._counts: dict[str, Any] = {}
        self._finish = ""
        self.is_finished = False

    def event(self, event: Mapping[str, Any]) -> Iterator[Part]:
        kind = _string(event.get("type"))
        if kind == "content_block_start":
            yield from self._block(event.get("index"), event.get("content_block"))
        elif kind == "content_block_delta":
            yield from self._delta(event.get("index"), event.get("delta"))
        elif kind in {"message_start", "message_delta"}:
            self._progress(event)
        elif kind == "message_stop":
            self.is_finished = True

    def whole(self, answer: Mapping[str, Any]) -> Iterator[Part]:
        if answer.get("error"):
            raise self._failures.reported(server_error(answer))
        if not isinstance(answer.get("content"), list):
            raise self._failures.malformed("with JSON that has no `content`")
        for index, block in enumerate(answer["content"]):
            yield from self._block(index, block)
        self._progress({"delta": answer, "usage": answer.get("usage")})
        self.is_finished = True

    def end(self) -> Iterator[Part]:
        given = [tokens(self._counts.get(name)) for name in INPUT_COUNTS]
        prompt = None if given[0] is None else sum(count or 0 for count in given)
        usage = usage_of(self._counts, prompt, tokens(self._counts.get("output_tokens")))
        yield from self._answer.end(usage, FINISHES.get(self._finish))

    def _block(self, index: Any, block: Any) -> Iterator[Part]:
        if not isinstance(block, dict):
            raise self._failures.malformed("with a block that is no object")
        kind = _string(block.get("type"))
        if kind == "tool_use":
            call = CallInPieces(_string(block.get("id")), _string(block.get("name")))
            call.add(arguments_text(block.get("input")))
            self._answer.calls.append(call)
            self._by_index[_key(index)] = call
        elif kind in {"text", "thinking"}:
            yield from deltas(_string(block.get("thinking")), _string(block.get("text")))

    def _delta(self, index: Any, delta: Any) -> Iterator[Part]:
        if not isinstance(delta, dict):
            raise self._failures.malformed("with a delta that is no object")
        if "partial_json" in delta:
            call = self._by_index.get(_key(index))
            if call is not None:
                call.add(arguments_text(delta["partial_json"]))
        else:
            yield from deltas(_string(delta.get("thinking")), _string(delta.get("text")))

    def _progress(self, event: Mapping[str, Any]) -> None:
        message, delta = event.get("message"), event.get("delta")
        for usage in (message.get("usage") if isinstance(message, dict) else None, event.get("usage")):
            self._counts |= {k: v for k, v in usage.items() if v is not None} if isinstance(usage, dict) else {}
        reason = delta.get("stop_reason") if isinstance(delta, dict) else None
        if isinstance(reason, str) and reason:
            self._finish = reason
            self.is_finished = True


def _key(index: Any) -> int | None:
    """The index of a block; blocks without one share a place, which the last of them takes."""
    return index if isinstance(index, int) else None


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


class AnthropicProvider(Server):
    """See ``Server``; the package of the extra ``anthropic`` must be installed."""

    api = Api(
        name="anthropic",
        base_url="https://api.anthropic.com",
        path="/v1/messages",
        optional=("temperature", "output_config"),
        headers=lambda key: {"x-api-key": key},
        connect=_connect,
        body=_body,
        reader=lambda failures, _headers: MessagesReader(failures),
        version_path="/v1",
    )
