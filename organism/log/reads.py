"""What the durable engine answers: from memory where it can, else from its file, at once or in the reading thread."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from organism.log.encode import hand_over
from organism.log.live import LiveRows, look_back
from organism.log.log import EventFilter, Page, Query, ReadModel, Row, Verification
from organism.log.pages import StoredRow, page_statement, read_page, read_row
from organism.log.parts import Parts
from organism.log.select import select_page
from organism.log.snapshots import Snapshot
from organism.log.tail import Tail
from organism.log.units import END, Span
from organism.log.verify import verify
from organism.log.versions import folded_row, hold_whole, write
from organism.model.events import Event

WITHOUT_CONTENT: Final = EventFilter()


class Reads(ABC):
    """The reading half of the durable log; its parts are set by ``SqliteLog``."""

    _parts: Parts
    _live: LiveRows
    _tail: Tail

    @property
    @abstractmethod
    def head(self) -> int:
        """The position of the last event known to be on disk; 0 for an empty log."""

    @property
    @abstractmethod
    def last_at(self) -> int:
        """The ``at`` of the last event, in µs; 0 for an empty log."""

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
        span = Span(after, min(self.head, END if until is None else until), limit, reverse)
        crew = self._parts.crew
        return await crew.reader.run(crew.units.read, span, wanted or WITHOUT_CONTENT)

    def follow(self, after: int, wanted: EventFilter | None = None) -> AsyncIterator[list[Event]]:
        """Lists of events after ``after``: the past first, then each commit's as it becomes known.

        Ends when the log closes. A list may be empty: it says that the positions up to the head passed the filter by.
        """
        return self._tail.follow(after, wanted, self.read)

    async def row(self, model: str, key: str, at: int | None = None) -> bytes | None:
        """The public JSON of one row, or None; ``at`` a position if one is given (L10)."""
        found = await self._row(self._model(model), key, at)
        return None if found is None else found[0]

    async def private_row(self, model: str, key: str) -> Row | None:
        """One row with its private fields, for decisions that rest on what is no longer in memory."""
        found = await self._row(self._model(model), key, None)
        return None if found is None else folded_row(*found)

    async def rows(self, model: str, query: Query) -> Page:
        """A page of rows."""
        kind = self._model(model)
        if kind.is_live:
            return select_page(kind, (await self._live_at(query.at)).rows(kind), query)
        hold_whole(self._parts.versions.is_whole)
        statement = page_statement(kind, replace(query, at=self._bounded(query.at)), self._parts.models)
        return await self._parts.crew.look(read_page, statement, is_long=bool(query.text))

    async def type_spans(self, types: Sequence[str], low: int, high: int, limit: int) -> list[int]:
        """See ``History.type_spans``."""
        crew = self._parts.crew
        return await crew.reader.run(crew.units.type_spans, types, low, high, limit)

    async def position_at(self, at_us: int) -> int:
        """The last position whose event is not after this time (µs since 1970); 0 if there is none."""
        head = self.head
        if at_us >= self.last_at:
            return head
        crew = self._parts.crew
        return await crew.reader.run(crew.units.position_at, at_us, head)

    async def content(self, position: int) -> tuple[bytes, bytes] | None:
        """(json, xml) of the content of the event at ``position``; None if there is none or it was erased."""
        if not 0 < position <= self.head:
            return None
        crew = self._parts.crew
        return await crew.reader.run(crew.units.content, position)

    async def contents(self, digests: Mapping[int, str]) -> dict[int, tuple[bytes, bytes]]:
        """See ``History.contents``."""
        crew = self._parts.crew
        return await crew.reader.run(crew.units.contents, digests)

    async def fold(self, after: int, apply: Callable[[Event], object]) -> None:
        """Hand every event after ``after`` to ``apply``, in order and without content: the fastest way to fold a log.

        It is the same ``Event`` each time, with other fields: ``apply`` may keep its data, never the event.
        """
        async for rows in self._portions(after):
            hand_over(rows, after, self._parts.options.upcaster, apply)

    async def save_snapshot(self, name: str, position: int, body: bytes) -> None:
        """Keep a disposable snapshot of a fold at ``position``, without secrets (the last two are kept)."""
        await self._parts.crew.write(self._parts.snapshots.save, Snapshot(name, position, body))

    async def load_snapshot(self, name: str) -> tuple[int, bytes] | None:
        """The newest snapshot that is not ahead of the head, or None."""
        found = await self._parts.crew.look(self._parts.snapshots.load, name, self.head)
        return None if found is None else (found.position, found.body)

    async def verify(self, after: int = 0) -> Verification:
        """Check every commit's hash and every event's digest after ``after``."""
        disk = self._parts.disk
        return await self._parts.crew.apart(verify, disk.key, after, disk.head)

    async def _row(self, model: ReadModel, key: str, at: int | None) -> StoredRow | None:
        if model.is_live:
            row = (await self._live_at(at)).row(model, key)
            return None if row is None else write(model, row)[:2]
        hold_whole(self._parts.versions.is_whole)
        return await self._parts.crew.look(read_row, model, key, self._bounded(at))

    def _model(self, name: str) -> ReadModel:
        return self._parts.models[name]

    def _bounded(self, at: int | None) -> int:
        """The position, or the log's last one: a commit that is not told yet is not shown either."""
        return self.head if at is None else min(at, self.head)

    async def _live_at(self, at: int | None) -> LiveRows:
        """The live rows as they stand, or stood at a position."""
        if at is None or at >= self.head:
            return self._live
        crew = self._parts.crew
        return await crew.reader.run(
            look_back, crew.units, self._parts.snapshots, list(self._parts.models.values()), at
        )

    async def _portions(self, after: int) -> AsyncIterator[list[tuple[int, bytes]]]:
        """The units from the one that holds ``after`` + 1; the next ones are read while these are folded."""
        crew, head = self._parts.crew, self.head
        begin = await crew.reader.run(crew.units.begin_of, after + 1)
        portion = crew.reader.begin(crew.units.raw, begin - 1, head)
        while rows := await portion:
            portion = crew.reader.begin(crew.units.raw, rows[-1][0], head)
            yield rows
