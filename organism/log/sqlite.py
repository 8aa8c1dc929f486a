"""The engine: SQLite in WAL mode with ``synchronous=FULL``, one writing thread, group commit; or the same in memory.

Why it is so stands in docs/topics/commit.md.
Three threads share nothing but queues. The loop's prepares: it encodes, chains and folds, and it reads what is read
quickly. The writing thread executes one statement a commit, the reading one does all reads that take time.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import structlog

from organism.errors import CommitUnknown, Fenced, LogDamaged, LogUnavailable, OrganismError
from organism.events.record import Record, Unit
from organism.events.stored import decode_unit
from organism.events.vocabulary import Event
from organism.log.batch import Batch, Heads, Intake
from organism.log.disk import Disk, Memory, Truth
from organism.log.driver import Connection, Failure, Pysqlite, statements
from organism.log.encode import RandomBytes, Salts
from organism.log.log import EventFilter, Page, Query, ReadModel, Row, Verification
from organism.log.pages import StoredRow, live_page, newest_version, page_statement, read_page, read_row
from organism.log.place import Place
from organism.log.rebuild import are_made, greatest_keys, rebuild, unknown_tables
from organism.log.snapshots import CHECKPOINT_EVENTS, LiveRows, Snapshot, Snapshots, look_back
from organism.log.tail import Tail
from organism.log.units import END, Span, Units
from organism.log.verify import verify
from organism.log.versions import RowVersions, folded_row, hold_whole, write
from organism.model.ids import DEFAULT_TENANT
from organism.model.redact import Redactor

T = TypeVar("T")
Refusal = Callable[[], OrganismError]  # Makes the error that a refused unit gets
EARLY_UNITS: Final = 32
"""So many units do not wait for the end of the loop's iteration: the disk works on them while the rest is made."""
LOOK_AGAIN_SECONDS: Final = 0.1
WITHOUT_CONTENT: Final = EventFilter()
_SQL: Final = statements("log.sql")
_log = structlog.get_logger("organism")


class Clock(Protocol):
    """The log's time."""

    def now_us(self) -> int:
        """UTC in microseconds since 1970."""


@dataclass(frozen=True, slots=True)
class Options:
    """What is given to a log but its models: where its key lies, where chance comes from, what it stands on.

    ``tenant`` is the name of the directory that the tenant's log has in a data directory; the chain is bound to it. A
    commit that is under way for ``stalled_after_s`` has stalled.
    """

    key_path: Path | None = None
    tenant: str = DEFAULT_TENANT
    random_bytes: RandomBytes = os.urandom
    driver: Pysqlite = field(default_factory=Pysqlite)
    stalled_after_s: float = 5.0


class SqliteLog:
    """One tenant's log. Made by ``open`` on a machine's disk, by ``in_memory`` without one.

    A commit begins at the end of the loop's iteration after the one in which the first unit was appended, so that it
    has what follows from that at once, or as soon as the one before it has ended; it takes all that was appended until
    then. A commit that takes too long makes the log unavailable until it has ended; what waits for it goes on waiting.
    """

    def __init__(  # noqa: PLR0913 - what ``open`` has opened
        self,
        *,
        store: Disk | Memory,
        truth: Truth,
        intake: Intake,
        live: LiveRows,
        models: Sequence[ReadModel],
        options: Options,
    ) -> None:
        self.on_lost: Callable[[int], None] | None = None
        self.on_stalled: Callable[[], None] | None = None
        self._loop = asyncio.get_running_loop()
        self._intake = intake
        self._live = live
        self._tail = Tail(intake.last)
        self.timeline = truth.head.timeline
        self.last_at = truth.at
        self._refusal: Refusal | None = None
        self._is_due = False
        self._is_writing = False
        self._is_stalled = False
        self._drained: asyncio.Future[None] | None = None
        self._store = store
        self._store.done = self._wrote
        self._snapshots = Snapshots(store.key, truth.head.timeline)
        self._options = options
        self._models = {model.name: model for model in models}
        self._recovering: asyncio.Task[None] | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._checkpoint = truth.head.position
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
        place = Place(directory, options.key_path, options.tenant, options.driver)
        async with AsyncExitStack() as stack:
            stack.callback(place.release)
            place.hold(clock.now_us)
            disk = Disk(place, models)
            stack.push_async_callback(disk.close)
            truth = await disk.open(options.random_bytes)
            log = await cls._over(disk, truth, models, options)
            stack.pop_all()
        return log

    @classmethod
    async def in_memory(cls, models: Sequence[ReadModel] = (), options: Options | None = None) -> SqliteLog:
        """A new log that is gone with its process."""
        options = options or Options()
        memory = Memory(models, options.random_bytes)
        return await cls._over(memory, memory.truth, models, options)

    @classmethod
    async def _over(
        cls, store: Disk | Memory, truth: Truth, models: Sequence[ReadModel], options: Options
    ) -> SqliteLog:
        """The log over these tables. Its rows are made again if they were not made by these models."""
        position, snapshots = truth.head.position, Snapshots(store.key, truth.head.timeline)
        if not await store.write(are_made, models):
            if position:
                dropped = await store.write(unknown_tables, models)
                _log.warning("rows_made_again", log=store.name, events=position, dropped=dropped)
            await store.write(rebuild, store.commits, truth.head, snapshots)
        heads = Heads(partial(store.read_now, _head_of))
        versions = RowVersions(models, partial(store.read_now, newest_version))
        heads.committed = versions.committed = position
        heads.greatest = await store.write(_greatest_stream)
        for name, greatest in (await store.write(greatest_keys, models)).items():
            versions.current[name].greatest = greatest
        intake = Intake(heads, versions, Salts(options.random_bytes), position)
        live = await store.read(look_back, snapshots, models, position)
        return cls(store=store, truth=truth, intake=intake, live=live, models=models, options=options)

    @property
    def head(self) -> int:
        return self._tail.head

    @property
    def available(self) -> bool:
        return self._refusal is None and not self._is_stalled

    def conceal(self, redactor: Redactor) -> None:
        self._intake.redactor = redactor

    def append(self, unit: Unit) -> None:
        if self._refusal is not None:
            raise self._refusal()
        self._intake.take(unit)
        if not self._is_writing:
            if not self._is_due:
                self._is_due = True
                self._loop.call_soon(self._loop.call_soon, self._begin)
            elif len(self._intake.batch.units) >= EARLY_UNITS:
                self._begin()

    async def commit(self, unit: Unit) -> int:
        outcome: asyncio.Future[int] = self._loop.create_future()

        def tell(done: Unit, error: Exception | None) -> None:
            if outcome.cancelled():
                return
            if error is None:
                outcome.set_result(done.last)
            else:
                outcome.set_exception(error)

        unit.then = tell
        self.append(unit)
        return await outcome

    async def read(
        self,
        after: int = 0,
        until: int | None = None,
        wanted: EventFilter | None = None,
        limit: int = 500,
        *,
        reverse: bool = False,
    ) -> list[Record[Event]]:
        span = Span(after, min(self.head, END if until is None else until), limit, reverse)
        return await self._read_units(Units.read, span, wanted or WITHOUT_CONTENT)

    def follow(self, after: int, wanted: EventFilter | None = None) -> AsyncIterator[list[Record[Event]]]:
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
            return live_page(kind, (await self._live_at(query.at)).rows(kind), query)
        hold_whole(self._intake.versions.is_whole)
        statement = page_statement(kind, replace(query, at=self._bounded(query.at)), self._models)
        read = self._store.read if query.text else self._store.read_quickly
        return await read(read_page, statement)

    async def type_spans(self, types: Sequence[type[Event]], low: int, high: int, limit: int) -> list[int]:
        return await self._read_units(Units.type_spans, types, low, high, limit)

    async def position_at(self, at_us: int) -> int:
        head = self.head
        return head if at_us >= self.last_at else await self._read_units(Units.position_at, at_us, head)

    async def content(self, position: int) -> tuple[bytes, bytes] | None:
        return await self._read_units(Units.content, position) if 0 < position <= self.head else None

    async def contents(self, digests: Mapping[int, str]) -> dict[int, tuple[bytes, bytes]]:
        return await self._read_units(Units.contents, digests)

    async def fold(self, after: int, apply: Callable[[Record[Event]], object]) -> None:
        async for rows in self._portions(after):
            for _, body in rows:
                for record in decode_unit(body).records():
                    if record.position > after:
                        apply(record)

    async def save_snapshot(self, name: str, position: int, body: bytes) -> None:
        redactor = self._intake.redactor
        snapshot = Snapshot(name, position, body if redactor is None else redactor.kept(body))
        await self._store.write(self._snapshots.save, snapshot)

    async def load_snapshot(self, name: str) -> tuple[int, bytes] | None:
        found = await self._store.read_quickly(self._snapshots.load, name, self.head)
        return None if found is None else (found.position, found.body)

    async def verify(self, after: int = 0) -> Verification:
        return await self._store.read_apart(verify, self._store.key, after, self._store.head)

    async def close(self) -> None:
        """Write what is queued, anchor the head, release the place, which is done whatever fails before it."""
        if self._tail.is_closed:
            return
        try:
            await self._drain()
            if self._recovering is not None:
                self._recovering.cancel()
                await asyncio.wait([self._recovering])
            self._keep_checkpoint(least_events=1)
            self._tail.close()
        finally:
            await self._store.close()

    async def _read_units(self, work: Callable[..., T], *arguments: Any) -> T:
        return await self._store.read(_over_units, work, *arguments)

    async def _row(self, model: ReadModel, key: str, at: int | None) -> StoredRow | None:
        if model.is_live:
            row = (await self._live_at(at)).row(model, key)
            return None if row is None else write(model, row)[:2]
        hold_whole(self._intake.versions.is_whole)
        return await self._store.read_quickly(read_row, model, key, self._bounded(at))

    def _bounded(self, at: int | None) -> int:
        """The position, or the log's last one: a commit that is not told yet is not shown either."""
        return self.head if at is None else min(at, self.head)

    async def _live_at(self, at: int | None) -> LiveRows:
        """The live rows as they stand, or stood at a position."""
        return self._live if at is None or at >= self.head else await self._look_back(at)

    async def _look_back(self, position: int) -> LiveRows:
        models = list(self._models.values())
        return await self._store.read(look_back, self._snapshots, models, position)

    async def _portions(self, after: int) -> AsyncIterator[list[tuple[int, bytes]]]:
        """The units from the one that holds ``after`` + 1; the next ones are read while these are folded."""
        head = self.head
        begin = await self._read_units(Units.begin_of, after + 1)
        portion = asyncio.ensure_future(self._read_units(Units.raw, begin - 1, head))
        while rows := await portion:
            portion = asyncio.ensure_future(self._read_units(Units.raw, rows[-1][0], head))
            yield rows

    def _begin(self) -> None:
        """A commit begins with all that was appended until now, unless one is under way."""
        self._is_due = False
        if self._is_writing:
            return
        if self._refusal is None and self._intake.batch.units:
            self._write(self._intake.swap())
        elif self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def _write(self, batch: Batch) -> None:
        """Begin to write the batch; ``_wrote`` is called in the loop's thread once it is known how it went."""
        self._is_writing = True
        if self._is_whole and not self._intake.versions.is_whole:
            self._is_whole = False
            self._store.post(_doubt_rows)
        self._alarm = self._loop.call_later(self._options.stalled_after_s, self._suspect)
        self._store.commit(batch)

    def _suspect(self) -> None:
        """The commit seems to have stalled. It may be the loop that stood still: then the end of it is told first."""
        self._alarm = self._loop.call_later(LOOK_AGAIN_SECONDS, self._stall)

    def _stall(self) -> None:
        self._is_stalled = True
        if self.on_stalled is not None:
            self.on_stalled()

    def _wrote(self, batch: Batch, error: Exception | None) -> None:
        """The batch is on the disk, or that is unknown: then the disk is read again."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._is_stalled = False
        if error is None:
            self._committed(batch)
            self._keep_checkpoint()
        elif self._store.failure(error) is Failure.FENCED:
            self._refuse(Fenced, batch, Fenced())
        else:
            said = self._store.describe(error)
            unknown = CommitUnknown(f"{CommitUnknown()} The disk said: {said}.")
            unknown.__cause__ = error
            self._refuse(partial(LogUnavailable, f"The log takes no writes now: {said}."), batch, unknown)
            if self._recovering is None or self._recovering.done():  # a checkpoint may fail with the commit beside it
                self._recovering = self._loop.create_task(self._recover(error))

    def _committed(self, batch: Batch) -> None:
        """The batch is on disk: what waits goes at once, then everyone hears of this one."""
        self._is_writing = False
        self._begin()
        self.last_at = batch.units[-1].records[-1].at
        records = batch.records()
        self._intake.commit(batch.last)
        self._tail.keep(records, batch.size)
        try:
            _tell(iter(batch.units), None)
        finally:
            self._tail.wake()
            self._live.take(records)  # last: so a fold that raises keeps no one waiting

    def _refuse(self, refusal: Refusal, failed: Batch, error: OrganismError) -> None:
        """No more writes until ``_admit``. The units of ``failed`` hear ``error``, those that wait the refusal."""
        self._refusal = refusal
        waiting = self._intake.swap()
        self._intake.void(waiting, failed)
        self._is_writing = False
        self._begin()
        _tell(iter(failed.units), error)
        _tell(iter(waiting.units), refusal())

    async def _drain(self) -> None:
        """Return once nothing waits for the disk; nothing more is taken then."""
        while self._is_due or self._is_writing:
            self._drained = self._drained or self._loop.create_future()
            await asyncio.shield(self._drained)
            self._drained = None
        self._refusal = self._refusal or partial(LogUnavailable, "The log is closed.")

    def _keep_checkpoint(self, least_events: int = CHECKPOINT_EVENTS) -> None:
        """Keep the live rows now and then. One that cannot be written only makes a look into the past longer."""
        live = self._live
        if live.is_whole and live.position >= self._checkpoint + least_events:
            self._checkpoint = live.position
            self._store.post(partial(self._snapshots.save, keeps_all=True), live.checkpoint())

    async def _recover(self, error: Exception) -> None:
        """Wait until the disk can be written again, take in what turned out to be written, go on."""
        while True:
            try:
                truth = await self._store.regain(error)
                self._live = await self._look_back(truth.head.position)
            except LogUnavailable as again:
                error = again
                continue
            except (Fenced, LogDamaged) as final:
                self._refusal = partial(type(final), self._store.describe(final))
                return
            self._admit(truth.head.position, truth.at)
            return

    def _admit(self, head: int, last_at: int) -> None:
        """Writes go on after ``head``, the truth that was read from the disk; some of it may be news here."""
        self.last_at = last_at
        self._intake.last = head
        self._intake.commit(head)
        self._tail.skip_to(head)
        self._refusal = None
        if self.on_lost is not None:
            self.on_lost(head)


def _over_units(connection: Connection, work: Callable[..., T], *arguments: Any) -> T:
    return work(Units(connection), *arguments)


def _doubt_rows(connection: Connection) -> None:
    """Have the next start make the rows of all read models again."""
    connection.execute(_SQL["doubt_models"])


def _head_of(connection: Connection, stream: str) -> int:
    return Units(connection).head_of(stream)


def _greatest_stream(connection: Connection) -> str:
    found = connection.execute(_SQL["greatest_stream"]).fetchone()
    return (found[0] if found else None) or ""


def _tell(units: Iterator[Unit], error: OrganismError | None) -> None:
    """Call each unit's ``then`` in order. One that raises does not keep the others from being called."""
    try:
        for unit in units:
            if unit.then is not None:
                unit.then(unit, error)
    finally:
        rest = list(units)
        if rest:
            asyncio.get_running_loop().call_soon(_tell, iter(rest), error)
