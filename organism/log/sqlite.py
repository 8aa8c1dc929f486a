"""The engine: SQLite in WAL mode with ``synchronous=FULL``, one writing thread, group commit; or the same in memory.

docs/topics/commit.md explains the design.
Three threads share nothing but queues. The loop's encodes, folds and chains, in stages for all that came at once, and
does quick reads. The writing thread executes one statement a commit, the reading thread does slow reads.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

import structlog

from organism.errors import LogUnavailable, OrganismError
from organism.events import vocabulary as events
from organism.events.record import Actor, Record, Unit
from organism.events.stored import decode_unit
from organism.log import units
from organism.log.batch import Appender, Batch, Erased, Heads, TypeSpans
from organism.log.commits import Commits
from organism.log.directory import LogDirectory
from organism.log.disk import Disk, LastCommit, Memory
from organism.log.encode import RandomBytes, Salts, mac
from organism.log.log import EventFilter, Origins, Verification
from organism.log.recovery import Recovery
from organism.log.snapshots import Snapshot
from organism.log.streams import export, forked
from organism.log.tail import Tail
from organism.log.view_store import SqliteViews
from organism.model.ids import DEFAULT_TENANT
from organism.model.redact import Redactor
from organism.sqlite.driver import Pysqlite
from organism.views.views import ReadModel

EARLY_UNITS: Final = 32
"""So many units are written at once, and wait for no more: the disk works while the loop makes the rest."""
LOOK_AGAIN_SECONDS: Final = 0.1
_log = structlog.get_logger("organism")


class Clock(Protocol):
    """The log's time."""

    def now_us(self) -> int:
        """UTC in microseconds since 1970."""


@dataclass(frozen=True, slots=True)
class Options:
    """Where the key lies, the source of random bytes, the driver.

    ``tenant`` is the name of the tenant's directory in a data directory; the chain is bound to it. A commit that takes
    ``stalled_after_s`` has stalled.
    """

    key_path: Path | None = None
    tenant: str = DEFAULT_TENANT
    random_bytes: RandomBytes = os.urandom
    driver: Pysqlite = field(default_factory=Pysqlite)
    stalled_after_s: float = 5.0


class SqliteLog:
    """One tenant's ``EventLog``, made by ``open`` or ``in_memory``; ``views`` are the rows of its read models.

    A commit begins once an iteration of the loop has brought no more units, or ``EARLY_UNITS`` wait, and the commit
    before it has ended; it takes all units appended until then. A commit that
    takes too long makes the log unavailable until it has ended; what was appended keeps waiting for it.
    """

    def __init__(
        self, store: Disk | Memory, last: LastCommit, views: SqliteViews, appender: Appender, options: Options
    ) -> None:
        self.views = views
        self.on_lost: Callable[[int], None] | None = None
        self.on_stalled: Callable[[], None] | None = None
        self._loop = asyncio.get_running_loop()
        self._appender = appender
        self._tail = Tail(appender.last)
        self.timeline = last.head.timeline
        self.last_at = last.at
        self._is_due = False
        self._seen = 0  # units that the next commit had when it could last have begun
        self._is_writing = False
        self._is_stalled = False
        self._is_closing = False
        self._unsealed: Exception | None = None  # why the next batch could not be sealed
        self._drained: asyncio.Future[None] | None = None
        self._store = store
        self._store.done = self._wrote
        self._options = options
        self._recovery = Recovery(store, self._reset, self._resume)
        self._alarm: asyncio.TimerHandle | None = None

    @classmethod
    async def open(
        cls, directory: Path, clock: Clock, models: Sequence[ReadModel], options: Options | None = None
    ) -> SqliteLog:
        """Open or make the log in ``directory``, which keeps the rows of these models.

        Raises ``LogHeld`` within a second if another process has it, and ``LogDamaged`` naming the position if an
        acknowledged unit is not there as it was written.
        """
        options = options or Options()
        log_directory = LogDirectory(directory, options.key_path, options.tenant, options.driver)
        async with AsyncExitStack() as stack:
            stack.callback(log_directory.unlock)
            log_directory.lock(clock.now_us)
            disk = Disk(log_directory, Commits(models))
            stack.push_async_callback(disk.close)
            last = await disk.open(options.random_bytes)
            log = await cls._over(disk, last, options)
            stack.pop_all()
        return log

    @classmethod
    async def in_memory(cls, models: Sequence[ReadModel], options: Options | None = None) -> SqliteLog:
        """A new log that ends with the process."""
        options = options or Options()
        memory = Memory(Commits(models), options.random_bytes)
        return await cls._over(memory, memory.last, options)

    @classmethod
    async def _over(cls, store: Disk | Memory, last: LastCommit, options: Options) -> SqliteLog:
        """The log over these tables. Rows of other models, or of older versions, are rebuilt."""
        head, commits = last.head, store.commits
        if not await store.write(commits.are_current):
            if head.position:
                dropped = await store.write(commits.unknown_tables)
                _log.warning("rows_made_again", log=store.name, events=head.position, dropped=dropped)
            await store.write(commits.rebuild, head.epoch, head.position, store.snapshots)
        views = SqliteViews(store, commits.models)
        return cls(store, last, views, await appender_after(store, views, head.position, options), options)

    @property
    def head(self) -> int:
        return self._tail.head

    @property
    def available(self) -> bool:
        return self._recovery.refusal is None and not (self._is_stalled or self._is_closing)

    def key_for(self, purpose: str) -> bytes:
        return mac(self._store.key, purpose)

    def conceal(self, redactor: Redactor) -> None:
        self._appender.redactor = redactor

    def append(self, unit: Unit) -> None:
        self._append(unit, None)

    def _append(self, unit: Unit, erased: Erased | None) -> None:
        if self._recovery.refusal is not None:
            raise self._recovery.refusal()
        if self._is_closing:
            raise LogUnavailable("The log is closed.")
        self._appender.add(unit, erased)
        if not self._is_due:  # also while a commit is under way: meanwhile the next one is sealed
            self._look_soon()
        elif not self._is_writing and self._appender.waiting >= EARLY_UNITS:
            self._begin()

    async def commit(self, unit: Unit) -> int:
        return await self._commit(unit, None)

    async def _commit(self, unit: Unit, erased: Erased | None) -> int:
        outcome: asyncio.Future[int] = self._loop.create_future()

        def settle(done: Unit, error: Exception | None) -> None:
            if outcome.cancelled():
                return
            if error is None:
                outcome.set_result(done.last)
            else:
                outcome.set_exception(error)

        unit.then = settle
        self._append(unit, erased)
        return await outcome

    async def erase(self, owner: str, at: int, actor: Actor | None = None) -> int:
        searched = self.head
        found = await self._store.read(units.positions_owned, owner, searched)
        erasing = Unit(None, [Record(events.ContentErased(owner))], at, {}, actor=actor)
        position = await self._commit(erasing, Erased(owner, found, searched))
        await self._store.purged()
        return position

    async def copy(self, source: str, until: int, target: str, at: int, actor: Actor | None = None) -> int:
        fork = await forked(self, source, until)
        return await self.commit(Unit(target, [Record(fork)], at, {target: 0}, actor=actor))

    async def read(
        self,
        after: int = 0,
        until: int | None = None,
        wanted: EventFilter | None = None,
        limit: int = 500,
        *,
        reverse: bool = False,
    ) -> list[Record[events.Event]]:
        span = units.Span(after, min(self.head, units.END if until is None else until), limit, reverse)
        wanted = wanted or units.WITHOUT_CONTENT
        return await self._store.read(units.read, span, wanted, await self._origins(wanted))

    def follow(self, after: int, wanted: EventFilter | None = None) -> AsyncIterator[list[Record[events.Event]]]:
        return self._tail.follow(after, wanted or units.WITHOUT_CONTENT, self._origins, self._read)

    async def _read(
        self, after: int, until: int, wanted: EventFilter, origins: Origins, limit: int
    ) -> list[Record[events.Event]]:
        return await self._store.read(units.read, units.Span(after, until, limit), wanted, origins)

    async def _origins(self, wanted: EventFilter) -> Origins:
        """The pasts that the filter's streams share."""
        if not (wanted.threads and self._appender.types.has_forks):
            return units.NO_ORIGINS
        return await self._store.read_quickly(units.origins, wanted.threads)

    def export(self, stream: str) -> AsyncIterator[bytes]:
        return export(self, stream)

    async def type_spans(self, types: Sequence[type[events.Event]], low: int, high: int, limit: int) -> list[int]:
        return await self._store.read_quickly(units.type_spans, types, low, high, limit)

    async def position_at(self, at_us: int) -> int:
        head = self.head
        return head if at_us >= self.last_at else await self._store.read_quickly(units.position_at, at_us, head)

    async def content(self, position: int) -> tuple[bytes, bytes] | None:
        return await self._store.read_quickly(units.content, position) if 0 < position <= self.head else None

    async def contents(self, digests: Mapping[int, str]) -> dict[int, tuple[bytes, bytes]]:
        return await self._store.read_quickly(units.contents, digests)

    async def fold(self, after: int, apply: Callable[[Record[events.Event]], object]) -> None:
        async for rows in self._portions(after):
            for _, body in rows:
                for record in decode_unit(body).records():
                    if record.position > after:
                        apply(record)

    async def save_snapshot(self, name: str, position: int, body: bytes) -> None:
        redactor = self._appender.redactor
        snapshot = Snapshot(name, position, body if redactor is None else redactor.masked_bytes(body))
        await self._store.write(self._store.snapshots.save, snapshot)

    async def load_snapshot(self, name: str) -> tuple[int, bytes] | None:
        found = await self._store.read_quickly(self._store.snapshots.load, name, self.head)
        return None if found is None else (found.position, found.body)

    async def verify(self, after: int = 0) -> Verification:
        return await self._store.verify(after)

    async def close(self) -> None:
        """Write what is queued, anchor the head, unlock the directory, even if one of these fails."""
        if self._tail.is_closed:
            return
        try:
            await self._drain()
            await self._recovery.stop()
            self._appender.folding.close()
            self._tail.close()
        finally:
            await self._store.close()

    async def _portions(self, after: int) -> AsyncIterator[list[tuple[int, bytes]]]:
        """The units from the one that holds ``after`` + 1, in portions; the next one is read while one is folded."""
        head = self.head
        begin = await self._store.read_quickly(units.first_of_unit, after + 1)
        portion = asyncio.ensure_future(self._store.read(units.unit_rows, begin - 1, head))
        while rows := await portion:
            portion = asyncio.ensure_future(self._store.read(units.unit_rows, rows[-1][0], head))
            yield rows

    def _look_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._look)

    def _look(self) -> None:
        """See whether a commit can begin. A batch that could not be sealed fails as if the disk had not taken it."""
        self._is_due = False
        if self._unsealed is not None and not self._is_writing:
            self._failed(self._appender.swap(), self._recovery.start(self._unsealed))
        else:
            self._begin()

    def _begin(self) -> None:
        """Seal all that was appended until now, and begin a commit with it unless one is under way.

        As long as each iteration of the loop brings more units, the commit waits for them, but not for many.
        """
        if self._unsealed is None:
            try:
                self._appender.seal()
            except Exception as error:  # noqa: BLE001 - whatever it is, the units must hear of it
                self._unsealed = error
        if self._is_writing:
            return
        if self._unsealed is not None:  # this may run in the ``append`` of another unit, or before others are notified
            self._look_soon()
        elif self._recovery.refusal is None and (waiting := self._appender.waiting):
            if self._seen < waiting < EARLY_UNITS:
                self._seen = waiting
                self._look_soon()
            else:
                self._write(self._appender.swap())
        elif self._drained is not None and not self._drained.done():
            self._drained.set_result(None)

    def _write(self, batch: Batch) -> None:
        """Begin to write the batch; ``_wrote`` is called in the loop's thread with the outcome."""
        self._is_writing, self._seen = True, 0
        self._alarm = self._loop.call_later(self._options.stalled_after_s, self._suspect)
        self._store.commit(batch, self._appender.folding)

    def _suspect(self) -> None:
        """The commit seems to have stalled. If the loop was blocked instead, the commit's end is reported first."""
        self._alarm = self._loop.call_later(LOOK_AGAIN_SECONDS, self._stall)

    def _stall(self) -> None:
        self._is_stalled = True
        if self.on_stalled is not None:
            self.on_stalled()

    def _wrote(self, batch: Batch, error: Exception | None) -> None:
        """The batch is on the disk, or after an error perhaps not: then the disk is read again."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._is_stalled = False
        if error is None:
            self._committed(batch)
        else:
            self._failed(batch, self._recovery.start(error))

    def _committed(self, batch: Batch) -> None:
        """The batch is on disk: begin the next commit, then notify the units and followers of this one."""
        self._is_writing = False
        self._begin()
        self.last_at = batch.units[-1].records[-1].at
        records = batch.records()
        self._appender.heads.committed = batch.last
        self._tail.add(records, batch.size)
        for owner, position in {(owner, position) for _, _, owner, position in batch.erasures}:
            self._tail.erase(owner, position)
        try:
            _notify(iter(batch.units), None)
        finally:
            self._tail.wake()
            self._appender.folding.committed(records)

    def _failed(self, batch: Batch, error: OrganismError) -> None:
        """Its units get the error; those that wait for the next commit get the reason why there is none."""
        waiting, self._unsealed = self._appender.swap(), None
        for unit in (*batch.units, *waiting.units):
            unit.first = unit.last = -1  # so no ``expect`` fits them
        self._is_writing = False
        self._begin()
        _notify(iter(batch.units), error)
        if self._recovery.refusal is not None:
            _notify(iter(waiting.units), self._recovery.refusal())

    async def _drain(self) -> None:
        """Return once nothing waits for the disk; from then on nothing is appended."""
        while self._is_due or self._is_writing:
            self._drained = self._drained or self._loop.create_future()
            await asyncio.shield(self._drained)
            self._drained = None
        self._is_closing = True

    async def _reset(self, last: LastCommit) -> None:
        """Start over from what is on the disk: whatever was cached may rest on units that are not."""
        head, redactor = last.head.position, self._appender.redactor
        self._appender = await appender_after(self._store, self.views, head, self._options)
        self._appender.redactor = redactor
        self.last_at = last.at
        self._tail.skip_to(head)

    def _resume(self, head: int) -> None:
        if self.on_lost is not None:
            self.on_lost(head)


async def appender_after(store: Disk | Memory, views: SqliteViews, position: int, options: Options) -> Appender:
    """The appender of units after ``position``, the last one on the disk."""
    heads = Heads(lambda stream: store.read_now(units.head_of, stream))
    heads.committed, heads.greatest = position, await store.read(units.greatest_stream)
    folding = await views.begin(position)
    types = TypeSpans(has_forks=bool(await store.read(units.type_spans, [events.ThreadForked], 0, units.END, 1)))
    return Appender(heads, types, folding, Salts(options.random_bytes), position)


def _notify(units: Iterator[Unit], error: OrganismError | None) -> None:
    """Call each unit's ``then`` in order, also after one that raises."""
    try:
        for unit in units:
            if unit.then is not None:
                unit.then(unit, error)
    finally:
        rest = list(units)
        if rest:
            asyncio.get_running_loop().call_soon(_notify, iter(rest), error)
