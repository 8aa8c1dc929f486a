"""Fixtures of the kills: one nursery for all tests, a stage for each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.faults.client import client
from tests.faults.lives import Nursery, nursery
from tests.faults.stage import Stage


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def births(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Nursery]:
    """Where servers are forked."""
    async with nursery(tmp_path_factory.mktemp("nursery")) as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def stage(tmp_path: Path, births: Nursery) -> AsyncIterator[Stage]:
    """A data directory of its own, and all that the outside does with it."""
    async with client() as api:
        yield Stage(tmp_path, births, api)
