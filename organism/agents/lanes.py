"""Lanes: how many calls of one model run at once. Whoever finds none free waits, first come first served."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Lanes:
    """So many lanes; with ``count`` 0 there is one for everybody."""

    __slots__ = ("_taken", "_waiting", "count")

    def __init__(self, count: int) -> None:
        self.count = count
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def resize(self, count: int) -> None:
        """So many from now on; what runs beyond that runs to its end."""
        self.count = count
        self._let_in()

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Hold a lane. Who is cancelled while it waits gives its turn to the next."""
        if not self._has_room() or self._waiting:
            await self._turn()
        else:
            self._taken += 1
        try:
            yield
        finally:
            self._leave()

    async def _turn(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # its turn came in the same moment
                self._leave()
            raise

    def _leave(self) -> None:
        self._taken -= 1
        self._let_in()

    def _has_room(self) -> bool:
        return self.count == 0 or self._taken < self.count

    def _let_in(self) -> None:
        while self._waiting and self._has_room():
            turn = self._waiting.popleft()
            if not turn.done():
                self._taken += 1
                turn.set_result(None)
