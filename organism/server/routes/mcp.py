"""``/mcp``: the tools of ``/v1/tools`` for whoever speaks the Model Context Protocol, with the same tokens."""

from __future__ import annotations

from typing import Final

from organism.errors import NotAcceptable, NotFound, Stopping
from organism.server.bodies import McpBody, parsed
from organism.server.call import Answer, Call, Route
from organism.server.contract import Contract, Gives, gives
from organism.server.shapes.words import Object


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
