"""A gate at which handlers wait: the test sees who has arrived, and lets them go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path


class Gate:
    """``arrived`` are the tags of all that came, in order; one that comes in each of two lives came twice."""

    def __init__(self) -> None:
        self.arrived: list[str] = []
        self._is_open = asyncio.Event()
        self._news = asyncio.Condition()

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A handler came: it waits until the gate is open. If its process dies, nobody is there to go on."""
        self.arrived.append((await reader.readline()).decode().strip())
        async with self._news:
            self._news.notify_all()
        await self._is_open.wait()
        writer.write(b"go on\n")
        writer.close()

    async def until_arrived(self, count: int) -> None:
        """Wait until so many have come in all."""
        async with self._news:
            await self._news.wait_for(lambda: len(self.arrived) >= count)

    def open(self) -> None:
        """Let everyone go on, those who come later too."""
        self._is_open.set()


@asynccontextmanager
async def gate(path: Path) -> AsyncIterator[Gate]:
    """A gate at the Unix socket ``path``, while it lasts."""
    made = Gate()
    async with await asyncio.start_unix_server(made.meet, path):
        yield made
        made.open()
