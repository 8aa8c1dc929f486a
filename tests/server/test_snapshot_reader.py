"""How everything stands, read for many at once (the first frame)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from organism.errors import LogUnavailable
from organism.log.memory import MemoryLog
from organism.model.events import Event, Unit
from organism.projections import READ_MODELS
from organism.server.snapshot import AgentStates, SnapshotReader
from tests.log.engines import turn

CROWD = 20


class Readings:
    """Counts how often the organism of a log is read. Each reading waits for ``gate``, and fails while ``broken``."""

    def __init__(self, log: MemoryLog) -> None:
        self.count = 0
        self.broken = False
        self.gate = asyncio.Event()
        self.gate.set()
        self._read = log.row

    async def row(self, model: str, key: str) -> bytes | None:
        self.count += 1
        if self.broken:
            raise LogUnavailable
        said = await self._read(model, key)
        await self.gate.wait()
        return said


@pytest.fixture
async def log() -> AsyncIterator[MemoryLog]:
    opened = await MemoryLog.open(READ_MODELS)
    started = {"name": "o", "version": "1", "listeners": [], "life": 1, "clean": True}
    await opened.commit(Unit(None, [Event("organism_started", started)], 1_000_000, {}))
    yield opened
    await opened.close()


@pytest.fixture
def readings(log: MemoryLog, monkeypatch: pytest.MonkeyPatch) -> Readings:
    counted = Readings(log)
    monkeypatch.setattr(log, "row", counted.row)
    return counted


@pytest.fixture
def reader(log: MemoryLog) -> SnapshotReader:
    return SnapshotReader(log, AgentStates(log, lambda _frames, _version: None))


async def begun(reader: SnapshotReader) -> asyncio.Task[int]:
    """One who asks, and has begun to; gives the position that is read."""

    async def ask() -> int:
        return (await reader.read()).position

    asking = asyncio.ensure_future(ask())
    for _ in range(3):
        await turn()
    return asking


async def test_those_who_come_while_one_is_read_share_the_next_reading(
    reader: SnapshotReader, readings: Readings
) -> None:
    readings.gate.clear()
    first = await begun(reader)
    others = [await begun(reader) for _ in range(CROWD)]
    readings.gate.set()
    await asyncio.gather(first, *others)
    assert readings.count == 2


async def test_nobody_gets_a_reading_that_began_before_it_asked(
    reader: SnapshotReader, readings: Readings, log: MemoryLog
) -> None:
    readings.gate.clear()
    first = await begun(reader)
    before = log.head
    await log.commit(Unit("t", [Event("thread_created", {})], 2_000_000, {}))
    second = await begun(reader)
    readings.gate.set()
    assert (await first, await second) == (before, log.head)


async def test_one_who_goes_away_does_not_take_the_reading_from_the_others(
    reader: SnapshotReader, readings: Readings, log: MemoryLog
) -> None:
    readings.gate.clear()
    leaves, stays = await begun(reader), await begun(reader)
    leaves.cancel()
    await asyncio.wait([leaves])
    readings.gate.set()
    assert await stays == log.head


async def test_who_asks_after_a_reading_that_failed_gets_one(
    reader: SnapshotReader, readings: Readings, log: MemoryLog
) -> None:
    readings.broken = True
    with pytest.raises(LogUnavailable):
        await reader.read()
    readings.broken = False
    assert (await reader.read()).position == log.head
