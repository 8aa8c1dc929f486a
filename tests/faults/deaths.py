"""Lives that die at a named point of the product's code."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable
from typing import Final

from tests.faults.lives import Life
from tests.faults.stage import Stage

REACH_SECONDS: Final = 30.0
WISHES: Final = 10_000
"""More than any life lasts for: what a machine does in groups or by time comes as often as it shall."""


async def die_at(stage: Stage, point: str) -> None:
    """A life under load that dies at ``point`` (``name:nth``). Raises ``AssertionError`` if it never gets there."""
    life = await stage.births.bear(stage.setting.dying_at(point))
    url = await life.url()
    await _dead(life, point, stage.load(url, WISHES) if url is not None else life.end())


async def die_stopping_at(stage: Stage, point: str, wishes: int = 20) -> None:
    """A life with some work behind it that is stopped, and dies at ``point`` of that."""
    life = await stage.births.bear(stage.setting.dying_at(point))
    stage.api.url = await life.serving()
    await stage.wishes.send_many(wishes, stage.api)
    await _dead(life, point, life.stop())


async def _dead(life: Life, point: str, work: Awaitable[object]) -> None:
    try:
        async with asyncio.timeout(REACH_SECONDS):
            await work
    except TimeoutError:
        life.kill()
        raise AssertionError(f"The server never came to {point}.") from None
    status = await life.end()
    assert status == -signal.SIGKILL, f"It was to die at {point}, and ended with {status}: {life.said}"
