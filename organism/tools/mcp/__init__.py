"""Tools of MCP servers. This file needs no extra: their names, and the tools of servers that did not answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from organism.config.settings import ShippedTool
from organism.config.tools import McpServer
from organism.model.tool import ToolArguments, ToolOutput

SEPARATOR: Final = "__"
"""Between the server's name and the tool's in the name of the listener."""
MOST_NAME: Final = 128
ANY_OBJECT: Final[Mapping[str, Any]] = {"type": "object"}
_EXTRA_SECONDS: Final = 30.0
"""How much longer than its call a handling may take: it may have to connect."""
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_.-]")


def listener_name(server: str, tool: str) -> str:
    return f"{server}{SEPARATOR}{_UNFIT.sub('_', tool)}"[:MOST_NAME]


def served_tool(name: str, server: McpServer, parameters: Mapping[str, Any], description: str) -> ShippedTool:
    """A tool as a listener; its calls count as irreversible until its annotations are known."""
    return ShippedTool(
        name=name,
        scope="tools:execute",
        payload_class=ToolArguments,
        replies=(ToolOutput,),
        brings_outside_text=True,
        destroys=True,
        timeout_s=server.timeout_s + _EXTRA_SECONDS,
        parameters=parameters,
        says=description,
        is_listed=True,
        settings=server,
    )


def changed_tool(name: str, server: McpServer) -> ShippedTool:
    """A tool that is off because its server changed it: none of its new text gets into a prompt."""
    description = "This tool is off: its server has changed it, and the operator has not accepted that."
    return replace(served_tool(name, server, ANY_OBJECT, description), destroys=False)


def assumed_tools(name: str, server: McpServer, named: Iterable[str]) -> list[ShippedTool]:
    """The tools of a server that could not be asked: those that the configuration names."""
    description = f"A tool of the MCP server {name}, which could not be asked what it does."
    tools = sorted(tool for tool in named if tool.startswith(name + SEPARATOR))
    return [served_tool(tool, server, ANY_OBJECT, description) for tool in tools]
