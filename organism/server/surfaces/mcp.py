"""The organism as an MCP server, by the protocol's own library: requests are stateless and answered as JSON."""

from __future__ import annotations

from collections.abc import MutableMapping
from http import HTTPStatus
from typing import Any, Final

import orjson
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from starlette.responses import Response

from organism.bootstrap import VERSION
from organism.errors import InvalidField, NotAcceptable, OrganismError, Stopping
from organism.model.commands import Inject
from organism.pump.rules import call_json, tool_spec
from organism.server.http import problems
from organism.server.http.call import Call, caller_fields
from organism.server.surfaces.tool_calls import checked, hints_of, permitted, result_of, result_schema
from organism.server.turns.send_and_wait import call_tool

CALL: Final = "organism.call"
"""Under this name a request's scope holds its call."""


async def answer(call: Call) -> Response:
    """Answer one request by the library's ASGI application. Raises the error of a request that it refuses.

    Without sessions nothing lasts longer than a request, so each has a session manager of its own.
    """
    if call.process.stopping.done():
        raise Stopping
    bodies = [{"type": "http.request", "body": call.content, "more_body": False}]
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if not bodies:
            return dict(await call.receive())  # the body has come, so this is that the client has left
        return bodies.pop()

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    manager = StreamableHTTPSessionManager(_SERVER, json_response=True, stateless=True)
    async with manager.run():
        await manager.handle_request({**call.scope, "query_string": b"", CALL: call}, receive, send)
    start, *rest = sent or [{"status": 500, "headers": []}]
    body = b"".join(message.get("body", b"") for message in rest)
    if start["status"] >= HTTPStatus.BAD_REQUEST and not body:
        raise _refusal(start["status"])
    kind = dict(start["headers"]).get(b"content-type", b"application/json").decode()
    shown = call.process.redactor.masked_bytes(body)  # it repeats the request's id, whatever that is
    return Response(shown, int(start["status"]), media_type=kind if body else None)


def _refusal(status: int) -> OrganismError:
    """The error of a request that the library refuses without a word."""
    message = f"The Model Context Protocol does not take this: {status}."
    if status == HTTPStatus.NOT_ACCEPTABLE:
        return NotAcceptable(message, param="headers.accept")
    return InvalidField(message) if status < HTTPStatus.INTERNAL_SERVER_ERROR else OrganismError()


async def _listed(context: Any, _page: PaginatedRequestParams | None) -> ListToolsResult:
    """The tools that the token may call."""
    call: Call = context.request.scope[CALL]
    codec = call.tenant.pump.state.rules.codec
    tools = []
    for listener in permitted(call):
        spec, hints = tool_spec(listener, codec), hints_of(listener)
        tool = Tool(
            name=spec.name,
            description=spec.description,
            input_schema=dict(spec.parameters),
            output_schema=result_schema(listener),
            annotations=ToolAnnotations(**{f"{name}_hint": value for name, value in hints._asdict().items()}),
        )
        tools.append(tool)
    return ListToolsResult(tools=tools)


async def _called(context: Any, params: CallToolRequestParams) -> CallToolResult:
    call: Call = context.request.scope[CALL]
    try:
        result = await _result(call, params.name, params.arguments or {})
    except OrganismError as error:
        message = call.process.redactor.shown(f"{error.code}: {problems.brief(error.message)}".encode()).decode()
        return CallToolResult(content=[TextContent(type="text", text=message)], is_error=True)
    text = TextContent(type="text", text=orjson.dumps(result).decode())
    return CallToolResult(content=[text], structured_content=result if isinstance(result, dict) else {"result": result})


async def _result(call: Call, name: str, arguments: dict[str, Any]) -> Any:
    call.permit(name=name)
    json = call_json(checked(call, name), arguments)
    command = Inject(to=name, json=json, actor=call.actor, **caller_fields(call))
    sent, ending = await call_tool(call, command, "")
    if ending is None:
        return {"thread_id": sent.thread_id, "status": "running"}
    return await result_of(call.tenant.log, sent, ending)


_SERVER: Final[Server[Any]] = Server("organism", version=VERSION, on_list_tools=_listed, on_call_tool=_called)
