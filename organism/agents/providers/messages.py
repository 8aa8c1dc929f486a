"""Texts, tokens and digest of a request.

Tokens are estimated: one for four characters, four a message, 1600 an image.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

from organism.model.completion import ChatMessage, ModelRequest, ToolCall
from organism.model.tool import ToolSpec
from organism.pump.prompt import digest

SYSTEM_ROLES: Final = frozenset({"system", "developer"})
CHARS_PER_TOKEN: Final = 4
TOKENS_PER_MESSAGE: Final = 4
TOKENS_PER_IMAGE: Final = 1600


def text_of(content: Any) -> str:
    """The text of a message's content, which is text or a list of parts; parts other than text have none."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list | tuple) else ()
    texts = (part.get("text") for part in parts if isinstance(part, Mapping))
    return "\n".join(text for text in texts if isinstance(text, str))


def images_of(content: Any) -> list[str]:
    """The addresses of the images in a message's content."""
    parts = content if isinstance(content, list | tuple) else ()
    return [part["image_url"]["url"] for part in parts if isinstance(part, Mapping) and part.get("type") == "image_url"]


def tokens_of(text: str) -> int:
    """The tokens of a text; none for an empty one."""
    return -(-len(text) // CHARS_PER_TOKEN)


def tokens_of_call(call: ToolCall) -> int:
    return tokens_of(call.name) + tokens_of(call.raw or orjson.dumps(call.input or {}).decode())


def tokens_of_request(request: ModelRequest) -> int:
    """The tokens of all that the model reads: messages with their calls, tools, and the answer's schema."""
    return sum(map(tokens_of_message, request.messages)) + tokens_beside_messages(request)


def tokens_beside_messages(request: ModelRequest) -> int:
    """The tokens of a request's tools and of the answer's schema."""
    schema = orjson.dumps(request.response_format, default=str).decode() if request.response_format else ""
    return tokens_of_tools(request.tools) + tokens_of(schema)


def tokens_of_tools(tools: Iterable[ToolSpec]) -> int:
    """The tokens of the tools that a model is offered."""
    offered = ([tool.name, tool.description, tool.parameters] for tool in tools)
    return sum(tokens_of(orjson.dumps(each, default=str).decode()) for each in offered)


def tokens_of_message(message: ChatMessage) -> int:
    """The tokens of a message with its calls."""
    content = message.get("content")
    if isinstance(content, str):
        tokens = TOKENS_PER_MESSAGE + tokens_of(content)
    else:
        tokens = TOKENS_PER_MESSAGE + tokens_of(text_of(content)) + TOKENS_PER_IMAGE * len(images_of(content))
    if calls := message.get("tool_calls"):
        tokens += tokens_of(orjson.dumps(calls, default=str).decode())
    return tokens


def prompt_digest(messages: Iterable[bytes], request: ModelRequest) -> str:
    """The digest of the messages' JSON, the tools and the schema, as ``model_called`` records it."""
    tools = [[*tool.as_offered.values()] for tool in request.tools]
    beside = orjson.dumps([tools, request.response_format], option=orjson.OPT_SORT_KEYS)
    return digest(b"[", messages, b",%b" % beside[1:])
