"""The handler of a tool of an MCP server: it checks the arguments and makes the call as an effect."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

import orjson
from anyio import ClosedResourceError
from mcp import MCPError
from mcp.types import (
    CONNECTION_CLOSED,
    PARSE_ERROR,
    REQUEST_TIMEOUT,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    RequestParamsMeta,
    ResourceLink,
    TextContent,
    Tool,
)

from organism.config.json_text import NotJson, read_json
from organism.config.settings import Check
from organism.errors import Fault, InvalidPayload
from organism.model.handler import EffectFailed, EffectKind, EffectUnknown, HandlerMetadata, HandlerResponse
from organism.model.tool import ToolArguments, ToolError, ToolOutput
from organism.tools.mcp.connection import FAULTS, Connection
from organism.tools.mcp.http import NOTHING_DONE
from organism.tools.mcp.schema import ArgumentsSchema
from organism.tools.web import ToolFailure, clean, cut

MOST_TEXT_BYTES: Final = 64 * 1024
KEY: Final = "organism/idempotency-key"
"""The entry of ``_meta`` with the key that stays the same when a call is repeated."""
_UNCERTAIN: Final = frozenset({CONNECTION_CLOSED, REQUEST_TIMEOUT})

Call = Callable[[ToolArguments, HandlerMetadata], Awaitable[HandlerResponse]]


def effect_kind(tool: Tool) -> EffectKind:
    """Whether a call may be repeated: no, unless the tool is annotated as read-only or idempotent."""
    annotations = tool.annotations
    if annotations is not None and annotations.read_only_hint:
        return "pure"
    return "idempotent" if annotations is not None and annotations.idempotent_hint else "unsafe"


def tool_handler(connection: Connection, name: str, kind: EffectKind, schema: ArgumentsSchema | None) -> Call:
    """The handler that calls the tool ``name``; without a schema the server alone says what it takes."""

    async def call(payload: ToolArguments, metadata: HandlerMetadata) -> HandlerResponse:
        arguments, wrong = _read(payload.json, schema)
        if wrong:
            return HandlerResponse.respond(ToolError("invalid_field", wrong))

        async def ask(key: str) -> dict[str, Any]:
            return await _answer(connection, name, arguments, key)

        try:
            found = await metadata.effect("call", ask, kind=kind)
        except EffectFailed:
            return HandlerResponse.respond(ToolError("upstream_error", "An operator said that this call failed."))
        return HandlerResponse.respond(ToolError(**found) if "code" in found else ToolOutput(**found))

    return call


def arguments_check(schema: ArgumentsSchema) -> Check:
    def check(payload: ToolArguments) -> None:
        wrong = _read(payload.json, schema)[1]
        if wrong:
            raise InvalidPayload(wrong, details=(Fault("/json", wrong),))

    return check


def _read(text: str, schema: ArgumentsSchema | None) -> tuple[dict[str, Any], str]:
    try:
        arguments = read_json(text)
    except NotJson as error:
        return {}, f"The arguments cannot be taken: {error}."
    if not isinstance(arguments, dict):
        return {}, f"The arguments are a JSON object; {type(arguments).__name__} came."
    faults = schema.faults(arguments) if schema is not None else []
    return arguments, f"The arguments do not fit: {'; '.join(faults)}." if faults else ""


async def _answer(connection: Connection, name: str, arguments: dict[str, Any], key: str) -> dict[str, Any]:
    """The server's answer. Raises ``EffectUnknown`` if it may have acted without an answer."""
    server = f"The MCP server {connection.name}"
    try:
        return await _called(connection, name, arguments, key)
    except ToolFailure as error:
        return {"code": error.code, "message": error.message}
    except TimeoutError as error:
        raise EffectUnknown(f"{server} did not answer within {connection.server.timeout_s:g} seconds.") from error
    except FAULTS as error:
        why = cut(clean(str(error)), MOST_TEXT_BYTES)
        code = CONNECTION_CLOSED if isinstance(error, ClosedResourceError) else getattr(error, "code", PARSE_ERROR)
        if code in _UNCERTAIN:
            raise EffectUnknown(
                f"{server} was lost in the midst of the call: {connection.words.text or why}."
            ) from error
        did = "was asked, and its answer cannot be read" if code == PARSE_ERROR else "refused the call"
        return {"code": "upstream_error", "message": f"{server} {did}: {why}"}


async def _called(connection: Connection, name: str, arguments: dict[str, Any], key: str) -> dict[str, Any]:
    """Call it, and once more if certainly nothing was done, as after a restart of the server."""
    try:
        return await _once(connection, name, arguments, key)
    except MCPError as error:
        if error.code != NOTHING_DONE:
            raise
    await connection.drop()
    return await _once(connection, name, arguments, key)


async def _once(connection: Connection, name: str, arguments: dict[str, Any], key: str) -> dict[str, Any]:
    client, received = await connection.client(), connection.received
    try:
        async with asyncio.timeout(connection.server.timeout_s):
            return _fields(await client.call_tool(name, arguments, meta=cast("RequestParamsMeta", {KEY: key})))
    except TimeoutError:
        if connection.received == received:  # silent during the whole call: the next one connects again
            await connection.drop()
        raise


def _fields(result: CallToolResult) -> dict[str, Any]:
    whole = clean("\n".join(map(_text, result.content)))
    text = cut(whole, MOST_TEXT_BYTES)
    if result.is_error:
        return {"code": "upstream_error", "message": text or "The tool failed, and says nothing of it."}
    structured = "" if result.structured_content is None else _json(result.structured_content)
    fits = cut(structured, MOST_TEXT_BYTES) == structured
    return {"text": text, "json": structured if fits else "", "truncated": len(text) < len(whole) or not fits}


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # numbers beyond 64 bits, halves of characters
        return json.dumps(value, separators=(",", ":"))


def _text(block: object) -> str:
    """A block of an answer as text; for other content a note of what it is."""
    match block:
        case TextContent():
            return block.text
        case ResourceLink():
            return f"[{block.name}: {block.uri}]"
        case EmbeddedResource(resource=BlobResourceContents() as blob):
            return f"[{blob.mime_type or 'a file'}: {blob.uri}]"
        case EmbeddedResource():
            return str(getattr(block.resource, "text", ""))
        case _:
            return f"[{getattr(block, 'mime_type', None) or 'something'}]"
