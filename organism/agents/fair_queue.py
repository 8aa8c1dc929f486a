"""Turns at something that works for one at a time: tenants come one after the other, however much each of them asks."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from organism.errors import RateLimitExceeded

AGAIN_SECONDS = 5


class Turns:
    """Of each tenant at most so many bytes of texts wait. Who stops waiting (is cancelled) takes no turn."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # the tenant whose turn comes next stands first
        self._is_taken = False

    @contextmanager
    def room(self, tenant: str, size: int) -> Iterator[None]:
        """Meanwhile so many bytes wait. Raises ``RateLimitExceeded`` if too many of the tenant's wait already."""
        waiting = self._bytes[tenant]
        if waiting and waiting + size > self._most_bytes:
            raise RateLimitExceeded(
                f"{waiting} bytes of texts wait for the embedding model, and {size} more came; at most "
                f"{self._most_bytes} of a tenant wait.",
                retry_after_s=AGAIN_SECONDS,
            )
        self._bytes[tenant] += size
        try:
            yield
        finally:
            self._bytes[tenant] -= size
            if not self._bytes[tenant]:
                del self._bytes[tenant]

    @asynccontextmanager
    async def turn(self, tenant: str) -> AsyncIterator[None]:
        """One turn, once it has come."""
        if self._is_taken:
            await self._come(tenant)
        self._is_taken = True
        try:
            yield
        finally:
            self._pass_on()

    async def _come(self, tenant: str) -> None:
        came: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, deque()).append(came)
        try:
            await came
        except asyncio.CancelledError:
            if not came.cancelled():  # it came at this moment
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        self._is_taken = False
        while self._waiting and not self._is_taken:
            tenant = next(iter(self._waiting))
            waiting = self._waiting.pop(tenant)
            while waiting and not self._is_taken:
                came = waiting.popleft()
                if not came.cancelled():
                    self._is_taken = True
                    came.set_result(None)
            if waiting:
                self._waiting[tenant] = waiting
