"""Models behind the chat completions API: OpenAI's own, and every server that is compatible with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from organism.agents.providers.answer import AnswerReader, dollars
from organism.agents.providers.failures import Access
from organism.agents.providers.server import Api, Sdk, Server
from organism.model.completion import ModelRequest

if TYPE_CHECKING:
    import httpx2

COST_HEADER: Final = "x-litellm-response-cost"
OPTIONAL: Final = ("stream_options", "stream", "max_tokens", "temperature", "response_format")
UNNAMED: Final = "answer"

_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")


def body(request: ModelRequest, without: frozenset[str]) -> dict[str, Any]:
    """The request, less the parameters that the server does not take; ``max_tokens`` then goes by its newer name."""
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
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
            }
            for tool in request.tools
        ]
    if request.response_format is not None:
        sent["response_format"] = wrapped(request.response_format)
    if "stream" in without:
        del sent["stream_options"]
    return {name: value for name, value in sent.items() if name not in without}


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
        reader=lambda failures, headers: AnswerReader(failures, cost_usd=dollars(headers.get(COST_HEADER))),
    )
