"""Models behind the messages API: Anthropic's own, and servers that are compatible with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from organism.agents.providers import ProviderError
from organism.agents.providers.answer import Answer, Index, arguments_of, deltas, token_count
from organism.agents.providers.failures import Access, server_error
from organism.agents.providers.messages import SYSTEM_ROLES, images_of, text_of
from organism.agents.providers.server import Api, Sdk, Server
from organism.model.completion import ModelRequest, Part, whole_characters
from organism.model.tool import ToolSpec

if TYPE_CHECKING:
    import httpx2

MAX_TOKENS: Final = 4096
"""Sent where no bound is given: the API demands one, and every model takes this."""
MOST_TEMPERATURE: Final = 1.0

_NO_ID: Final = re.compile(r"[^A-Za-z0-9_-]")
_IN_URL: Final = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)


def _connect(access: Access, key: str, http: httpx2.AsyncClient) -> Sdk:
    try:
        import anthropic
    except ImportError as error:
        remedy = "install it by `pip install 'organism[anthropic]'`"
        message = f"The provider `anthropic` lacks its package: {remedy}."
        raise ProviderError("rejected", message, is_operators=True) from error

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
        sent["tools"] = [_tool(tool, without) for tool in request.tools]
    sent |= _parameters(request.parameters)
    schema = _schema(request.response_format)
    if schema is not None:
        sent["output_config"] = {"format": {"type": "json_schema", "schema": _accepted(schema)}}
    return {name: value for name, value in sent.items() if name not in without}


def _tool(tool: ToolSpec, without: frozenset[str]) -> dict[str, Any]:
    strict = {"strict": True} if tool.strict and "strict" not in without else {}
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters, **strict}


def _parameters(given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that this API has too, in its words."""
    sent = {"top_p": given["top_p"]} if "top_p" in given else {}
    if (stop := given.get("stop")) is not None:
        sent["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    choice, is_parallel = given.get("tool_choice"), given.get("parallel_tool_calls", True)
    if choice is not None or not is_parallel:
        form = {"required": {"type": "any"}, None: {"type": "auto"}}
        named = {"type": "tool", "name": choice["function"]["name"]} if isinstance(choice, Mapping) else form[choice]
        sent["tool_choice"] = named if is_parallel else {**named, "disable_parallel_tool_use": True}
    return sent


def _accepted(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema as the API takes it; one that the SDK cannot convert is sent as it is."""
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
    """The conversation. Tool results belong to the user; consecutive messages of one side are one turn."""
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
    blocks += [_image(url) for url in images_of(message.get("content"))]
    for call in message.get("tool_calls") or ():
        function = call.get("function") or {}
        name, given = function.get("name"), _input(function.get("arguments"))
        blocks.append({"type": "tool_use", "id": _id(call.get("id")), "name": name, "input": given})
    return blocks


def _image(url: str) -> dict[str, Any]:
    if found := _IN_URL.fullmatch(url):
        return {"type": "image", "source": {"type": "base64", "media_type": found[1], "data": found[2]}}
    return {"type": "image", "source": {"type": "url", "url": url}}


def _id(value: Any) -> str:
    """A call's id in the characters that this API takes; another provider may have made it."""
    return _NO_ID.sub("_", str(value))


def _input(arguments: Any) -> Mapping[str, Any]:
    if isinstance(arguments, Mapping):
        return arguments
    given = arguments_of(whole_characters(str(arguments or "{}")))
    return {"arguments": str(arguments)} if given is None else given


class Block(Struct):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None


class Delta(Struct):
    text: str | None = None
    thinking: str | None = None
    partial_json: Any = None
    stop_reason: str | None = None


class Counts(Struct):
    input_tokens: Any = None
    cache_creation_input_tokens: Any = None
    cache_read_input_tokens: Any = None
    output_tokens: Any = None
    cost: Any = None


class Message(Struct):
    usage: Counts | None = None


class Event(Struct):
    """An event, or a whole answer, as far as it is read."""

    type: str = ""
    index: Index = None
    content_block: Block | None = None
    delta: Delta | None = None
    message: Message | None = None
    usage: Counts | None = None
    content: list[Block] | None = None
    stop_reason: str | None = None
    error: Any = None


def read_event(answer: Answer, given: Mapping[str, Any]) -> Iterator[Part]:
    """The parts that an event, or a whole answer, completes."""
    event = answer.typed(given, Event)
    if event.error:
        raise answer.failures.reported(server_error(given))
    for index, block in enumerate(event.content or ()):
        yield from _begun(answer, index, block)
    if event.content_block is not None:
        yield from _begun(answer, event.index, event.content_block)
    if (delta := event.delta) is not None:
        if delta.partial_json is not None and answer.has_call(event.index):  # the server's own tools are not ours
            answer.add_call(event.index, "", "", delta.partial_json)
        yield from deltas(delta.thinking, delta.text)
        answer.stop(delta.stop_reason)
    for usage in (event.usage, event.message.usage if event.message is not None else None):
        if usage is not None:
            cached = (usage.cache_creation_input_tokens or 0, usage.cache_read_input_tokens or 0)
            prompt = [token_count(each) for each in (usage.input_tokens, *cached)]
            known = [each for each in prompt if each is not None]
            answer.count(sum(known) if len(known) == len(prompt) else None, usage.output_tokens, usage.cost)
    answer.stop("end_turn" if event.type == "message_stop" else event.stop_reason)


def _begun(answer: Answer, index: Index, block: Block) -> Iterator[Part]:
    if block.type == "tool_use":
        answer.add_call(index, block.id or "", block.name or "", block.input)
    elif block.type in ("text", "thinking"):
        yield from deltas(block.thinking, block.text)


class AnthropicProvider(Server):
    """See ``Server``; the package of the extra ``anthropic`` must be installed."""

    api = Api(
        name="anthropic",
        base_url="https://api.anthropic.com",
        path="/v1/messages",
        optional=("temperature", "output_config", "strict"),
        headers=lambda key: {"x-api-key": key},
        connect=_connect,
        body=_body,
        reader=lambda answer: partial(read_event, answer),
        content="content",
        id_prefix="toolu",
        version_path="/v1",
    )
