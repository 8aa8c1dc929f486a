"""How long one call waits, for each thing and in all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any, Final

from organism.agents.providers.wire.access import Waits
from organism.agents.providers.wire.faults import Faults, Refused
from organism.agents.providers.wire.transport import (
    NotConnected,
    Sender,
    Unread,
    failures,
    is_connect_failure,
    is_connect_timeout,
    is_undecodable,
)

DRAIN_S: Final = 0.1
"""So long the end of a whole answer is waited for, so that its connection can serve the next call."""


class Patience:
    """The clock of a call: it begins where this is made."""

    def __init__(self, whole_s: float, waits: Waits, faults: Faults) -> None:
        self._loop = asyncio.get_running_loop()
        self._whole_s = whole_s
        self._waits = waits
        self._faults = faults
        began = self._loop.time()
        self._end = began + whole_s
        self._first_by = began + waits.first_share * whole_s
        self._is_silent = True
        self._limit = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._waiting: asyncio.Task[Any] | None = None
        self._is_late = False

    async def begin(self, sender: Sender, path: str, body: bytes) -> Unread:
        """The head of the answer. Raises ``Refused`` and ``ProviderError``."""
        connect_s = min(self._waits.connect_s, self._whole_s)
        limit, failing = self._until()
        try:
            async with asyncio.timeout_at(limit):
                return await sender.post(path, body, connect_s)
        except TimeoutError:
            raise self._faults.late(*failing) from None
        except Refused:
            raise
        except failures() as error:
            raise self._unbegun(error, connect_s) from None
        except sender.errors as error:
            raise self._unbegun(error.__cause__ or error, connect_s) from None

    async def next(self, chunks: AsyncGenerator[bytes], *, is_finished: bool) -> bytes | None:
        """The next bytes, or None at the end. Raises ``ProviderError``, unless the model has finished."""
        limit, failing = self._until()
        if is_finished:
            limit = min(limit, self._loop.time() + self._waits.end_s)
        try:
            chunk = await self._wait(chunks, limit)
        except StopAsyncIteration:
            return None
        except TimeoutError:
            missing = self._faults.late(*failing)
        except failures() as error:
            packed = is_undecodable(error)
            missing = self._faults.malformed("what cannot be unpacked") if packed else self._faults.cut()
        else:
            self._is_silent = False
            return chunk
        if is_finished:
            return None
        raise missing

    async def _wait(self, chunks: AsyncGenerator[bytes], limit: float) -> bytes:
        """The next bytes; raises ``TimeoutError`` at the limit.

        As ``asyncio.timeout_at``, which makes a timer for each of them; here one goes on, and is set anew as it rings.
        """
        self._limit = limit
        if self._timer is None or limit < self._timer.when():
            self.rest()
            self._timer = self._loop.call_at(limit, self._ring)
        task = self._waiting = asyncio.current_task()
        before = task.cancelling() if task is not None else 0
        try:
            return await anext(chunks)
        except asyncio.CancelledError:
            if self._is_late and task is not None and task.uncancel() <= before:
                raise TimeoutError from None
            raise
        finally:
            self._waiting = None

    def _ring(self) -> None:
        self._timer = None
        if self._waiting is None:
            return
        if self._loop.time() < self._limit:
            self._timer = self._loop.call_at(self._limit, self._ring)
        else:
            self._is_late = True
            self._waiting.cancel()

    def rest(self) -> None:
        """Nothing is waited for any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def drain(self, chunks: AsyncGenerator[bytes]) -> None:
        """Read to the end, if that comes at once."""
        with suppress(TimeoutError, *failures()):
            async with asyncio.timeout(DRAIN_S):
                async for _ in chunks:
                    pass

    def _unbegun(self, cause: BaseException, connect_s: float) -> Exception:
        """What it means that there was no answer, whether an SDK had wrapped what came or not."""
        if isinstance(cause, Refused):
            return cause
        if is_connect_timeout(cause):
            return self._faults.late("could not be connected to", connect_s)
        if not is_connect_failure(cause):
            return self._faults.hung_up()
        return self._faults.unreachable(cause.cause if isinstance(cause, NotConnected) else cause)

    def _until(self) -> tuple[float, tuple[str, float]]:
        """Until when the next bytes are waited for; what the server failed to do if none come, and within how long."""
        if self._is_silent:
            limit, what, share = self._first_by, "did not begin to answer", self._waits.first_share
        else:
            share = self._waits.next_share
            limit, what = self._loop.time() + share * self._whole_s, "did not go on"
        if limit < self._end:
            return limit, (what, share * self._whole_s)
        return self._end, ("did not end its answer", self._whole_s)
