"""Fixtures of the gateway's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from organism.config.settings import Model
from organism.pump.rules import Rules
from tests.agents.desk import Desk, model, says
from tests.pump.purse import rules_of


@pytest.fixture(scope="session")
def agents() -> Iterator[Rules]:
    """The rules of two agents and a tool."""
    with TemporaryDirectory() as folder:
        listeners: dict[str, dict[str, Any]] = {"ada": {"agent": True}, "bob": {"agent": True}, "tool": {}}
        retry = {"attempts": 3, "base_delay_s": 1, "max_delay_s": 3}
        yield rules_of(Path(folder), listeners, limits={"max_tokens_per_thread": 100_000}, retry=retry)


@pytest.fixture
def desk(agents: Rules) -> Callable[..., Any]:
    """Opens a gateway with one model ``m``, or with these."""

    async def opened(*answers: Any, models: Any = None, of: Model | None = None, **terms: Any) -> Desk:
        served = models or {"m": (of or model(), list(answers or [says()]))}
        return await Desk(agents, served, **terms).open()

    return opened
