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
    """A test that shares a server runs in the loop in which the server lives."""
    for item in items:
        for name, scope in (("shared", "session"), ("module_server", "module")):
            if name in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.asyncio(loop_scope=scope), append=False)


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
