"""The tools of one organism: the shipped ones and those of MCP servers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from organism.config.load import mcp_servers
from organism.config.settings import Handler, Settings, Ship, ShippedTool
from organism.config.tools import McpServer, Tools
from organism.errors import ConfigInvalid
from organism.log.log import History
from organism.model.redact import Redactor
from organism.rag.library import Library
from organism.tools import calculator, current_datetime, http_fetch, key_value, library, wikipedia
from organism.tools.http_fetch import Fetcher
from organism.tools.key_value import Values
from organism.tools.library import LibraryTools
from organism.tools.mcp import assumed_tools
from organism.tools.mcp.pins import Pins
from organism.tools.web import Net
from organism.tools.wikipedia import Wiki
from organism.views.views import ViewStore

if TYPE_CHECKING:
    from organism.tools.mcp.servers import McpServers


def _own(release: str, tools: Tools) -> list[ShippedTool]:
    table = (
        calculator.TOOL,
        current_datetime.TOOL,
        *wikipedia.tools(tools),
        http_fetch.tool(tools),
        *key_value.TOOLS,
        *library.TOOLS,
    )
    return [replace(tool, release=release) for tool in table]


def shipped_scopes() -> Mapping[str, str]:
    """The scope that calling each shipped tool needs, by the tool's name; MCP servers' tools are not among them."""
    return {tool.name: tool.scope for tool in _own("", Tools())}


def static_tools(release: str) -> Ship:
    """A source of the shipped tools and of MCP servers' tools that asks no server."""

    def ship(tools: Tools, named: Collection[str]) -> Sequence[ShippedTool]:
        served = (tool for name, server in tools.mcp.items() for tool in assumed_tools(name, server, named))
        return [*_own(release, tools), *served]

    return ship


@dataclass(frozen=True, slots=True)
class TenantResources:
    """What the tools of a tenant read."""

    log: History
    views: ViewStore
    library: Library
    redactor: Redactor


def _bound(tools: Tools, net: Net, tenant: TenantResources) -> Mapping[str, Handler]:
    """The handler of each shipped tool for one tenant, by the tool's name."""
    wiki, values, library_tools = (
        Wiki(tools.wikipedia, net),
        Values(tenant.log, tenant.views, tenant.redactor),
        LibraryTools(tenant.library),
    )
    return {
        "calculator": calculator.calculate,
        "current_datetime": current_datetime.current_datetime,
        "wikipedia_search": wiki.search,
        "wikipedia_summary": wiki.summary,
        **({"http_fetch": Fetcher(tools.http_fetch, net).fetch} if tools.http_fetch is not None else {}),
        "key_value_get": values.get,
        "key_value_set": values.set,
        "key_value_list": values.list,
        "key_value_delete": values.delete,
        "rag_query": library_tools.query,
        "rag_index_list": library_tools.index_list,
        "rag_index_describe": library_tools.index_describe,
        "rag_doc_list": library_tools.doc_list,
        "rag_doc_get": library_tools.doc_get,
        **library_tools.writing(),
    }


class Toolbox:
    """``make_mcp`` is called once, if MCP servers are named; it raises ``ImportError`` without the extra."""

    def __init__(self, release: str, net: Net, make_mcp: Callable[[Pins], McpServers]) -> None:
        self.pins = Pins()
        self._release = release
        self._net = net
        self._make_mcp = make_mcp
        self._mcp: McpServers | None = None
        self._in_force: Mapping[str, McpServer] = {}

    async def prepare(self, config: Path, *, asks_again: bool) -> None:
        """Ask the MCP servers that the file names for their tools, or those alone that are new.

        Raises ``ConfigInvalid`` without the extra.
        """
        if servers := mcp_servers(config):
            try:
                self._mcp = self._mcp or self._make_mcp(self.pins)
            except ImportError as error:
                raise ConfigInvalid("`tools.mcp` needs the extra `mcp`: pip install 'organism[mcp]'.") from error
            await self._mcp.refresh(servers, asks_again=asks_again)

    @property
    def awaited(self) -> Sequence[str]:
        """The MCP servers in force that have not answered yet."""
        return () if self._mcp is None else self._mcp.awaited(self._in_force)

    def ship(self, tools: Tools, named: Collection[str]) -> Sequence[ShippedTool]:
        """All tools, as ``tools`` of an organism.yaml sets them; ``named`` is every name in the configuration."""
        served = self._mcp.tools(tools.mcp, named) if self._mcp is not None else ()
        return [*_own(self._release, tools), *served]

    def bound(self, settings: Settings, tenant: TenantResources) -> Mapping[str, Handler]:
        """The handlers of all tools of the settings, for one tenant."""
        own = _bound(settings.tools, self._net, tenant)
        if self._mcp is None:
            return own
        shipped = {listener.name for listener in settings.receivers if listener.is_shipped}
        return {**own, **{name: self._mcp.handler(settings.tools.mcp, name) for name in shipped - own.keys()}}

    async def keep(self, tools: Tools) -> None:
        """A configuration is in force: leave the servers that it does not name."""
        self._in_force = tools.mcp
        await self.roll_back()

    async def roll_back(self) -> None:
        """A configuration is not in force after all: leave the servers that only it names."""
        if self._mcp is not None:
            await self._mcp.keep(self._in_force)

    async def close(self) -> None:
        await self.keep(Tools())
