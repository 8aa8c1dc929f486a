"""All MCP servers of an organism: which tools they have, and the handlers that call them.

They are asked at a start and at a reload. One that does not answer prevents neither: those of its tools that are named
somewhere become listeners, and a call of one says why the server cannot be reached, until it can.
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
from organism.tools.mcp import BETWEEN, guessed, listener_name, served_tool
from organism.tools.mcp.calls import calling, checking, kind_of
from organism.tools.mcp.connection import Connection
from organism.tools.mcp.schema import ArgumentsSchema
from organism.tools.web import NoAnswer, clean, cut

MOST_SAID_BYTES: Final = 4_096


class _Offered(NamedTuple):
    tool: Tool
    schema: ArgumentsSchema


@dataclass(slots=True)
class _Server:
    """A server as it was met. ``offered`` are its tools by their listeners; None while it could not be asked."""

    connection: Connection
    offered: Mapping[str, _Offered] | None = None


class Hub:
    """The servers that were met. ``folder`` is where commands run, ``environment`` has their variables and tokens."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._servers: dict[str, _Server] = {}
        self._logger = structlog.get_logger("organism.tools.mcp")

    async def meet(self, servers: Mapping[str, McpServer]) -> None:
        """Ask each for its tools, all at once; also those that were met before."""
        await asyncio.gather(*(self._meet(name, server) for name, server in servers.items()))

    async def _meet(self, name: str, server: McpServer) -> None:
        connection = Connection(name, server, self._folder, self._environment)
        known = self._servers.setdefault(_key(name, server), _Server(connection))
        try:
            known.offered = self._offered(name, await known.connection.tools())
        except NoAnswer as error:
            known.offered = None
            self._logger.warning("mcp_server_unreachable", server=name, reason=error.message)

    def _offered(self, server: str, tools: Iterable[Tool]) -> dict[str, _Offered]:
        """The tools that can be listeners: each with a schema that can be used, and a name of its own."""
        offered: dict[str, _Offered] = {}
        for tool in tools:
            listener, reason = listener_name(server, tool.name), "another tool has its name"
            try:
                found = _Offered(tool, ArgumentsSchema(tool.input_schema))
                if offered.setdefault(listener, found) is found:
                    continue
            except ValueError as error:
                reason = str(error)
            self._logger.warning("mcp_tool_left_out", server=server, tool=listener, reason=reason)
        return offered

    async def keep(self, servers: Mapping[str, McpServer]) -> None:
        """Leave all other servers."""
        kept = {_key(name, server) for name, server in servers.items()}
        gone = [self._servers.pop(key) for key in list(self._servers) if key not in kept]
        await asyncio.gather(*(server.connection.drop() for server in gone))

    def tools(self, servers: Mapping[str, McpServer], named: Iterable[str]) -> list[ShippedTool]:
        """Their tools as listeners; of a server that could not be asked those that are ``named``."""
        found: dict[str, ShippedTool] = {}
        for name, server in servers.items():
            met = self._servers.get(_key(name, server))
            if met is None or met.offered is None:
                found.update({tool.name: tool for tool in guessed(name, server, named)})
            else:
                found.update({each: _shipped(each, server, offered) for each, offered in met.offered.items()})
        return list(found.values())

    def handlers(self, servers: Mapping[str, McpServer], listeners: Iterable[str]) -> Mapping[str, Handler]:
        """The handlers of these listeners."""
        return {listener: self._handler(servers, listener) for listener in listeners}

    def _handler(self, servers: Mapping[str, McpServer], listener: str) -> Handler:
        name = listener.partition(BETWEEN)[0]
        met = self._servers[_key(name, servers[name])]
        offered = (met.offered or {}).get(listener)
        if offered is None:
            return calling(met.connection, listener.removeprefix(name + BETWEEN), "unsafe", None)
        return calling(met.connection, offered.tool.name, kind_of(offered.tool), offered.schema)


def _key(name: str, server: McpServer) -> str:
    return f"{name} {server!r}"


def _shipped(listener: str, server: McpServer, offered: _Offered) -> ShippedTool:
    tool = offered.tool
    said = tool.description or tool.title or tool.name
    says = cut(clean(said), MOST_SAID_BYTES)
    made = served_tool(listener, server, tool.input_schema, says)
    return replace(made, destroys=kind_of(tool) != "pure", check=checking(offered.schema))
