"""The tools of one organism: the shipped ones and those of MCP servers, made ready before a configuration is loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from organism.config.load import foresee
from organism.config.settings import Handler, Settings
from organism.config.shipped import ShippedTool
from organism.config.tool_settings import McpServer, Tools
from organism.errors import ConfigInvalid
from organism.log.log import History
from organism.tools.shelf import bound, shipped
from organism.tools.web import Net

Servers = Mapping[str, McpServer]


class Hub(Protocol):
    """The MCP servers; see ``mcp/hub.py``, which takes an extra."""

    async def meet(self, servers: Servers) -> None:
        """Ask them for their tools."""

    async def keep(self, servers: Servers) -> None:
        """Leave every other."""

    def tools(self, servers: Servers, named: Iterable[str]) -> list[ShippedTool]:
        """Their tools; of one that could not be asked those that are named."""

    def handlers(self, servers: Servers, tools: Iterable[ShippedTool]) -> Mapping[str, Handler]:
        """The handlers of these tools."""


class Toolbox:
    """``make_hub`` is called once, if a configuration names MCP servers; it raises ``ImportError`` without the extra.

    ``release`` is the version of the shipped tools.
    """

    def __init__(self, release: str, net: Net, make_hub: Callable[[], Hub]) -> None:
        self._shipped = shipped(release)
        self._net = net
        self._make_hub = make_hub
        self._hub: Hub | None = None
        self._named: frozenset[str] = frozenset()
        self._kept: Servers = {}

    async def prepare(self, config: Path) -> None:
        """Ask the MCP servers that the file names what they have, before all else of it is loaded.

        Raises ``ConfigInvalid`` if it names some and the extra is not installed.
        """
        tools, self._named = foresee(config)
        if tools.mcp:
            self._hub = self._hub or self._made_hub()
            await self._hub.meet(tools.mcp)

    def _made_hub(self) -> Hub:
        try:
            return self._make_hub()
        except ImportError as error:
            raise ConfigInvalid("`tools.mcp` needs the extra `mcp`: pip install 'organism[mcp]'.") from error

    def ship(self, tools: Tools) -> Sequence[ShippedTool]:
        """Every tool that comes with the organism, as ``tools`` of its file sets them."""
        return [*self._shipped(tools), *self._served(tools)]

    def _served(self, tools: Tools) -> list[ShippedTool]:
        return self._hub.tools(tools.mcp, self._named) if self._hub is not None and tools.mcp else []

    def bound(self, settings: Settings, log: History) -> Mapping[str, Handler]:
        """The handlers of all tools of the settings, for the tenant of this log."""
        own = bound(settings.tools, self._net, log)
        if self._hub is None:
            return own
        listeners = {listener.name for listener in (*settings.listeners, *settings.shelf) if listener.is_shipped}
        served = [tool for tool in self._served(settings.tools) if tool.name in listeners]
        return {**own, **self._hub.handlers(settings.tools.mcp, served)}

    async def keep(self, tools: Tools) -> None:
        """A configuration is in force: leave the servers that it does not name."""
        self._kept = tools.mcp
        await self.take_back()

    async def take_back(self) -> None:
        """A configuration is not in force after all: leave the servers that only it names."""
        if self._hub is not None:
            await self._hub.keep(self._kept)

    async def close(self) -> None:
        """Leave every server."""
        await self.keep(Tools())
