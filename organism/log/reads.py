"""What the durable engine answers: from memory where it can, else from its files, at once or in the reading thread."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

from organism.log.crew import Crew
from organism.log.disk import Disk
from organism.log.encode import hand_over
from organism.log.log import EventFilter, Page, Query, Row, Verification
from organism.log.past import look_back
from organism.log.rows import Rows
from organism.log.tail import Tail
from organism.log.units import END, Span
from organism.log.upcast import Upcaster
from organism.log.verify import verify
from organism.log.views import Snapshot
from organism.model.events import Event

WITHOUT_CONTENT: Final = EventFilter()


class Reads(ABC):
    """The reading half of the durable log; its parts are set by ``SqliteLog``."""

    _crew: Crew
    _disk: Disk
    _rows: Rows
    _tail: Tail
    _upcaster: Upcaster

    @property
    @abstractmethod
    def head(self) -> int:
        """The position of the last event known to be on disk; 0 for an empty log."""

    @property
    @abstractmethod
    def last_at(self) -> int:
        """The ``at`` of the last event, in µs; 0 for an empty log."""

    @property
    @abstractmethod
    def timeline(self) -> str:
        """The name of this log's timeline: new for each new log and after each restore."""

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
            return await self._rows.events(span, wanted)
        return await self._crew.reader.run(self._crew.units.read, span, wanted)

    def follow(self, after: int, wanted: EventFilter | None = None) -> AsyncIterator[list[Event]]:
        """Lists of events after ``after``: the past first, then each commit's as it becomes known.

        Ends when the log closes. A list may be empty: it says that the positions up to the head passed the filter by.
        """
        return self._tail.follow(after, wanted, self.read)

    async def row(self, model: str, key: str, at: int | None = None) -> bytes | None:
        """The public JSON of one row, or None; ``at`` a position if one is given (L10)."""
        if at is None or at >= self.head:
            return await self._rows.row(model, key)
        kind = self._rows.folds.model(model)
        return await look_back(self._crew, self._rows, at, lambda past: past.row(kind, key))

    async def rows(self, model: str, query: Query) -> Page:
        """A page of rows."""
        if query.at is None or query.at >= self.head:
            return await self._rows.page(model, query)
        kind = self._rows.folds.model(model)
        return await look_back(self._crew, self._rows, query.at, lambda past: past.page(kind, query))

    async def private_row(self, model: str, key: str) -> Row | None:
        """One row with its private fields, for decisions that rest on what is no longer in memory."""
        return await self._rows.private_row(model, key)

    async def position_at(self, at_us: int) -> int:
        """The last position whose event is not after this time (µs since 1970); 0 if there is none."""
        head = self.head
        if at_us >= self.last_at:
            return head
        return await self._crew.reader.run(self._crew.units.position_at, at_us, head)

    async def content(self, position: int) -> tuple[bytes, bytes] | None:
        """(json, xml) of the content of the event at ``position``; None if there is none or it was erased."""
        if not 0 < position <= self.head:
            return None
        return await self._crew.reader.run(self._crew.units.content, position)

    async def contents(self, digests: Mapping[int, str]) -> dict[int, tuple[bytes, bytes]]:
        """See ``History.contents``."""
        return await self._crew.reader.run(self._crew.units.contents, digests)

    async def fold(self, after: int, apply: Callable[[Event], object]) -> None:
        """Hand every event after ``after`` to ``apply``, in order and without content: the fastest way to fold a log.

        It is the same ``Event`` each time, with other fields: ``apply`` may keep its data, never the event.
        """
        async for rows in self._portions(after):
            hand_over(rows, after, self._upcaster, apply)

    async def _portions(self, after: int) -> AsyncIterator[list[tuple[int, bytes]]]:
        """The rows from the one that holds ``after`` + 1; the next ones are read while these are folded."""
        reader, units, head = self._crew.reader, self._crew.units, self.head
        begin = await reader.run(units.begin_of, after + 1)
        portion = reader.begin(units.raw, begin - 1, head)
        while rows := await portion:
            portion = reader.begin(units.raw, rows[-1][0], head)
            yield rows

    async def save_snapshot(self, name: str, position: int, body: bytes) -> None:
        """Keep a disposable snapshot of a fold at ``position`` (the last two are kept)."""
        snapshot = Snapshot(name, position, self.timeline, body)
        await self._crew.keeper.run(self._crew.views.save_snapshot, snapshot)

    async def load_snapshot(self, name: str) -> tuple[int, bytes] | None:
        """The newest snapshot that is not ahead of the head, or None."""
        found = await self._crew.keeper.run(self._crew.views.load_snapshot, name, self.timeline, self.head)
        return None if found is None else (found.position, found.body)

    async def verify(self, after: int = 0) -> Verification:
        """Check every commit's hash and every event's digest after ``after``."""
        return await self._crew.apart(verify, self._disk.key, after, self._disk.head)
