"""How many tokens a text is, where no tokenizer says it.

A token is taken for four characters, as in the estimate before a compaction, and each message for four tokens more
(its role and its borders). That is too many for plain English and too few for code and for scripts without spaces.
"""

from __future__ import annotations

from typing import Final

import orjson

from organism.agents.providers.talk import text_of
from organism.model.completion import ChatMessage, ModelRequest, ToolCall

CHARS_PER_TOKEN: Final = 4
TOKENS_PER_MESSAGE: Final = 4


def tokens_of(text: str) -> int:
    """The tokens of a text; none for an empty one."""
    return -(-len(text) // CHARS_PER_TOKEN)


def tokens_of_call(call: ToolCall) -> int:
    """The tokens of a tool call that the model writes."""
    return tokens_of(call.name) + tokens_of(call.raw or orjson.dumps(call.input or {}).decode())


def tokens_of_request(request: ModelRequest) -> int:
    """The tokens of all that the model reads: messages with the calls in them, tools, and the schema of the answer."""
    tools = [[tool.name, tool.description, tool.parameters] for tool in request.tools]
    schemas = [*tools, *([request.response_format] if request.response_format else [])]
    return sum(_of_message(message) for message in request.messages) + sum(
        tokens_of(orjson.dumps(schema, default=str).decode()) for schema in schemas
    )


def _of_message(message: ChatMessage) -> int:
    calls = message.get("tool_calls") or ()
    written = orjson.dumps(calls, default=str).decode() if calls else ""
    return TOKENS_PER_MESSAGE + tokens_of(text_of(message)) + tokens_of(written)
