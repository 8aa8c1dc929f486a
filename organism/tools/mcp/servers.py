"""All MCP servers of an organism: which tools they have, and the handlers that call them.

They are asked at a start and at a reload. One that does not answer prevents neither: those of its tools that the
configuration names become listeners, and until it can be reached a call of one says why it cannot.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

import structlog
from mcp.types import Tool

from organism.config.settings import Handler, ShippedTool
from organism.config.tools import McpServer
from organism.tools.mcp import SEPARATOR, assumed_tools, changed_tool, listener_name, served_tool
from organism.tools.mcp.calls import arguments_check, effect_kind, tool_handler
from organism.tools.mcp.connection import Connection
from organism.tools.mcp.pins import OfferedTool, Pins, refuse_call
from organism.tools.mcp.schema import ArgumentsSchema
from organism.tools.web import ToolFailure, clean, cut

MOST_DESCRIPTION_BYTES: Final = 4_096


class _OfferedTool(NamedTuple):
    tool: Tool
    schema: ArgumentsSchema


@dataclass(slots=True)
class _Server:
    """``offered`` are the server's tools by the name of their listener; None while it cannot be asked."""

    connection: Connection
    offered: Mapping[str, _OfferedTool] | None = None


class McpServers:
    """``folder`` is where commands run; ``environment`` has their variables and the tokens of addresses."""

    def __init__(self, folder: Path, environment: Mapping[str, str], pins: Pins | None = None) -> None:
        self._pins = pins or Pins()
        self._folder = folder
        self._environment = environment
        self._servers: dict[str, _Server] = {}
        self._logger = structlog.get_logger("organism.tools.mcp")

    async def refresh(self, servers: Mapping[str, McpServer]) -> None:
        """Ask all of these servers for their tools, at once."""
        await asyncio.gather(*(self._refresh(name, server) for name, server in servers.items()))

    async def _refresh(self, name: str, server: McpServer) -> None:
        connection = Connection(name, server, self._folder, self._environment)
        known = self._servers.setdefault(_key(name, server), _Server(connection))
        try:
            known.offered = self._usable(name, await known.connection.tools())
            self._pins.offered[name] = {each: _pinned(offered) for each, offered in known.offered.items()}
        except ToolFailure as error:
            known.offered = None
            self._logger.warning("mcp_server_unreachable", server=name, reason=error.message)

    def _usable(self, server: str, tools: Iterable[Tool]) -> dict[str, _OfferedTool]:
        """The tools that can be listeners: each with a valid schema and a name of its own."""
        offered: dict[str, _OfferedTool] = {}
        for tool in tools:
            listener, reason = listener_name(server, tool.name), "another tool has its name"
            try:
                found = _OfferedTool(tool, ArgumentsSchema(tool.input_schema))
                if offered.setdefault(listener, found) is found:
                    continue
            except ValueError as error:
                reason = str(error)
            self._logger.warning("mcp_tool_left_out", server=server, tool=listener, reason=reason)
        return offered

    async def keep(self, servers: Mapping[str, McpServer]) -> None:
        """Close the connections of all other servers."""
        kept = {_key(name, server) for name, server in servers.items()}
        gone = [self._servers.pop(key) for key in list(self._servers) if key not in kept]
        await asyncio.gather(*(server.connection.drop() for server in gone))

    def tools(self, servers: Mapping[str, McpServer], named: Iterable[str]) -> list[ShippedTool]:
        """Their tools as listeners; of a server that could not be asked those that are ``named``."""
        found: dict[str, ShippedTool] = {}
        for name, server in servers.items():
            known = self._servers.get(_key(name, server))
            if known is None or known.offered is None:
                found.update({tool.name: tool for tool in assumed_tools(name, server, named)})
            else:
                for each, offered in known.offered.items():
                    is_off = self._pins.is_off(name, each, _pinned(offered))
                    found[each] = changed_tool(each, server) if is_off else _shipped(each, server, offered)
        return list(found.values())

    def handler(self, servers: Mapping[str, McpServer], listener: str) -> Handler:
        """The handler of a listener that ``tools`` named."""
        name = listener.partition(SEPARATOR)[0]
        known = self._servers[_key(name, servers[name])]
        offered = (known.offered or {}).get(listener)
        if offered is None:
            return tool_handler(known.connection, listener.removeprefix(name + SEPARATOR), "unsafe", None)
        if self._pins.is_off(name, listener, _pinned(offered)):
            return refuse_call
        return tool_handler(known.connection, offered.tool.name, effect_kind(offered.tool), offered.schema)


def _key(name: str, server: McpServer) -> str:
    return f"{name} {server!r}"


def _pinned(offered: _OfferedTool) -> OfferedTool:
    tool = offered.tool
    return OfferedTool(_description(tool), tool.input_schema, effect_kind(tool))


def _description(tool: Tool) -> str:
    return cut(clean(tool.description or tool.title or tool.name), MOST_DESCRIPTION_BYTES)


def _shipped(listener: str, server: McpServer, offered: _OfferedTool) -> ShippedTool:
    tool = offered.tool
    shipped = served_tool(listener, server, tool.input_schema, _description(tool))
    return replace(shipped, destroys=effect_kind(tool) != "pure", check=arguments_check(offered.schema))
