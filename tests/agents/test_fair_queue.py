"""The queue before the built-in model: tenants come one after the other, however much each of them asks."""

from __future__ import annotations

import asyncio

import pytest

from organism.agents.fair_queue import FairQueue
from organism.errors import RateLimitExceeded


class Work:
    """Each turn is noted, and lasts until it is ended."""

    def __init__(self, queue: FairQueue) -> None:
        self._queue = queue
        self.order: list[str] = []
        self._end = asyncio.Event()

    def asks(self, tenant: str, name: str = "") -> asyncio.Task[None]:
        return asyncio.ensure_future(self._turn(tenant, name or tenant))

    async def _turn(self, tenant: str, name: str) -> None:
        async with self._queue.turn(tenant):
            self.order.append(name)
            await self._end.wait()

    def end(self) -> None:
        self._end.set()


async def begun(*tasks: asyncio.Task[None]) -> None:
    """Let them come as far as they can."""
    await asyncio.wait(tasks, timeout=0)


async def test_a_tenant_with_one_text_waits_for_one_turn_of_a_tenant_with_many() -> None:
    work = Work(FairQueue(100))
    tasks = [work.asks("many", f"many {number}") for number in range(5)]
    await begun(*tasks)
    tasks += [work.asks("one"), work.asks("two")]
    await begun(*tasks)
    work.end()
    await asyncio.gather(*tasks)
    assert work.order == ["many 0", "many 1", "one", "two", "many 2", "many 3", "many 4"]


async def test_who_is_gone_takes_no_turn_and_loses_none() -> None:
    work = Work(FairQueue(100))
    first, gone, last = work.asks("a"), work.asks("b", "gone"), work.asks("b", "last")
    await begun(first, gone, last)
    gone.cancel()
    work.end()
    await asyncio.wait([first, gone, last])
    assert work.order == ["a", "last"]


async def test_a_turn_that_comes_to_who_is_gone_at_that_moment_is_passed_on() -> None:
    work = Work(FairQueue(100))
    first, gone, last = work.asks("a"), work.asks("b", "gone"), work.asks("c")
    await begun(first, gone, last)
    work.end()
    await first
    gone.cancel()  # its turn has come, and it does not know yet
    await asyncio.wait([gone, last])
    assert work.order[-1] == "c"


async def test_a_tenants_waiting_bytes_are_bounded_and_no_other_tenants() -> None:
    queue = FairQueue(100)
    with queue.room("a", 500):  # the only one is taken whatever its size
        with pytest.raises(RateLimitExceeded), queue.room("a", 1):
            pass
        with queue.room("b", 60), queue.room("b", 40), pytest.raises(RateLimitExceeded), queue.room("b", 1):
            pass
    with queue.room("a", 100):
        pass
