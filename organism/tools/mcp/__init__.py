"""Tools of MCP servers. Here, which needs no extra: what they are called, and those of servers that did not answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from organism.config.settings import ShippedTool
from organism.config.tools import McpServer
from organism.model.tool import ToolArguments, ToolOutput

BETWEEN: Final = "__"
"""What stands between the server's name and the tool's in the name of the listener."""
MOST_NAME: Final = 128
ANYTHING: Final[Mapping[str, Any]] = {"type": "object"}
_SECONDS_MORE: Final = 30.0
"""A handling has this much longer than its call: the connection may have to be made."""
_UNFIT: Final = re.compile(r"[^A-Za-z0-9_.-]")


def listener_name(server: str, tool: str) -> str:
    return f"{server}{BETWEEN}{_UNFIT.sub('_', tool)}"[:MOST_NAME]


def served_tool(name: str, server: McpServer, parameters: Mapping[str, Any], says: str) -> ShippedTool:
    """A tool as a listener. As long as nothing else is known, its calls cannot be undone."""
    return ShippedTool(
        name=name,
        payload_class=ToolArguments,
        replies=(ToolOutput,),
        brings_outside_text=True,
        destroys=True,
        timeout_s=server.timeout_s + _SECONDS_MORE,
        parameters=parameters,
        says=says,
        is_listed=True,
        settings=server,
    )


def guessed(name: str, server: McpServer, named: Iterable[str]) -> list[ShippedTool]:
    """The tools of a server that was not asked: those that somebody names."""
    says = f"A tool of the MCP server {name}, which could not be asked what it does."
    tools = sorted(tool for tool in named if tool.startswith(name + BETWEEN))
    return [served_tool(tool, server, ANYTHING, says) for tool in tools]
