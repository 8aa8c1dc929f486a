"""Who waits for what is decided waits for that alone, and does not starve while others go on (G7)."""

from __future__ import annotations

import asyncio

from organism.bootstrap import Parts
from organism.testing import Outcome, Running
from tests.flows.disk import Disk
from tests.flows.stage import decided
from tests.flows.world import MakeWorld

SOURCE = "async def quick(payload: Ask, metadata: HandlerMetadata):\n    return None\n"
ENOUGH = 400


async def test_what_was_decided_later_is_not_waited_for(world: MakeWorld) -> None:
    disk = Disk()
    async with world(SOURCE, {"quick": {}}).running(parts=Parts(driver=disk)) as o:
        disk.hold()
        first = asyncio.create_task(o.inject("quick", {"text": "1"}))
        await decided(o)
        waiting = asyncio.create_task(o.pump.settled())
        later = asyncio.create_task(o.inject("quick", {"text": "2"}))
        while o.pump.runtime.pending < 2:
            await asyncio.wait([later], timeout=0.001)
        disk.let_one()
        await first
        await asyncio.wait_for(waiting, 5)
        assert not later.done()
        disk.release()
        await later


async def busily(o: Running, waiting: asyncio.Task[None]) -> int:
    """Keep eight injections on their way to the disk until the waiting one is done; gives how many were made."""
    under_way: set[asyncio.Task[Outcome]] = set()
    made = 0
    while not waiting.done() and made < ENOUGH:
        while len(under_way) < 8:
            under_way.add(asyncio.create_task(o.inject("quick", {"text": "x"})))
            made += 1
        _, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
    await asyncio.gather(*under_way)
    return made


async def test_waiting_for_the_disk_ends_though_there_is_always_something_on_its_way(world: MakeWorld) -> None:
    async with world(SOURCE, {"quick": {}}).running() as o:
        begun = asyncio.create_task(o.inject("quick", {"text": "x"}))
        waiting = asyncio.create_task(o.pump.settled())
        injected = await busily(o, waiting)
        await asyncio.gather(begun, waiting)
    assert injected < ENOUGH
