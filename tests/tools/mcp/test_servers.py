"""The tools of a server as listeners, and their handlers."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, cast

from organism.config.tools import McpServer
from organism.model.tool import ToolArguments
from organism.tools.mcp.pins import Pins
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
        servers = McpServers(Path(), {}, Pins(), math.inf)
        await servers.refresh(configured)
        assert [tool.name for tool in servers.tools(configured, ())] == ["far__a_b"]
        call = cast("Any", servers.handler(configured, "far__a_b"))
        assert (await call(ToolArguments("{}"), Steps())).payload.text == "done"
        assert server.done[0]["params"]["name"] == "a:b"
        await servers.keep({})


OBJECT = {"type": "object"}


async def test_a_tool_that_cannot_be_offered_takes_no_other_with_it() -> None:
    odd: list[Any] = [
        {"name": "no schema", "inputSchema": "none"},
        {"name": "nothing"},
        {"inputSchema": OBJECT},
        {"name": 5, "inputSchema": OBJECT},
        "no tool",
        {"name": "a list", "inputSchema": {"type": "array"}},
        {"name": "wrong", "inputSchema": {"type": "object", "properties": 5}},
        {"name": "large number", "inputSchema": {"type": "object", "properties": {"n": {"maximum": 2**70}}}},
        {"name": "odd hints", "inputSchema": OBJECT, "annotations": 5},
        {"name": "odd execution", "inputSchema": OBJECT, "execution": {"taskSupport": "sometimes"}},
        {"name": "as a task", "inputSchema": OBJECT, "execution": {"taskSupport": "required"}},
    ]
    usable = [
        {"name": "first", "inputSchema": OBJECT},
        {"name": "maybe", "inputSchema": OBJECT, "execution": {"taskSupport": "optional"}},
    ]
    async with web(text) as server:
        server.tools = [usable[0], *odd, usable[1]]
        configured = {"far": McpServer(url=server.url)}
        servers = McpServers(Path(), {}, Pins(), math.inf)
        await servers.refresh(configured)
        assert [tool.name for tool in servers.tools(configured, ())] == ["far__first", "far__maybe"]
        await servers.keep({})
