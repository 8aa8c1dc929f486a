"""A server with a long past, for tests that only look at it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.server.long_past import tell
from tests.server.served import Served, served


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared_past() -> AsyncIterator[Served]:
    """A server with a long past."""
    async with served() as server:
        await tell(server.log, 4_000)
        yield server
