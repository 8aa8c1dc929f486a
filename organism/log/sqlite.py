"""The durable engine: SQLite in WAL mode with ``synchronous=FULL``, one writing thread, group commit.

Why it is so stands in docs/topics/commit.md.
Three threads share nothing but queues. The loop's prepares: it encodes, chains and folds, and it reads what is read
quickly. The writing thread executes one statement a commit, the reading one does all reads that take time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import orjson
import structlog

from organism.errors import CommitUnknown, Fenced, LogDamaged, LogUnavailable
from organism.log.batch import Batch, Heads, Intake
from organism.log.chain import Salts
from organism.log.connect import Connector
from organism.log.connections import Connections
from organism.log.disk import Disk
from organism.log.driver import Connection, Failure, statements
from organism.log.encode import Upcaster, decode
from organism.log.journal import Journal
from organism.log.log import EventFilter, Page, Query, ReadModel, Row, Verification
from organism.log.opening import Claimant, Clock, Options, Truth, doubt_rows, make_log
from organism.log.pages import StoredRow, newest_version, page_statement, read_page, read_row
from organism.log.place import Place
from organism.log.rebuild import are_made, greatest_keys, rebuild, unknown_tables
from organism.log.select import select_page
from organism.log.snapshots import CHECKPOINT_EVENTS, LiveRows, Snapshot, Snapshots, look_back
from organism.log.units import END, Span, Units
from organism.log.verify import verify
from organism.log.versions import RowVersions, folded_row, hold_whole, write
from organism.model.events import Event

T = TypeVar("T")
LOOK_AGAIN_SECONDS: Final = 0.1
WITHOUT_CONTENT: Final = EventFilter()
_log = structlog.get_logger("organism")


class SqliteLog(Journal):
    """One tenant's log on one machine's disk. Made by ``open``."""

    def __init__(  # noqa: PLR0913 - what ``open`` has opened
        self,
        *,
        connections: Connections,
        disk: Disk,
        snapshots: Snapshots,
        intake: Intake,
        live: LiveRows,
        truth: Truth,
        options: Options,
        models: Sequence[ReadModel],
        stack: AsyncExitStack,
    ) -> None:
        super().__init__(intake, live, truth.timeline, truth.at)
        self._connections = connections
        self._disk = disk
        self._disk.done = self._wrote
        self._snapshots = snapshots
        self._options = options
        self._models = {model.name: model for model in models}
        self._stack = stack
        self._recovering: asyncio.Task[None] | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._checkpoint = truth.position
        self._is_whole = True

    @classmethod
    async def open(
        cls, directory: Path, models: Sequence[ReadModel], clock: Clock, options: Options | None = None
    ) -> SqliteLog:
        """Open or make the log in ``directory``.

        Raises ``LogHeld`` within a second if another process has it, ``LogDamaged`` naming the position if what was
        acknowledged is not there as it was written.
        """
        options = options or Options()
        place = Place(directory, options.key_path, options.tenant)
        connector = Connector(options.driver, place)
        async with AsyncExitStack() as stack:
            stack.callback(place.release)
            place.hold(clock.now_us)
            connections = Connections(connector, options, models)
            stack.push_async_callback(connections.close)
            await connections.writer.run(make_log, connector, options)
            key = place.read_key()
            anchor = place.read_anchor(key)
            claimant, snapshots = Claimant(connector, key, anchor), Snapshots(key, anchor.timeline)
            truth = await connections.open(lambda connection: claimant.claim(connection, snapshots.newest))
            if not await connections.write(are_made, models):
                if truth.position:
                    dropped = await connections.write(unknown_tables, models)
                    _log.warning("rows_made_again", log=directory.name, events=truth.position, dropped=dropped)
                await connections.writer.run(rebuild, connections.commits, truth, options.upcaster, snapshots)
            intake = await _intake(connections, truth, options, models)
            live = await connections.reader.run(look_back, connections.units, snapshots, models, truth.position)
            disk = Disk(connections, connector, key, truth)
            return cls(
                connections=connections,
                disk=disk,
                snapshots=snapshots,
                intake=intake,
                live=live,
                truth=truth,
                options=options,
                models=models,
                stack=stack.pop_all(),
            )

    async def read(
        self,
        after: int = 0,
        until: int | None = None,
        wanted: EventFilter | None = None,
        limit: int = 500,
        *,
        reverse: bool = False,
    ) -> list[Event]:
        span = Span(after, min(self.head, END if until is None else until), limit, reverse)
        return await self._read_units(Units.read, span, wanted or WITHOUT_CONTENT)

    def follow(self, after: int, wanted: EventFilter | None = None) -> AsyncIterator[list[Event]]:
        return self._tail.follow(after, wanted, self.read)

    async def row(self, model: str, key: str, at: int | None = None) -> bytes | None:
        found = await self._row(self._models[model], key, at)
        return None if found is None else found[0]

    async def private_row(self, model: str, key: str) -> Row | None:
        found = await self._row(self._models[model], key, None)
        return None if found is None else folded_row(*found)

    async def rows(self, model: str, query: Query) -> Page:
        kind = self._models[model]
        if kind.is_live:
            return select_page(kind, (await self._live_at(query.at)).rows(kind), query)
        hold_whole(self._intake.versions.is_whole)
        statement = page_statement(kind, replace(query, at=self._bounded(query.at)), self._models)
        return await self._connections.read(read_page, statement, is_long=bool(query.text))

    async def type_spans(self, types: Sequence[str], low: int, high: int, limit: int) -> list[int]:
        return await self._read_units(Units.type_spans, types, low, high, limit)

    async def position_at(self, at_us: int) -> int:
        head = self.head
        return head if at_us >= self.last_at else await self._read_units(Units.position_at, at_us, head)

    async def content(self, position: int) -> tuple[bytes, bytes] | None:
        return await self._read_units(Units.content, position) if 0 < position <= self.head else None

    async def contents(self, digests: Mapping[int, str]) -> dict[int, tuple[bytes, bytes]]:
        return await self._read_units(Units.contents, digests)

    async def fold(self, after: int, apply: Callable[[Event], object]) -> None:
        upcaster = self._options.upcaster
        async for rows in self._portions(after):
            for _, body in rows:
                for event in decode(orjson.loads(body), upcaster):
                    if event.position > after:
                        apply(event)

    async def save_snapshot(self, name: str, position: int, body: bytes) -> None:
        redactor = self._intake.redactor
        snapshot = Snapshot(name, position, body if redactor is None else redactor.kept(body))
        await self._connections.write(self._snapshots.save, snapshot)

    async def load_snapshot(self, name: str) -> tuple[int, bytes] | None:
        found = await self._connections.read(self._snapshots.load, name, self.head)
        return None if found is None else (found.position, found.body)

    async def verify(self, after: int = 0) -> Verification:
        return await self._connections.read_apart(verify, self._disk.key, after, self._disk.head)

    async def close(self) -> None:
        """Write what is queued, anchor the head, release the place, which is done whatever fails before it."""
        if self._tail.is_closed:
            return
        async with self._stack:
            await self._drain()
            if self._recovering is not None:
                self._recovering.cancel()
                await asyncio.wait([self._recovering])
            self._keep_checkpoint(least_events=1)
            self._tail.close()
            self._disk.close()

    async def _read_units(self, work: Callable[..., T], *arguments: Any) -> T:
        connections = self._connections
        return await connections.reader.run(work, connections.units, *arguments)

    async def _row(self, model: ReadModel, key: str, at: int | None) -> StoredRow | None:
        if model.is_live:
            row = (await self._live_at(at)).row(model, key)
            return None if row is None else write(model, row)[:2]
        hold_whole(self._intake.versions.is_whole)
        return await self._connections.read(read_row, model, key, self._bounded(at))

    def _bounded(self, at: int | None) -> int:
        """The position, or the log's last one: a commit that is not told yet is not shown either."""
        return self.head if at is None else min(at, self.head)

    async def _live_at(self, at: int | None) -> LiveRows:
        """The live rows as they stand, or stood at a position."""
        return self._live if at is None or at >= self.head else await self._look_back(at)

    async def _look_back(self, position: int) -> LiveRows:
        connections, models = self._connections, list(self._models.values())
        return await connections.reader.run(look_back, connections.units, self._snapshots, models, position)

    async def _portions(self, after: int) -> AsyncIterator[list[tuple[int, bytes]]]:
        """The units from the one that holds ``after`` + 1; the next ones are read while these are folded."""
        reader, units, head = self._connections.reader, self._connections.units, self.head
        begin = await reader.run(units.begin_of, after + 1)
        portion = reader.submit(units.raw, begin - 1, head)
        while rows := await portion:
            portion = reader.submit(units.raw, rows[-1][0], head)
            yield rows

    def _write(self, batch: Batch) -> None:
        """Begin to write the batch; ``_wrote`` is called in the loop's thread once it is known how it went."""
        if self._is_whole and not self._intake.versions.is_whole:
            self._is_whole = False
            self._connections.post(doubt_rows)
        self._alarm = self._loop.call_later(self._options.stalled_after_s, self._suspect)
        self._disk.write(batch)

    def _suspect(self) -> None:
        """The commit seems to have stalled. It may be the loop that stood still: then the end of it is told first."""
        self._alarm = self._loop.call_later(LOOK_AGAIN_SECONDS, self._stall)

    def _wrote(self, batch: Batch, error: Exception | None) -> None:
        """The batch is on the disk, or that is unknown: then the disk is read again."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._is_stalled = False
        if error is None:
            self._committed(batch)
            self._keep_checkpoint()
        elif self._disk.failure(error) is Failure.FENCED:
            self._refuse(Fenced, batch, Fenced())
        else:
            said = self._disk.describe(error)
            unknown = CommitUnknown(f"{CommitUnknown()} The disk said: {said}.")
            unknown.__cause__ = error
            self._refuse(partial(LogUnavailable, f"The log takes no writes now: {said}."), batch, unknown)
            if self._recovering is None or self._recovering.done():  # a checkpoint may fail with the commit beside it
                self._recovering = self._loop.create_task(self._recover(error))

    def _keep_checkpoint(self, least_events: int = CHECKPOINT_EVENTS) -> None:
        """Keep the live rows now and then. One that cannot be written only makes a look into the past longer."""
        live = self._live
        if live.is_whole and live.position >= self._checkpoint + least_events:
            self._checkpoint = live.position
            self._connections.post(partial(self._snapshots.save, keeps_all=True), live.checkpoint())

    async def _recover(self, error: Exception) -> None:
        """Wait until the disk can be written again, take in what turned out to be written, go on."""
        while True:
            try:
                truth = await self._disk.regain(error)
                self._live = await self._look_back(truth.position)
            except LogUnavailable as again:
                error = again
                continue
            except (Fenced, LogDamaged) as final:
                self._refusal = partial(type(final), self._disk.describe(final))
                return
            self._admit(truth.position, truth.at)
            return


async def _intake(connections: Connections, truth: Truth, options: Options, models: Sequence[ReadModel]) -> Intake:
    """What takes units in after ``truth``: it looks up what it does not remember."""
    heads = Heads(partial(connections.read_now, _head_of, options.upcaster))
    versions = RowVersions(models, partial(connections.read_now, newest_version))
    heads.committed = versions.committed = truth.position
    heads.greatest = await connections.write(_greatest_stream)
    for name, greatest in (await connections.write(greatest_keys, models)).items():
        versions.current[name].greatest = greatest
    return Intake(heads, versions, Salts(options.random_bytes), truth.position)


def _head_of(connection: Connection, upcaster: Upcaster, stream: str) -> int:
    return Units(upcaster, connection).head_of(stream)


def _greatest_stream(connection: Connection) -> str:
    found = connection.execute(statements("log.sql")["greatest_stream"]).fetchone()
    return (found[0] if found else None) or ""
