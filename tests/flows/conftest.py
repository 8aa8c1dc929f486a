"""Fixtures of the flows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.flows.world import MakeWorld, World


@pytest.fixture
def world(tmp_path: Path) -> MakeWorld:
    """Makes the files of an organism."""

    def make(source: str, listeners: dict[str, dict[str, Any]], **top: Any) -> World:
        return World(tmp_path, source, listeners, **top)

    return make
