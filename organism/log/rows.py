"""Rows for people: folded from committed units and written behind the log, which no read of them waits for.

What is not written yet is here, in memory, and is laid over what the file gives.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final, TypeVar

from organism.log.batch import Touched
from organism.log.cache import equal_to, folded_row
from organism.log.crew import Crew
from organism.log.folds import Folds, with_payload
from organism.log.heads import Heads
from organism.log.log import EventFilter, Page, Query, ReadModel, Row
from organism.log.pages import Moment, Statement, page_statement
from organism.log.tables import flush_parameters
from organism.log.units import Span
from organism.log.views import payload_at, read_page
from organism.model.events import Event

T = TypeVar("T")
MANY_ROWS: Final = 512
"""More rows than this are not laid over a list of all: it waits until they are written."""
FLUSH_SECONDS: Final = 0.05
"""How long rows may lag behind the log."""
FLUSH_UNITS: Final = 1024
"""How many units are written without waiting for that time: a flush of more would hold up the loop, which folds it."""
STUCK_SECONDS: Final = 1.0
"""So long after a flush that failed the next one is tried."""


class Rows:
    """Collects what the commits owe to the disposable file, and has it written there.

    While the file cannot be written (a full disk: it ``is_stuck``), what is owed stays in memory.
    """

    def __init__(self, crew: Crew, folds: Folds, heads: Heads) -> None:
        self._loop = asyncio.get_running_loop()
        self._crew = crew
        self.folds = folds
        self.heads = heads
        self._streams: list[Touched] = []
        self._leaving: list[Touched] = []
        self._flushing: asyncio.Future[None] | None = None
        self._timer: asyncio.Handle | None = None
        self.is_stuck = False

    def owe(self, streams: Sequence[Touched]) -> None:
        """A commit is on the disk: its events wait in the folds, and these are its streams."""
        self._streams += streams
        if self._timer is None:
            patience = STUCK_SECONDS if self.is_stuck else FLUSH_SECONDS
            self._timer = self._loop.call_later(patience, self._tick)
        elif len(self._streams) > FLUSH_UNITS and not self.is_stuck:
            self._timer.cancel()
            self._timer = self._loop.call_soon(self._tick)

    def close(self) -> None:
        """Nothing is written here any more."""
        if self._timer is not None:
            self._timer.cancel()

    async def page(self, model: str, query: Query) -> Page:
        """A page of rows."""
        kind = self.folds.model(model)
        if query.text and kind.text_in is not None:
            return await self._search(kind, query)
        await self.folds.settle_gently()
        cache = self.folds.caches[model]
        if cache.count() > MANY_ROWS and not equal_to(kind, query.where)[0]:
            await self.flushed()

        def ask() -> tuple[Statement]:
            self.folds.settle()
            return (page_statement(kind, query, Moment(cache.laid(query.where))),)

        return await self._crew.look(read_page, ask, is_long=bool(query.text))

    async def _search(self, kind: ReadModel, query: Query) -> Page:
        """A page of rows that another model's rows are to be searched for: there all have to be in the file."""
        await self.flushed()
        statement = page_statement(kind, query)
        if self.is_stuck:
            return await self.read_over(lambda: read_page(self._crew.views.connection, statement))
        return await self._crew.look(read_page, lambda: (statement,), is_long=True)

    async def read_over(self, work: Callable[..., T], *arguments: Any) -> T:
        """``work(*arguments)`` in the keeper's thread, as if all that is owed were in the file."""
        while self._flushing is not None:  # it has taken rows away
            await asyncio.shield(self._flushing)
        self.folds.settle()
        owed = flush_parameters(self.folds, self._streams)
        self.folds.stay()
        return await self._crew.keeper.run(self._crew.views.over, owed, work, *arguments)

    async def events(self, span: Span, wanted: EventFilter) -> list[Event]:
        """Events of some streams."""
        names = frozenset(wanted.threads)
        firsts = [first for stream, first, _ in chain(self._leaving, self._streams) if stream in names]
        return await self._crew.reader.run(self._crew.units.read, span, wanted, firsts)

    async def row(self, model: str, key: str) -> bytes | None:
        """The public JSON of one row, or None."""
        await self.folds.settle_gently()
        written = self.folds.written(model, key)
        if written is None:
            return None
        public, _, content_at, _, _ = written
        if not content_at:
            return public
        return with_payload(public, await self._crew.look(payload_at, lambda: (content_at,)))

    async def private_row(self, model: str, key: str) -> Row | None:
        """A copy of one row with its private fields."""
        await self.folds.settle_gently()
        written = self.folds.written(model, key)
        return None if written is None else folded_row(written)

    async def flushed(self) -> None:
        """Return once all that is committed now was flushed, or could not be."""
        await self.settle()
        if self._flushing is not None:
            await asyncio.shield(self._flushing)

    def flush(self) -> None:
        """Post what is owed, unless a flush is under way."""
        if self._flushing is not None or not self._is_owing():
            return
        self.folds.settle()
        owed = flush_parameters(self.folds, self._streams)
        self._crew.keeper.post(partial(self._flushed, self.folds.position), self._crew.views.keep, owed)
        self._leaving, self._streams = self._streams, []
        self._flushing = self._loop.create_future()

    async def settle(self) -> None:
        """Return once the flush that holds all that is committed now is posted, after the one that may be under way."""
        while self._flushing is not None and self._is_owing():
            await asyncio.shield(self._flushing)
        self.flush()

    def _is_owing(self) -> bool:
        if not self.folds.is_whole:
            return False  # the rows are half made: they are made anew at the next start
        return bool(self._streams or self.folds.owed) or self.folds.is_dirty()

    def _flushed(self, position: int, _: Any, error: Exception | None) -> None:
        """The flush up to ``position`` is over."""
        self.is_stuck = error is not None
        streams, self._leaving = self._leaving, []
        if error is not None:
            self.folds.stay()
            self._streams = streams + self._streams
        else:
            self.folds.left()
            self.heads.indexed = position
            self.heads.greatest = max(self.heads.greatest, max((touched[0] for touched in streams), default=""))
        over, self._flushing = self._flushing, None
        if self._streams or self.is_stuck:
            self.owe(())
        if over is not None:
            over.set_result(None)

    def _tick(self) -> None:
        self._timer = None
        self.flush()
