"""The durable engine: SQLite in WAL mode with ``synchronous=FULL``, one writing thread, group commit (docs/topics/commit.md).

Three threads share nothing but queues. The loop's prepares: it encodes, chains and folds. The writing thread executes one
statement a commit. The reading thread writes rows behind the log and answers queries; each of its jobs sees what was posted
before it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson

from organism.log.batch import Batch, Intake
from organism.log.chain import Salts
from organism.log.commits import commit_parameters
from organism.log.encode import decode
from organism.log.journal import Journal
from organism.log.log import EventFilter, Page, Query, ReadModel, Row, Verification
from organism.log.opening import Clock, Options
from organism.log.parts import Parts, open_parts
from organism.log.place import Anchor
from organism.log.units import END, Span
from organism.model.events import Event

EVERYTHING: Final = EventFilter()
ANCHOR_SECONDS: Final = 0.2


class SqliteLog(Journal):
    """One tenant's log on one machine's disk. Made by ``open``."""

    def __init__(self, parts: Parts) -> None:
        truth = parts.truth
        intake = Intake(parts.rows.heads, Salts(parts.options.random_bytes), truth.position)
        super().__init__(intake, parts.rows.folds, truth.timeline, truth.at)
        self._parts = parts
        self._rows = parts.rows
        self._hash = truth.hash
        self._epoch = truth.epoch
        self._is_anchor_due = False

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
        wanted = wanted or EVERYTHING
        span = Span(after, min(self.head, END if until is None else until), limit, reverse)
        if wanted.threads:
            await self._rows.settle()
        return await self._parts.threads.reader.run(self._parts.units.read, span, wanted)

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
        return await self._parts.threads.reader.run(self._parts.units.content, position)

    async def raw(self, after: int) -> AsyncIterator[Sequence[Event]]:
        """Every event after ``after`` without content, in large lists, as fast as the engine can: for folds at start."""
        head = self.head
        while after < head:
            rows = await self._parts.threads.reader.run(self._parts.units.raw, after, head)
            units = orjson.loads(b"[%b]" % b",".join([body for _, body in rows]))
            events = [event for fields in units for event in decode(fields, self._parts.options.upcaster)]
            yield [event for event in events if event.position > after]
            after = events[-1].position

    async def save_snapshot(self, name: str, position: int, body: bytes) -> None:
        """Keep a disposable snapshot of a fold at ``position`` (the last two are kept)."""
        await self._parts.threads.reader.run(self._parts.views.save_snapshot, name, position, body)

    async def load_snapshot(self, name: str) -> tuple[int, bytes] | None:
        """The newest snapshot that is not ahead of the head, or None."""
        return await self._parts.threads.reader.run(self._parts.views.load_snapshot, name, self.head)

    async def verify(self, after: int = 0) -> Verification:
        """Check every commit's hash and every event's digest after ``after``."""
        return await self._parts.verify(after, Anchor(self.head, self._hash))

    async def close(self) -> None:
        """Write what is queued, anchor the head, release the place."""
        await self._drain()
        await self._rows.settle()
        self._tail.close()
        await self._parts.close(Anchor(self.head, self._hash))

    def _write(self, batch: Batch) -> None:
        """Begin to write the batch; ``_committed`` or a failure is called in the loop's thread once it is known."""
        chained = batch.hash(self._parts.key, self._hash)
        parameters = commit_parameters(self._epoch, batch, chained)
        self._parts.threads.writer.post(partial(self._wrote, batch, chained), self._parts.commits.write, parameters)

    def _wrote(self, batch: Batch, chained: bytes, _: Any, error: Exception | None) -> None:
        if error is not None:
            raise error
        self._hash = chained
        self._rows.owe(batch.streams)
        self._committed(batch)
        if not self._is_anchor_due:
            self._is_anchor_due = True
            self._loop.call_later(ANCHOR_SECONDS, self._anchor)

    def _anchor(self) -> None:
        self._is_anchor_due = False
        self._parts.connector.place.write_anchor(Anchor(self.head, self._hash))
