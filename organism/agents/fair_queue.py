"""A fair queue before something that works for one at a time: tenants take turns, however much each of them asks."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from organism.errors import RateLimitExceeded

AGAIN_SECONDS = 5


class FairQueue:
    """At most ``most_bytes`` of each tenant's texts wait. A caller that is cancelled while it waits takes no turn."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # the tenant whose turn is next comes first
        self._is_taken = False

    @contextmanager
    def room(self, tenant: str, size: int) -> Iterator[None]:
        """Count ``size`` bytes as waiting within the block. Raises ``RateLimitExceeded`` if too many wait already."""
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
        """Wait for the tenant's turn, which lasts for the block."""
        if self._is_taken:
            await self._wait(tenant)
        self._is_taken = True
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, tenant: str) -> None:
        came: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, deque()).append(came)
        try:
            await came
        except asyncio.CancelledError:
            if not came.cancelled():  # its turn came just before the cancellation
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
