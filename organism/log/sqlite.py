"""The durable engine: SQLite in WAL mode with ``synchronous=FULL``, one writing thread, group commit (docs/topics/commit.md).

Three threads share nothing but queues. The loop's prepares: it encodes, chains and folds. The writing thread executes one
statement a commit. The reading thread writes rows behind the log and answers queries; each of its jobs sees what was posted
before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import orjson

from organism.errors import CommitUnknown, Fenced, LogDamaged, LogUnavailable
from organism.log.batch import Batch, Intake
from organism.log.chain import Salts
from organism.log.driver import Failure
from organism.log.encode import decode
from organism.log.journal import Journal
from organism.log.log import EventFilter, Page, Query, ReadModel, Row, Verification
from organism.log.opening import Clock, Options
from organism.log.parts import Parts, catch_up, open_parts
from organism.log.units import END, Span
from organism.log.verify import verify
from organism.log.views import Snapshot
from organism.model.events import Event

WITHOUT_CONTENT: Final = EventFilter()


class SqliteLog(Journal):
    """One tenant's log on one machine's disk. Made by ``open``."""

    def __init__(self, parts: Parts) -> None:
        truth = parts.truth
        intake = Intake(parts.rows.heads, Salts(parts.options.random_bytes), truth.position)
        super().__init__(intake, parts.rows.folds, truth.timeline, truth.at)
        self._parts = parts
        self._crew = parts.crew
        self._rows = parts.rows
        self._disk = parts.disk
        self._disk.done = self._wrote
        self._recovering: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls, directory: Path, models: Sequence[ReadModel], clock: Clock, options: Options | None = None
    ) -> SqliteLog:
        """Open or make the log in ``directory``.

        Raises ``LogHeld`` within a second if another process has it, ``LogDamaged`` naming the position if what was
        acknowledged is not there as it was written.
        """
        return cls(await open_parts(directory, models, clock, options or Options()))

    async def read(
        self,
        after: int = 0,
        until: int | None = None,
        wanted: EventFilter | None = None,
        limit: int = 500,
        *,
        reverse: bool = False,
    ) -> list[Event]:
        """Events with after < position ≤ until, in order (or newest first); at most ``limit``."""
        wanted = wanted or WITHOUT_CONTENT
        span = Span(after, min(self.head, END if until is None else until), limit, reverse)
        if wanted.threads:
            return await self._rows.read(self._crew.units.read, span, wanted)
        return await self._crew.reader.run(self._crew.units.read, span, wanted)

    async def row(self, model: str, key: str) -> bytes | None:
        """The public JSON of one row, or None."""
        return await self._rows.row(model, key)

    async def rows(self, model: str, query: Query) -> Page:
        """A page of rows."""
        return await self._rows.page(model, query)

    async def private_row(self, model: str, key: str) -> Row | None:
        """One row with its private fields, for decisions that rest on what is no longer in memory."""
        return await self._rows.private_row(model, key)

    async def content(self, position: int) -> tuple[bytes, bytes] | None:
        """(json, xml) of the content of the event at ``position``; None if there is none or it was erased."""
        if not 0 < position <= self.head:
            return None
        return await self._crew.reader.run(self._crew.units.content, position)

    async def raw(self, after: int) -> AsyncIterator[Sequence[Event]]:
        """Every event after ``after`` without content, in large lists, as fast as the engine can: for folds at start."""
        head = self.head
        while after < head:
            rows = await self._crew.reader.run(self._crew.units.raw, after, head)
            units = orjson.loads(b"[%b]" % b",".join([body for _, body in rows]))
            events = [event for fields in units for event in decode(fields, self._parts.options.upcaster)]
            yield [event for event in events if event.position > after]
            after = events[-1].position

    async def save_snapshot(self, name: str, position: int, body: bytes) -> None:
        """Keep a disposable snapshot of a fold at ``position`` (the last two are kept)."""
        snapshot = Snapshot(name, position, self.timeline, body)
        await self._crew.reader.run(self._crew.views.save_snapshot, snapshot)

    async def load_snapshot(self, name: str) -> tuple[int, bytes] | None:
        """The newest snapshot that is not ahead of the head, or None."""
        found = await self._crew.reader.run(self._crew.views.load_snapshot, name, self.timeline, self.head)
        return None if found is None else (found.position, found.body)

    async def verify(self, after: int = 0) -> Verification:
        """Check every commit's hash and every event's digest after ``after``."""
        return await self._crew.apart(verify, self._disk.key, after, self._disk.head)

    async def close(self) -> None:
        """Write what is queued, anchor the head, release the place."""
        if self._tail.is_closed:
            return
        await self._drain()
        if self._recovering is not None:
            self._recovering.cancel()
            await asyncio.wait([self._recovering])
        await self._rows.flushed()
        self._tail.close()
        self._rows.close()
        self._disk.close()
        await self._parts.stack.aclose()

    def _write(self, batch: Batch) -> None:
        """Begin to write the batch; ``_wrote`` is called in the loop's thread once it is known how it went."""
        self._disk.write(batch)

    def _wrote(self, batch: Batch, error: Exception | None) -> None:
        """The batch is on the disk, or nobody knows: then a fresh look at the disk has to tell."""
        if error is None:
            self._rows.owe(batch.streams)
            self._committed(batch)
        elif self._disk.failure(error) is Failure.FENCED:
            self._refuse(Fenced, batch, Fenced())
        else:
            reason = f"The log takes no writes now: {error}."
            self._refuse(
                partial(LogUnavailable, reason), batch, CommitUnknown(f"{CommitUnknown()} The disk said: {error}.")
            )
            self._recovering = self._loop.create_task(self._recover(error))

    async def _recover(self, error: Exception) -> None:
        """Wait until the disk can be written again, take in what turned out to be written, go on."""
        try:
            truth = await self._disk.regain(error)
            await catch_up(self._crew, self._rows, truth.position, self._parts.options.upcaster)
        except (Fenced, LogDamaged) as final:
            self._refusal = partial(type(final), final.message)
        else:
            self._admit(truth.position, truth.at)
