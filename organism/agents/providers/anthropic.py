"""Models behind the messages API: Anthropic's own, and servers that are compatible with it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

from organism.agents.provider import ProviderError
from organism.agents.providers.access import Access, Waits
from organism.agents.providers.failures import Failures, server_error
from organism.agents.providers.pieces import (
    CallInPieces,
    Characters,
    NewId,
    arguments_of,
    arguments_text,
    tokens,
    usage_of,
    whole_calls,
    whole_characters,
)
from organism.agents.providers.server import EventStream, Reader, Sdk, Server
from organism.model.completion import Finish, FinishReason, ModelRequest, Part, TextDelta, ThoughtDelta

BASE_URL: Final = "https://api.anthropic.com"
VERSION_PATH: Final = "/v1"
PATH: Final = "/v1/messages"
OPTIONAL: Final = ("temperature", "output_config")
MAX_TOKENS: Final = 4096
"""The API demands a bound; every model takes this one."""
MOST_TEMPERATURE: Final = 1.0
FINISHES: Final[Mapping[str, FinishReason]] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
INPUT_COUNTS: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")

_NO_ID: Final = re.compile(r"[^A-Za-z0-9_-]")


class AnthropicProvider(Server):
    """One model. See ``Provider``; the package of the extra ``anthropic`` must be installed.

    ``key`` was read from the variable ``api_key_env``; servers at a ``base_url`` of their own may want none. Nothing is
    read from the environment, by the SDK either.
    """

    def __init__(
        self,
        base_url: str | None = None,
        key: str | None = None,
        api_key_env: str | None = None,
        waits: Waits = Waits(),  # noqa: B008 - frozen
        now: Callable[[], float] = time.time,
    ) -> None:
        # The SDK adds the version to the address; most servers write it there too.
        address = (base_url or BASE_URL).rstrip("/").removesuffix(VERSION_PATH)
        access = Access(address, key, api_key_env, needs_key=base_url is None)
        super().__init__(access, _Messages(), waits, now)


class _Messages:
    """See ``Api``."""

    optional = OPTIONAL

    def body(self, request: ModelRequest, without: frozenset[str]) -> Mapping[str, Any]:
        return _body(request, without)

    def load(self, access: Access, connect_s: float) -> Sdk:
        key = access.credential()
        try:
            import anthropic
        except ImportError as error:
            remedy = "install it by `pip install 'organism[anthropic]'`"
            raise ProviderError("rejected", f"The provider `anthropic` lacks its package: {remedy}.") from error

        from organism.agents.providers import transport

        transport.quiet("anthropic")
        credentials = {"x-api-key": key} if key else {}
        client = anthropic.AsyncAnthropic(
            api_key=key or "none",
            base_url=access.base_url,
            max_retries=0,
            open_telemetry=False,
            http_client=transport.http_client(access.base_url, credentials, connect_s),
        )

        async def post(content: bytes) -> EventStream:
            return await client.post(
                PATH, cast_to=object, content=content, stream=True, stream_cls=anthropic.AsyncStream[object]
            )

        return Sdk(post, client.close, (anthropic.AnthropicError, *transport.ERRORS))

    def reader(self, failures: Failures, headers: Mapping[str, str]) -> Reader:  # noqa: ARG002 - they say nothing here
        return MessagesReader(failures, lambda: f"toolu_{uuid4().hex}")


def _body(request: ModelRequest, without: frozenset[str]) -> dict[str, Any]:
    """The request, less the parameters that the server does not take."""
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
    """The JSON Schema in a response format, if it has one."""
    if form is None or form.get("type") in ("json_object", "text"):
        return None
    inner = form.get("json_schema")
    if form.get("type") == "json_schema" and isinstance(inner, Mapping):
        schema = inner.get("schema")
        return schema if isinstance(schema, Mapping) else None
    return form


def _system(messages: Sequence[Mapping[str, Any]]) -> str:
    """The system prompt; the API knows no system messages among the others."""
    texts = (_text(message.get("content")) for message in messages if message.get("role") in {"system", "developer"})
    return "\n\n".join(text for text in texts if text)


def _turns(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The conversation. Results of tools belong to the user; consecutive messages of one side are one turn."""
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
    given = arguments_of(whole_characters(str(arguments or "{}")))
    return {"arguments": str(arguments)} if given is None else given


class MessagesReader:
    """Reads one answer. See ``Reader``."""

    def __init__(self, failures: Failures, new_id: NewId) -> None:
        self._failures = failures
        self._new_id = new_id
        self._text, self._thought = Characters(), Characters()
        self._calls: list[CallInPieces] = []
        self._by_index: dict[Any, CallInPieces] = {}
        self._counts: dict[str, Any] = {}
        self._finish = ""
        self.is_finished = False

    def event(self, event: object) -> Iterator[Part]:
        """See ``Reader``."""
        if not isinstance(event, dict):
            if not self.is_finished:
                raise self._failures.malformed("with an event that is no JSON object")
            return
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
        """See ``Reader``."""
        if answer.get("error"):
            raise self._failures.reported(server_error(answer))
        if not isinstance(answer.get("content"), list):
            raise self._failures.malformed("with JSON that has no `content`")
        for index, block in enumerate(answer["content"]):
            yield from self._block(index, block)
        self._progress({"delta": answer, "usage": answer.get("usage")})
        self.is_finished = True

    def end(self) -> Iterator[Part]:
        """See ``Reader``."""
        if not self.is_finished:
            raise self._failures.cut()
        yield from self._parts(self._thought.rest(), self._text.rest())
        calls = list(whole_calls(self._calls, self._new_id))
        if not all(call.name for call in calls):
            raise self._failures.malformed("with a tool call that names no tool")
        yield from calls
        given = [tokens(self._counts.get(name)) for name in INPUT_COUNTS]
        all_given = None if given[0] is None else sum(count or 0 for count in given)
        if usage := usage_of(self._counts, all_given, tokens(self._counts.get("output_tokens"))):
            yield usage
        yield Finish(FINISHES.get(self._finish) or ("tool_calls" if calls else "stop"))

    def _block(self, index: Any, block: Any) -> Iterator[Part]:
        """A block begins; a server that does not stream gives all of it at once."""
        if not isinstance(block, dict):
            raise self._failures.malformed("with a block that is no object")
        kind = _string(block.get("type"))
        if kind == "tool_use":
            call = CallInPieces(_string(block.get("id")), _string(block.get("name")))
            call.add(arguments_text(block.get("input")))
            self._calls.append(call)
            self._by_index[_key(index)] = call
        elif kind in {"text", "thinking"}:
            yield from self._spoken(block)

    def _delta(self, index: Any, delta: Any) -> Iterator[Part]:
        if not isinstance(delta, dict):
            raise self._failures.malformed("with a delta that is no object")
        if "partial_json" in delta:
            call = self._by_index.get(_key(index))
            if call is not None:
                call.add(arguments_text(delta["partial_json"]))
        else:
            yield from self._spoken(delta)

    def _spoken(self, block: Mapping[str, Any]) -> Iterator[Part]:
        thought, text = _string(block.get("thinking")), _string(block.get("text"))
        yield from self._parts(self._thought.take(thought), self._text.take(text))

    def _parts(self, thought: str, text: str) -> Iterator[Part]:
        if thought:
            yield ThoughtDelta(thought)
        if text:
            yield TextDelta(text)

    def _progress(self, event: Mapping[str, Any]) -> None:
        """The counts so far, and the reason of the end once it is known."""
        message, delta = event.get("message"), event.get("delta")
        for usage in (message.get("usage") if isinstance(message, dict) else None, event.get("usage")):
            self._counts |= {k: v for k, v in usage.items() if v is not None} if isinstance(usage, dict) else {}
        reason = delta.get("stop_reason") if isinstance(delta, dict) else None
        if isinstance(reason, str) and reason:
            self._finish = reason
            self.is_finished = True


def _key(index: Any) -> int | None:
    """The place of a block; all without an index share one, which the last of them takes."""
    return index if isinstance(index, int) else None


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""
