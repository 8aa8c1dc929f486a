"""Fixtures of the command line's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.server.served import Served, served


@pytest.fixture
async def hello() -> AsyncIterator[Served]:
    """The hello organism, served from memory."""
    async with served() as server:
        yield server
