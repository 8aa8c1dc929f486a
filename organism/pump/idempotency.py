"""Idempotency keys: what a key was answered in the last 24 hours, and which keys are under way (G5)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Final, TypeVar

from organism.errors import IdempotencyKeyReused, RequestInProgress
from organism.model.commands import Idempotency
from organism.views.views import Row, ViewStore

KEY_LIFE_US: Final = 24 * 3600 * 1_000_000

T = TypeVar("T")


async def recorded(views: ViewStore, once: Idempotency, now_us: int) -> Row | None:
    """The row of the answer that the key had, unless it is too old. Raises ``IdempotencyKeyReused``."""
    row = await views.private_row("answers", once.name)
    if row is None or row["at"] + KEY_LIFE_US < now_us:
        return None
    if row["digest"] != once.digest:
        raise IdempotencyKeyReused
    return row


class KeysInUse:
    """The keys whose first call is under way: a repetition that comes before its answer is refused."""

    def __init__(self) -> None:
        self._digests: dict[str, str] = {}

    async def answer(
        self,
        once: Idempotency,
        look_up: Callable[[], Awaitable[T | None]],
        act: Callable[[], Coroutine[Any, Any, T]],
    ) -> T:
        """What ``look_up`` finds, else what ``act`` gives, even if the caller leaves. Raises ``RequestInProgress``."""
        self._refuse(once)
        if (first := await look_up()) is not None:
            return first
        self._refuse(once)
        self._digests[once.name] = once.digest
        task = asyncio.create_task(act())
        task.add_done_callback(partial(self._over, once.name))
        return await asyncio.shield(task)

    def _refuse(self, once: Idempotency) -> None:
        if once.name in self._digests:
            raise RequestInProgress if self._digests[once.name] == once.digest else IdempotencyKeyReused

    def _over(self, name: str, task: asyncio.Task[Any]) -> None:
        del self._digests[name]
        if not task.cancelled():
            task.exception()  # it has been told to the caller, if there is one still
