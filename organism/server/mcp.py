"""``/mcp``: the organism as an MCP server. It takes the extra ``mcp``, which is imported when somebody first asks."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Final, Protocol

from organism.errors import NotFound
from organism.server.call import Answer, Call, Process

_DOOR: Final = "organism.server.mcp_door"
"""Named, not imported: it takes a second and an extra."""


class Door(Protocol):
    """See ``mcp_door.McpDoor``."""

    async def answer(self, call: Call) -> Answer:
        """Answer one request of the protocol."""


class Mcp:
    """The door of one process, made for the first who comes."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._door: Door | None = None
        self._making = asyncio.Lock()

    async def answer(self, call: Call) -> Answer:
        """Answer one request. Raises ``NotFound`` where the extra is not installed."""
        async with self._making:
            if self._door is None:
                self._door = await self._made()
        return await self._door.answer(call)

    async def _made(self) -> Door:
        try:
            module = await asyncio.to_thread(import_module, _DOOR)
        except ImportError as error:
            raise NotFound("There is no /mcp here: it needs the extra `mcp`, pip install 'organism[mcp]'.") from error
        door: Door = await module.opened(self._process)
        return door
