"""Fixtures of the kills: a stage for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from tests.faults.client import client
from tests.faults.stage import Stage


@pytest_asyncio.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    """A data directory of its own, and all that the outside does with it."""
    async with client() as api:
        yield Stage(tmp_path, api)
