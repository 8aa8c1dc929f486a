"""All MCP servers of an organism: which tools they have, and the handlers that call them.

The servers are asked for their tools at a start and at a reload, since that is when listeners are made. One that does
not answer then keeps nothing from starting: its tools that somebody names are there, and whoever calls one hears why it
cannot be reached, until it can.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import structlog
from mcp.types import Tool

from organism.config.settings import Handler
from organism.config.shipped import ShippedTool
from organism.config.tool_settings import McpServer
from organism.tools.mcp.calls import calling, checking, kind_of
from organism.tools.mcp.connection import Connection
from organism.tools.mcp.schema import ArgumentsSchema
from organism.tools.served import BETWEEN, guessed, listener_name, served_tool
from organism.tools.text import cut, decoded
from organism.tools.web import NoAnswer

MOST_SAID_BYTES: Final = 4_096


@dataclass(slots=True)
class _Server:
    """A server as it was met. ``tools`` is None while it could not be asked."""

    connection: Connection
    tools: Sequence[Tool] | None = None


class Hub:
    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._servers: dict[str, _Server] = {}
        self._logger = structlog.get_logger("organism.tools.mcp")

    async def meet(self, servers: Mapping[str, McpServer]) -> None:
        """Ask each for its tools, all at once; those that were met before and are the same too."""
        await asyncio.gather(*(self._meet(name, server) for name, server in servers.items()))

    async def _meet(self, name: str, server: McpServer) -> None:
        known = self._servers.get(_key(name, server))
        if known is None:
            known = _Server(Connection(name, server, self._folder, self._environment))
            self._servers[_key(name, server)] = known
        try:
            known.tools = await known.connection.tools()
        except NoAnswer as error:
            known.tools = None
            self._logger.warning("mcp_server_unreachable", server=name, reason=error.message)

    async def keep(self, servers: Mapping[str, McpServer]) -> None:
        kept = {_key(name, server) for name, server in servers.items()}
        gone = [self._servers.pop(key) for key in list(self._servers) if key not in kept]
        await asyncio.gather(*(server.connection.drop() for server in gone))

    def tools(self, servers: Mapping[str, McpServer], named: Iterable[str]) -> list[ShippedTool]:
        """Their tools as listeners; of a server that could not be asked those that are ``named``."""
        found: dict[str, ShippedTool] = {}
        for name, server in servers.items():
            met = self._servers.get(_key(name, server))
            tools = None if met is None else met.tools
            shown = guessed(name, server, named) if tools is None else self._shown(name, server, tools)
            found.update({tool.name: tool for tool in shown})
        return list(found.values())

    def _shown(self, name: str, server: McpServer, tools: Sequence[Tool]) -> list[ShippedTool]:
        shown: dict[str, ShippedTool] = {}
        for tool in tools:
            listener = listener_name(name, tool.name)
            try:
                found = _shipped(listener, server, tool)
            except ValueError as error:
                self._left_out(name, listener, str(error))
                continue
            if listener in shown:
                self._left_out(name, listener, "another tool has its name")
            else:
                shown[listener] = found
        return list(shown.values())

    def _left_out(self, server: str, tool: str, reason: str) -> None:
        self._logger.warning("mcp_tool_left_out", server=server, tool=tool, reason=reason)

    def handlers(self, servers: Mapping[str, McpServer], tools: Iterable[ShippedTool]) -> Mapping[str, Handler]:
        return {tool.name: self._handler(servers, tool) for tool in tools}

    def _handler(self, servers: Mapping[str, McpServer], tool: ShippedTool) -> Handler:
        name = tool.name.partition(BETWEEN)[0]
        met = self._servers[_key(name, servers[name])]
        for each in met.tools or ():
            if listener_name(name, each.name) == tool.name:
                return calling(met.connection, each.name, kind_of(each), ArgumentsSchema(each.input_schema))
        return calling(met.connection, tool.name.removeprefix(name + BETWEEN), "unsafe", None)


def _key(name: str, server: McpServer) -> str:
    return f"{name} {server!r}"


def _shipped(listener: str, server: McpServer, tool: Tool) -> ShippedTool:
    """The tool as it is offered. Raises ``ValueError`` if its schema cannot be used."""
    said = tool.description or tool.title or tool.name
    says = cut(decoded(said.encode("utf-8", "replace"), ""), MOST_SAID_BYTES)
    check = checking(ArgumentsSchema(tool.input_schema))
    made = served_tool(listener, server, tool.input_schema, says)
    return replace(made, destroys=kind_of(tool) != "pure", check=check)
