"""Fixtures of the server's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.flows.world import MakeWorld, World
from tests.server.served import Served, served


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """A test with a fixture that is named ``shared…`` runs in the loop of all that is shared."""
    for item in items:
        if any(name.startswith("shared") for name in getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest.fixture
async def hello() -> AsyncIterator[Served]:
    """The hello organism, served from memory."""
    async with served() as server:
        yield server


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def shared() -> AsyncIterator[Served]:
    """The same for tests that count nothing, pause nothing and send no wrong token: one server for all of them."""
    async with served() as server:
        yield server


@pytest.fixture
def world(tmp_path: Path) -> MakeWorld:
    """Makes the files of an organism."""

    def make(source: str, listeners: dict[str, dict[str, Any]], **top: Any) -> World:
        return World(tmp_path, source, listeners, **top)

    return make
