"""All MCP servers of an organism: which tools they have, and the handlers that call them.

They are asked at a start and at a reload, which wait a moment for the answers. One that has not answered by then is
awaited: it is asked until it does. Meanwhile those of its tools that the configuration names are listeners, and a call
of one says why the server cannot be reached.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
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
FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 60.0
"""A server that could not be asked is asked again after pauses, each twice as long as the one before."""


class _OfferedTool(NamedTuple):
    tool: Tool
    schema: ArgumentsSchema


@dataclass(slots=True)
class _Server:
    """``offered`` are the server's tools by the name of their listener; None until it has answered."""

    connection: Connection
    offered: Mapping[str, _OfferedTool] | None = None
    asking: asyncio.Task[None] | None = None
    wanted: asyncio.Event = field(default_factory=asyncio.Event)
    """Set to ask it now, instead of after the pause."""
    tried: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when it has answered or failed since it was asked last."""
    is_late: bool = False
    """Whether it has not answered in the time that a start or reload waits."""


class McpServers:
    """``folder`` is where commands run; ``environment`` has their variables and the tokens of addresses.

    ``on_answered`` is called when a late server has answered with other tools than before.
    """

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        pins: Pins,
        patience_seconds: float,
        on_answered: Callable[[], None] = lambda: None,
    ) -> None:
        self._pins = pins
        self._folder = folder
        self._environment = environment
        self._patience_seconds = patience_seconds
        self._on_answered = on_answered
        self._servers: dict[str, _Server] = {}
        self._logger = structlog.get_logger("organism.tools.mcp")

    async def refresh(self, servers: Mapping[str, McpServer], *, asks_again: bool = True) -> None:
        """Ask all of these servers for their tools, or those alone that are new, and wait a moment for the answers."""
        asked = []
        for name, server in servers.items():
            known = self._servers.get(_key(name, server))
            if known is None:
                connection = Connection(name, server, self._folder, self._environment)
                known = self._servers[_key(name, server)] = _Server(connection)
            elif not asks_again:
                continue
            known.is_late = False
            known.tried.clear()
            known.wanted.set()
            if known.asking is None or known.asking.done():
                known.asking = asyncio.create_task(self._ask(known), name=f"mcp-ask-{name}")
            asked.append(known)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience_seconds):
                await asyncio.gather(*(known.tried.wait() for known in asked))
        for known in asked:
            known.is_late = True

    async def _ask(self, known: _Server) -> None:
        """Ask it for its tools until it has answered."""
        pause = FIRST_PAUSE_SECONDS
        while (tools := await self._list_tools(known)) is None:
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await known.wanted.wait()
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        before, known.offered = known.offered, self._usable(known.connection, tools)
        self._pins.offered[known.connection.name] = {each: _pinned(found) for each, found in known.offered.items()}
        known.tried.set()
        if known.is_late and _tools_of(before) != _tools_of(known.offered):
            self._on_answered()

    async def _list_tools(self, known: _Server) -> list[Tool] | None:
        """The tools that it names; None if it cannot be asked."""
        known.wanted.clear()
        try:
            return await known.connection.tools()
        except ToolFailure as error:
            if not known.tried.is_set():  # else it is in the log already
                self._logger.warning("mcp_server_unreachable", server=known.connection.name, reason=error.message)
            known.offered = None
            known.tried.set()
            return None

    def awaited(self, servers: Mapping[str, McpServer]) -> list[str]:
        """The names of those whose answer is awaited."""
        known = {name: self._servers.get(_key(name, server)) for name, server in servers.items()}
        return [name for name, each in known.items() if each and each.asking and not each.asking.done()]

    def _usable(self, connection: Connection, tools: Iterable[Tool]) -> dict[str, _OfferedTool]:
        """The tools that can be listeners: each with a valid schema and a name of its own, called without a task."""
        offered: dict[str, _OfferedTool] = {}
        for tool in tools:
            listener, reason = listener_name(connection.name, tool.name), "another tool has its name"
            try:
                found = _OfferedTool(tool, ArgumentsSchema(tool.input_schema))
                if tool.execution is not None and tool.execution.task_support == "required":
                    reason = "it can be called as a task alone"
                elif offered.setdefault(listener, found) is found:
                    continue
            except (ValueError, TypeError, RecursionError) as error:
                reason = str(error)
            connection.leave_out(listener, reason)
        return offered

    async def keep(self, servers: Mapping[str, McpServer]) -> None:
        """Close the connections of all other servers."""
        named = {_key(name, server) for name, server in servers.items()}
        gone = [self._servers.pop(key) for key in list(self._servers) if key not in named]
        for server in gone:
            if server.asking is not None:
                server.asking.cancel()
        await asyncio.gather(*(server.connection.drop() for server in gone))

    def tools(self, servers: Mapping[str, McpServer], named: Iterable[str]) -> list[ShippedTool]:
        """Their tools as listeners; of a server that could not be asked those that are ``named`` or were accepted."""
        found: dict[str, ShippedTool] = {}
        for name, server in servers.items():
            known = self._servers.get(_key(name, server))
            if known is None or known.offered is None:
                likely = {*named, *self._pins.accepted(name)}
                found.update({tool.name: tool for tool in assumed_tools(name, server, likely)})
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


def _tools_of(offered: Mapping[str, _OfferedTool] | None) -> dict[str, Tool] | None:
    return None if offered is None else {name: each.tool for name, each in offered.items()}


def _key(name: str, server: McpServer) -> str:
    return f"{name} {server!r}"


def _pinned(offered: _OfferedTool) -> OfferedTool:
    tool = offered.tool
    return OfferedTool(_description(tool), tool.input_schema, effect_kind(tool))


def _description(tool: Tool) -> str:
    return cut(clean(tool.description or tool.title or tool.name), MOST_DESCRIPTION_BYTES)


def _shipped(listener: str, server: McpServer, offered: _OfferedTool) -> ShippedTool:
    tool = offered.tool
    shipped, effect = served_tool(listener, server, tool.input_schema, _description(tool)), effect_kind(tool)
    return replace(shipped, destroys=effect != "pure", effect=effect, check=arguments_check(offered.schema))
