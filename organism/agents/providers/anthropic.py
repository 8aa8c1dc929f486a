"""Models behind the messages API: Anthropic's own, and servers that are compatible with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from organism.agents.providers import ProviderError
from organism.agents.providers.answer import AnswerReader, arguments_of, tokens
from organism.agents.providers.failures import Access, Failures
from organism.agents.providers.messages import SYSTEM_ROLES, text_of
from organism.agents.providers.server import Api, Sdk, Server
from organism.model.completion import ModelRequest, whole_characters

if TYPE_CHECKING:
    import httpx2

MAX_TOKENS: Final = 4096
"""Sent where no bound is given: the API demands one, and every model takes this."""
MOST_TEMPERATURE: Final = 1.0
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


class Translator:
    """Gives the events of one answer, or all of it, in the words of the chat completions API."""

    def __init__(self, failures: Failures) -> None:
        self._failures = failures
        self._tools: set[Any] = set()
        self._counts: dict[str, Any] = {}
        self._has_reason = False

    def __call__(self, event: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        kind, index = event.get("type"), event.get("index")
        if event.get("error"):
            yield event
        elif kind == "content_block_start":
            yield self._block(index, event.get("content_block"))
        elif kind == "content_block_delta":
            yield self._delta(index, event.get("delta"))
        elif kind in ("message_start", "message_delta"):
            yield self._progress(event)
        elif kind == "message_stop" and not self._has_reason:
            yield _chunk({}, "stop")
        elif isinstance(event.get("content"), list):
            for at, block in enumerate(event["content"]):
                yield self._block(at, block)
            yield self._progress({"delta": event, "usage": event.get("usage")})

    def _block(self, index: Any, block: Any) -> Mapping[str, Any]:
        if not isinstance(block, dict):
            raise self._failures.malformed("with a block that is no object")
        if block.get("type") == "tool_use":
            self._tools.add(_key(index))
            return _call(index, block.get("id"), name=block.get("name"), arguments=block.get("input"))
        return _said(block) if block.get("type") in ("text", "thinking") else {}

    def _delta(self, index: Any, delta: Any) -> Mapping[str, Any]:
        if not isinstance(delta, dict):
            raise self._failures.malformed("with a delta that is no object")
        if "partial_json" not in delta:
            return _said(delta)
        return _call(index, None, arguments=delta["partial_json"]) if _key(index) in self._tools else {}

    def _progress(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        message, delta = event.get("message"), event.get("delta")
        for usage in (message.get("usage") if isinstance(message, dict) else None, event.get("usage")):
            self._counts |= {k: v for k, v in usage.items() if v is not None} if isinstance(usage, dict) else {}
        given = [tokens(self._counts.get(name)) for name in INPUT_COUNTS]
        prompt = None if given[0] is None else sum(count or 0 for count in given)
        used = {"prompt_tokens": prompt, "completion_tokens": self._counts.get("output_tokens")}
        reason = delta.get("stop_reason") if isinstance(delta, dict) else None
        self._has_reason = self._has_reason or (isinstance(reason, str) and bool(reason))
        return {**_chunk({}, reason), "usage": {**used, "cost": self._counts.get("cost")}}


def _chunk(delta: Mapping[str, Any], finish: Any = None) -> dict[str, Any]:
    return {"choices": [{"delta": delta, "finish_reason": finish}]}


def _said(block: Mapping[str, Any]) -> Mapping[str, Any]:
    return _chunk({"reasoning": block.get("thinking"), "content": block.get("text")})


def _call(index: Any, id_: Any, **function: Any) -> Mapping[str, Any]:
    return _chunk({"tool_calls": [{"index": _key(index), "id": id_, "function": function}]})


def _key(index: Any) -> int | None:
    """The index of a block; blocks without one share a place, which the last of them takes."""
    return index if isinstance(index, int) else None


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
        reader=lambda failures, _headers: AnswerReader(failures, Translator(failures), "content", "toolu"),
        version_path="/v1",
    )
