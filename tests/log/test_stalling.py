"""A disk that stops answering is noticed, and what waits for it is written once it answers."""

from __future__ import annotations

import asyncio
from pathlib import Path

from organism.log.sqlite import Options, SqliteLog
from tests.flows.disk import Disk
from tests.log.engines import MODELS, FixedClock, created, sent, unit


async def test_a_log_whose_commit_does_not_end_is_not_available_until_it_has_and_loses_nothing(tmp_path: Path) -> None:
    disk = Disk()
    options = Options(driver=disk, stalled_after_s=0.01)
    log = await SqliteLog.open(tmp_path / "log", FixedClock(), MODELS, options)
    stalled = asyncio.Event()
    log.on_stalled = stalled.set
    disk.hold()
    held = asyncio.create_task(log.commit(unit("thr-1", created())))
    await stalled.wait()
    was_available = log.available
    later = asyncio.create_task(log.commit(unit("thr-2", created(), sent("msg-1"))))
    assert await log.read() == []
    disk.release()
    assert (await held, await later) == (1, 3)
    assert (was_available, log.available) == (False, True)
    assert [record.position for record in await log.read()] == [1, 2, 3]
    assert (await log.verify()).damage == ()
    await log.close()
