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
        self._is_open = False
        self._let: set[str] = set()
        self._news = asyncio.Condition()

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A handler came: it waits until the gate is open. If its process dies, nobody is there to go on."""
        tag = (await reader.readline()).decode().strip()
        async with self._news:
            self.arrived.append(tag)
            self._news.notify_all()
            await self._news.wait_for(lambda: self._is_open or tag in self._let)
        writer.write(b"go on\n")
        writer.close()

    async def until_arrived(self, count: int) -> None:
        """Wait until so many have come in all."""
        async with self._news:
            await self._news.wait_for(lambda: len(self.arrived) >= count)

    async def until_met(self, tag: str, times: int) -> None:
        """Wait until one with this tag has come so many times."""
        async with self._news:
            await self._news.wait_for(lambda: self.arrived.count(tag) >= times)

    async def let(self, tag: str) -> None:
        """Let those with this tag go on, from now on."""
        async with self._news:
            self._let.add(tag)
            self._news.notify_all()

    async def open(self) -> None:
        """Let everyone go on, those who come later too."""
        async with self._news:
            self._is_open = True
            self._news.notify_all()


@asynccontextmanager
async def gate(path: Path) -> AsyncIterator[Gate]:
    """A gate at the Unix socket ``path``, while it lasts."""
    made = Gate()
    async with await asyncio.start_unix_server(made.meet, path):
        yield made
        await made.open()
