"""The event loop, one turn at a time."""

from __future__ import annotations

import asyncio


async def turn() -> None:
    """Let all that is ready run once."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[None] = loop.create_future()
    loop.call_soon(over.set_result, None)
    await over
