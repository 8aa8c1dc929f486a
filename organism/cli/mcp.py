"""``organism mcp``: a bridge from standard input and output to the server's tools, for programs that speak MCP."""

from __future__ import annotations

import asyncio
from importlib.metadata import version as package_version
from typing import Any, Final

import httpx2
import orjson

from organism.cli.client import FOR_MODELS, TIMEOUT_SECONDS, Place, place
from organism.cli.exits import Exit
from organism.cli.options import Remote
from organism.cli.show import refuse

NEEDED: Final = "Install it: pip install 'organism[mcp]'."


def mcp(options: Remote) -> None:
    """Serve until standard input ends. Nothing but the protocol goes to standard output."""
    found = place(options)
    try:
        import mcp.server.lowlevel  # noqa: F401 - whether it is there
    except ImportError:
        refuse(Exit.FAILED, "This verb needs the extra `mcp`.", NEEDED)
    asyncio.run(_bridge(found))


async def _bridge(found: Place) -> None:
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

    async with httpx2.AsyncClient(
        base_url=found.url + FOR_MODELS,
        headers=found.headers,
        timeout=TIMEOUT_SECONDS,
        trust_env=False,
        verify=found.authorities() or False,
    ) as http:
        bridge = Bridge(http)
        server: Server[Any] = Server(
            "organism", version=package_version("organism"), on_list_tools=bridge.listed, on_call_tool=bridge.called
        )
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())


class Bridge:
    """Asks the server; what it refuses is told as the protocol wants it told."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http

    async def listed(self, _context: Any, _page: Any) -> Any:
        """The tools that the token may call."""
        from mcp.shared.exceptions import MCPError
        from mcp.types import INTERNAL_ERROR, ListToolsResult, Tool

        said, wrong = await self._asked("GET", "/tools", None)
        if wrong:
            raise MCPError(INTERNAL_ERROR, wrong)
        tools = [tool["function"] for tool in said["data"]]
        return ListToolsResult(
            tools=[Tool(name=t["name"], description=t["description"], input_schema=t["parameters"]) for t in tools]
        )

    async def called(self, _context: Any, params: Any) -> Any:
        """Call one, and tell what came of it."""
        from mcp.types import CallToolResult, TextContent

        body = {"name": params.name, "arguments": params.arguments or {}}
        said, wrong = await self._asked("POST", "/tools/execute", body)
        if wrong:
            return CallToolResult(content=[TextContent(type="text", text=wrong)], is_error=True)
        result = said.get("result", said)
        text = TextContent(type="text", text=orjson.dumps(result).decode())
        structured = result if isinstance(result, dict) else {"result": result}
        return CallToolResult(content=[text], structured_content=structured)

    async def _asked(self, method: str, path: str, body: Any) -> tuple[Any, str]:
        """The JSON of the answer, or what is wrong."""
        try:
            answer = await self._http.request(method, path, json=body)
            said = answer.json()
        except httpx2.HTTPError as error:
            why = str(error) or type(error).__name__
            return None, f"The organism at {self._http.base_url.host} does not answer: {why}"
        except ValueError:
            return None, f"Something that is no organism answers at {self._http.base_url.host}."
        if answer.is_success:
            return said, ""
        refusal = said.get("error", {})
        return None, f"{refusal.get('code')}: {refusal.get('message')}"
