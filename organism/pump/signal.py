"""A signal: something happened, and whoever waited for it goes on."""

from __future__ import annotations

import asyncio


class Signal:
    """Those who wait when it is fired are woken, once; nothing is kept for those who come later."""

    __slots__ = ("_waiters",)

    def __init__(self) -> None:
        self._waiters: list[asyncio.Future[None]] = []

    async def wait(self) -> None:
        """Wait for the next time that it is fired."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        await waiter

    def fire(self) -> None:
        """Wake all who wait."""
        if self._waiters:
            waiters, self._waiters = self._waiters, []
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_result(None)
