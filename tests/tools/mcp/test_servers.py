"""The tools of a server as listeners, and their handlers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from organism.config.tools import McpServer
from organism.model.tool import ToolArguments
from organism.tools.mcp.servers import McpServers
from tests.tools.mcp.web import text, web
from tests.tools.outside import Steps


async def test_of_tools_with_one_listener_s_name_the_first_with_a_usable_schema_is_offered_and_called() -> None:
    async with web(text) as server:
        server.tools = [
            {"name": "a b", "inputSchema": {"type": "object", "allOf": [{"$ref": "https://evil.example/schema"}]}},
            {"name": "a:b", "inputSchema": {"type": "object"}},
            {"name": "a_b", "inputSchema": {"type": "object"}},
        ]
        configured = {"far": McpServer(url=server.url)}
        servers = McpServers(Path(), {})
        await servers.refresh(configured)
        assert [tool.name for tool in servers.tools(configured, ())] == ["far__a_b"]
        call = cast("Any", servers.handler(configured, "far__a_b"))
        assert (await call(ToolArguments("{}"), Steps())).payload.text == "done"
        assert server.done[0]["params"]["name"] == "a:b"
        await servers.keep({})
