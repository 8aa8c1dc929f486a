"""``organism mcp``: the server's tools over standard input and output, for programs that speak MCP."""

from __future__ import annotations

import asyncio
from importlib.metadata import version as package_version
from typing import Any, Final

import httpx2
import orjson

from organism.cli.client import FOR_MODELS, TIMEOUT_SECONDS, Server, find_server
from organism.cli.exits import Exit
from organism.cli.options import Remote
from organism.cli.output import refuse

HINTS: Final = ("read_only", "destructive", "idempotent", "open_world")
INSTALL: Final = "Install it: pip install 'organism[mcp]'."


def mcp(options: Remote) -> None:
    """Serve until standard input ends. Nothing but the protocol goes to standard output."""
    server = find_server(options)
    try:
        import mcp.server.lowlevel  # noqa: F401 - is it installed?
    except ImportError:
        refuse(Exit.FAILED, "This verb needs the extra `mcp`.", INSTALL)
    asyncio.run(_bridge(server))


async def _bridge(organism: Server) -> None:
    """Forward requests to the organism's API; a refusal becomes the protocol's kind of error."""
    from mcp.server.lowlevel import Server as McpServer
    from mcp.server.stdio import stdio_server
    from mcp.shared.exceptions import MCPError
    from mcp.types import INTERNAL_ERROR, CallToolResult, ListToolsResult, TextContent, Tool, ToolAnnotations

    async with httpx2.AsyncClient(**organism.http_settings(TIMEOUT_SECONDS)) as http:

        async def list_tools(_context: Any, _page: Any) -> ListToolsResult:
            answer, fault = await _ask(http, "GET", "/tools", None)
            if fault:
                raise MCPError(INTERNAL_ERROR, fault)
            return ListToolsResult(tools=[tool_of(each) for each in answer["data"]])

        def tool_of(shown: dict[str, Any]) -> Tool:
            function = shown["function"]
            return Tool(
                name=function["name"],
                description=function["description"],
                input_schema=function["parameters"],
                output_schema=shown["result"],
                annotations=ToolAnnotations(**{f"{name}_hint": shown[name] for name in HINTS}),
            )

        async def call_tool(_context: Any, params: Any) -> CallToolResult:
            body = {"name": params.name, "arguments": params.arguments or {}}
            answer, fault = await _ask(http, "POST", "/tools/execute", body)
            if fault:
                return CallToolResult(content=[TextContent(type="text", text=fault)], is_error=True)
            result = answer["result"] if "result" in answer else {"thread_id": answer["thread_id"], "status": "running"}
            text = TextContent(type="text", text=orjson.dumps(result).decode())
            structured = result if isinstance(result, dict) else {"result": result}
            return CallToolResult(content=[text], structured_content=structured)

        version = package_version("organism")
        server: McpServer[Any] = McpServer(
            "organism", version=version, on_list_tools=list_tools, on_call_tool=call_tool
        )
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())


async def _ask(http: httpx2.AsyncClient, method: str, path: str, body: Any) -> tuple[Any, str]:
    """The JSON of the answer, or what is wrong."""
    host = http.base_url.host
    try:
        response = await http.request(method, FOR_MODELS + path, json=body)
        answer = response.json()
    except httpx2.HTTPError as error:
        return None, f"The organism at {host} does not answer: {str(error) or type(error).__name__}"
    except ValueError:
        return None, f"Something other than an organism answers at {host}."
    if response.is_success:
        return answer, ""
    refusal = answer.get("error", {})
    return None, f"{refusal.get('code')}: {refusal.get('message')}"
