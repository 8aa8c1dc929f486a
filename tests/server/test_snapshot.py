"""The first frame: what it shows and what follows it make up the log, with no seam, and many share one reading."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from organism.codec import Codec
from organism.errors import LogUnavailable
from organism.events.record import Record, Unit
from organism.events.vocabulary import MessageSent, OrganismStarted, ThreadCreated
from organism.log.log import EventFilter
from organism.log.sqlite import SqliteLog
from organism.server.push.filter import Filter
from organism.server.push.snapshot import AgentStates, SnapshotReader
from organism.views.read_models import READ_MODELS
from organism.views.views import Query
from tests.flows.test_hop_price import counted_bytecodes
from tests.flows.world import MakeWorld
from tests.log.engines import turn, views
from tests.server.served import HELLO, Frames, Served, served

INJECTIONS = 15
VIEWERS = 6
"""Together fewer threads than the hundred that a snapshot shows of those that have ended."""


async def watch(server: Served, joined: asyncio.Semaphore, until: asyncio.Event) -> dict[str, Any]:
    """A viewer that joins somewhere in the middle: its snapshot, and every frame from there to the end."""
    async with server.socket() as socket:
        frames = Frames(socket)
        connected = await frames.next()
        joined.release()
        await until.wait()
        answer = asyncio.ensure_future(frames_to(frames, server.log.head))
        return {**connected, "seen": await answer}


async def frames_to(frames: Frames, head: int) -> list[dict[str, Any]]:
    """The frames up to the one of the log's last event that has a frame, which is a thread's end."""
    seen: list[dict[str, Any]] = []
    while not seen or seen[-1].get("position", 0) < head:
        frame = await frames.next()
        if frame["event"] in {"message", "thread_created", "thread_updated", "checkpoint"}:
            seen.append(frame)
    return seen


async def test_a_snapshot_and_what_follows_it_are_the_log(tmp_path: Path) -> None:
    async with served(HELLO, tmp_path) as server:
        joined, done = asyncio.Semaphore(0), asyncio.Event()
        sending: list[asyncio.Future[Any]] = []
        watching = []
        for _ in range(VIEWERS):
            group = [asyncio.ensure_future(server.inject()) for _ in range(INJECTIONS)]
            await asyncio.wait(group, return_when=asyncio.FIRST_COMPLETED)
            watching.append(asyncio.ensure_future(watch(server, joined, done)))
            sending += group
        await asyncio.gather(*sending)
        for _ in watching:
            await joined.acquire()
        await server.inject()
        done.set()
        views = await asyncio.gather(*watching)
        sent = await server.log.read(wanted=EventFilter(types=(MessageSent,)), limit=100_000)
        rows = {row["id"]: row for row in (await server.get("/threads?limit=500"))["threads"]}
    assert len({view["position"] for view in views}) > 1, "the viewers joined at different moments"
    for view in views:
        messages = [frame["position"] for frame in view["seen"] if frame["event"] == "message"]
        assert messages == [record.position for record in sent if record.position > view["position"]]
        assert view["organism"]["total_messages"] == len(sent) - len(messages)
        assert counts(view) == {name: row["message_count"] for name, row in rows.items()}


def counts(view: dict[str, Any]) -> dict[str, int]:
    """How many messages each thread has after the snapshot and all that followed."""
    counted = {thread["id"]: thread["message_count"] for thread in view["threads"]}
    assert len(counted) == view["threads_total"]
    for frame in view["seen"]:
        if frame["event"] == "thread_created":
            counted[frame["thread"]["id"]] = 0
        elif frame["event"] == "message":
            counted[frame["message"]["thread_id"]] += 1
        elif frame["event"] == "thread_updated":
            assert counted[frame["thread_id"]] == frame["message_count"]
    return counted


class Readings:
    """Counts how often the organism of a log is read. Each reading waits for ``gate``, and fails while ``broken``."""

    def __init__(self, log: SqliteLog, monkeypatch: pytest.MonkeyPatch) -> None:
        rows = views(log)
        self.reader = SnapshotReader(log, rows, AgentStates(log, rows, lambda _frames: None))
        self.log = log
        self.count = 0
        self.broken = False
        self.gate = asyncio.Event()
        self._read = rows.row
        monkeypatch.setattr(rows, "row", self._row)

    async def _row(self, model: str, key: str, at: int | None = None) -> bytes | None:
        self.count += 1
        if self.broken:
            raise LogUnavailable
        found = await self._read(model, key, at)
        await self.gate.wait()
        return found

    async def begun(self) -> asyncio.Task[int]:
        """One who asks, and has begun to; gives the position that is read."""

        async def ask() -> int:
            return (await self.reader.read(Codec(), Filter())).position

        asking = asyncio.ensure_future(ask())
        for _ in range(3):
            await turn()
        return asking


@pytest.fixture
async def readings(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Readings]:
    log = await SqliteLog.in_memory(READ_MODELS)
    started = OrganismStarted("o", "1", "", (), removed=(), life=1, clean=True)
    await log.commit(Unit(None, [Record(started)], 1_000_000, {}))
    yield Readings(log, monkeypatch)
    await log.close()


async def test_those_who_come_while_one_is_read_share_the_next_reading_though_one_goes_away(readings: Readings) -> None:
    first = await readings.begun()
    before = readings.log.head
    await readings.log.commit(Unit("t", [Record(ThreadCreated())], 2_000_000, {}))
    leaves, *others = [await readings.begun() for _ in range(20)]
    leaves.cancel()
    await asyncio.wait([leaves])
    readings.gate.set()
    assert await first == before
    assert {await other for other in others} == {readings.log.head}, "nobody gets one that began before it asked"
    assert readings.count == 2


async def test_what_is_written_while_it_is_read_is_not_in_it(readings: Readings) -> None:
    reading = asyncio.ensure_future(readings.reader.read(Codec(), Filter()))
    for _ in range(3):
        await turn()
    await readings.log.commit(Unit("t", [Record(ThreadCreated())], 2_000_000, {}))
    readings.gate.set()
    shown = await reading
    assert (shown.position, shown.threads, shown.threads_total) == (readings.log.head - 1, b"[]", 0)


async def test_who_asks_after_a_reading_that_failed_gets_one(readings: Readings) -> None:
    readings.broken = True
    with pytest.raises(LogUnavailable):
        await readings.reader.read(Codec(), Filter())
    readings.broken = False
    readings.gate.set()
    assert (await readings.reader.read(Codec(), Filter())).position == readings.log.head


ECHO = """
async def echo(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse(Told(payload.text), to="console")
"""


async def test_what_has_not_changed_of_the_agents_is_not_made_again(world: MakeWorld) -> None:
    """Counted in bytecodes, which are the same on a busy machine."""
    names = [f"agent-{number}" for number in range(200)]
    play = world(ECHO, {name: {"handler": "echo", "peers": ["console"]} for name in names})
    async with play.running(on_disk=False) as o:
        log, rows = o.tenant.log, o.tenant.views
        reader = SnapshotReader(log, rows, AgentStates(log, rows, lambda _frames: None))
        costs = []
        for _ in range(2):
            done = await o.inject(names[0], {"text": "moved"})
            assert await o.tenant.ended(done.thread_id, 10)
            with counted_bytecodes() as count:
                found = await reader.read(o.tenant.pump.state.rules.codec, Filter())
            costs.append(count[0])
            assert found.agents == (await rows.rows("agents", Query(order_by="ordinal", limit=len(names)))).rows
        first, again = costs
        assert again < 0.75 * first
