"""``/mcp``: the tools of ``/v1/tools`` over the Model Context Protocol, with the same tokens.

It needs the extra ``mcp``, whose import takes a second: ``mcp_server`` is imported by the first request.
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Final

from organism.errors import NotAcceptable, NotFound, Stopping
from organism.server.bodies import McpBody, parsed
from organism.server.call import Answer, Call, Process, Route
from organism.server.contract import Contract, Gives, gives
from organism.server.shapes.words import Object

if TYPE_CHECKING:
    from organism.server.mcp_server import McpServer


class Mcp:
    """The MCP server of one process, started by the first request."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._starting = asyncio.Lock()
        self.server: McpServer | None = None

    async def answer(self, call: Call) -> Answer:
        """Answer one request. Raises ``NotFound`` where the extra is not installed."""
        async with self._starting:
            if self.server is None:
                self.server = await self._started()
        return await self.server.answer(call)

    async def _started(self) -> McpServer:
        try:
            module = await asyncio.to_thread(import_module, "organism.server.mcp_server")
        except ImportError as error:
            raise NotFound("There is no /mcp here: it needs the extra `mcp`, pip install 'organism[mcp]'.") from error
        server: McpServer = await module.started(self._process)
        return server


async def mcp(call: Call) -> Answer:
    """A message of the Model Context Protocol (streamable HTTP, without sessions), answered as JSON.

    A notification, or an answer to the server, gets 202 without a body.
    """
    call.allow_query()
    parsed(McpBody, call.json())
    return await call.process.mcp.answer(call)


MCP: Final = Contract(
    gives=gives(Object, Gives(None, status=202)), takes=McpBody, refuses=(NotFound, NotAcceptable, Stopping)
)

ROUTES: Final = (Route("POST", "/mcp", mcp, contract=MCP),)
