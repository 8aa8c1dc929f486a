"""Models behind the chat completions API: OpenAI's own, and every server that is compatible with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from organism.agents.providers.answer import Answer, Index, deltas
from organism.agents.providers.failures import Access, server_error
from organism.agents.providers.server import Api, Sdk, Server
from organism.model.completion import ModelRequest, Part

if TYPE_CHECKING:
    import httpx2

OPTIONAL: Final = ("stream_options", "stream", "max_tokens", "temperature", "response_format", "strict")
UNNAMED: Final = "answer"

_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")


def body(request: ModelRequest, without: frozenset[str]) -> dict[str, Any]:
    """The request without the parameters that the server does not know; ``max_tokens`` then has its newer name."""
    sent: dict[str, Any] = {"model": request.model, "messages": request.messages, "stream": True}
    sent |= {"stream_options": {"include_usage": True}, "temperature": request.temperature}
    if request.max_tokens is not None:
        sent["max_tokens"] = request.max_tokens
        if "max_tokens" in without:
            sent["max_completion_tokens"] = request.max_tokens
    if request.tools:
        sent["tools"] = [
            {
                "type": "function",
                "function": {name: each for name, each in tool.as_offered.items() if name not in without},
            }
            for tool in request.tools
        ]
    if request.response_format is not None:
        sent["response_format"] = wrapped(request.response_format)
    sent |= request.parameters
    if "stream" in without:
        del sent["stream_options"]
    return {name: value for name, value in sent.items() if name not in without}


def wrapped(form: Mapping[str, Any]) -> Mapping[str, Any]:
    """A response format in the API's own form; a plain JSON Schema is wrapped in it."""
    if form.get("type") in ("json_schema", "json_object", "text") and "properties" not in form:
        return form
    name = _NO_NAME.sub("_", str(form.get("title") or UNNAMED))[:64]
    return {"type": "json_schema", "json_schema": {"name": name, "schema": form, "strict": _is_closed(form)}}


def _is_closed(schema: Any) -> bool:
    """Whether every object in the schema is closed and requires all of its fields, as ``strict`` demands."""
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


class Function(Struct):
    name: str | None = None
    arguments: Any = None


class CallPiece(Struct):
    index: Index = None
    id: str | None = None
    function: Function = field(default_factory=Function)


class ContentPart(Struct):
    text: str | None = None
    thinking: str | list[ContentPart] | None = None


class Delta(Struct):
    """The next piece of a message, or all of it."""

    content: str | list[ContentPart] | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    refusal: str | None = None
    tool_calls: list[CallPiece] | None = None


class Choice(Struct):
    index: int | None = 0
    delta: Delta | None = None
    message: Delta | None = None
    finish_reason: str | None = None


class Counts(Struct):
    prompt_tokens: Any = None
    completion_tokens: Any = None
    cost: Any = None


class Chunk(Struct):
    """An event, or a whole answer, as far as it is read."""

    choices: list[Choice] | None = None
    usage: Counts | None = None
    error: Any = None


def read_chunk(answer: Answer, event: Mapping[str, Any]) -> Iterator[Part]:
    """The parts that the JSON of an event, or of a whole answer, completes."""
    chunk = answer.typed(event, Chunk)
    if chunk.error:
        raise answer.failures.reported(server_error(event))
    if (counts := chunk.usage) is not None:
        answer.count(counts.prompt_tokens, counts.completion_tokens, counts.cost)
    for choice in chunk.choices or ():
        if not choice.index:  # the first is the only one that was asked for
            yield from _spoken(answer, choice.delta or choice.message or Delta())
            answer.stop(choice.finish_reason)


def _spoken(answer: Answer, delta: Delta) -> Iterator[Part]:
    for piece in delta.tool_calls or ():
        answer.add_call(piece.index, piece.id or "", piece.function.name or "", piece.function.arguments)
    if delta.refusal:
        answer.refuse()
    thought = delta.reasoning_content or delta.reasoning or ""
    yield from deltas(thought + _thought_in(delta.content), _text_in(delta.content) + (delta.refusal or ""))


def _text_in(content: str | list[ContentPart] | None) -> str:
    return content if isinstance(content, str) else "".join(part.text or "" for part in content or ())


def _thought_in(content: str | list[ContentPart] | None) -> str:
    return "" if isinstance(content, str) else "".join(_text_in(part.thinking) for part in content or ())


def _connect(access: Access, key: str, http: httpx2.AsyncClient) -> Sdk:
    import openai

    client = openai.AsyncOpenAI(api_key=key, base_url=access.base_url, max_retries=0, http_client=http)
    return Sdk(client, openai.AsyncStream[object], openai.OpenAIError)


class OpenAIProvider(Server):
    """See ``Server``."""

    api = Api(
        name="openai",
        base_url="https://api.openai.com/v1",
        path="/chat/completions",
        optional=OPTIONAL,
        headers=lambda key: {"authorization": f"Bearer {key}"},
        connect=_connect,
        body=body,
        reader=lambda answer: partial(read_chunk, answer),
        content="choices",
    )
