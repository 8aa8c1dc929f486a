"""Fixtures of the server's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.flows.world import MakeWorld, World
from tests.server.served import Served, served


@pytest.fixture
async def hello() -> AsyncIterator[Served]:
    """The hello organism, served from memory."""
    async with served() as server:
        yield server


@pytest.fixture
def world(tmp_path: Path) -> MakeWorld:
    """Makes the files of an organism."""

    def make(source: str, listeners: dict[str, dict[str, Any]], **top: Any) -> World:
        return World(tmp_path, source, listeners, **top)

    return make
