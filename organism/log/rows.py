"""Rows for people: folded from committed units, kept behind the log, never behind a read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from organism.log.batch import Touched
from organism.log.cache import folded_row
from organism.log.folds import Folds, with_payload
from organism.log.heads import Heads
from organism.log.log import Page, Query, ReadModel, Row
from organism.log.pages import page_statement, total_statement
from organism.log.tables import flush_parameters
from organism.log.views import Views
from organism.log.worker import Worker

T = TypeVar("T")
FLUSH_SECONDS: Final = 0.05
"""So long may rows lag behind the log when nobody reads."""
FLUSH_STREAMS: Final = 1024
"""So many units are written without waiting for that time: a flush of more would hold up the loop."""
STUCK_SECONDS: Final = 1.0
"""So long after a flush that failed the next one is tried."""


class Rows:
    """Collects what the commits owe to the disposable file, and writes it there before any read of it.

    ``worker`` runs its jobs in order, so a read that is posted after a flush sees it. While the file cannot be
    written (a full disk: it ``is_stuck``), what is owed stays in memory, and each read is laid over it.
    """

    def __init__(self, worker: Worker, views: Views, folds: Folds, heads: Heads) -> None:
        self._loop = asyncio.get_running_loop()
        self._worker = worker
        self._views = views
        self.folds = folds
        self.heads = heads
        self._streams: list[Touched] = []
        self._flushing: asyncio.Future[None] | None = None
        self._timer: asyncio.Handle | None = None
        self.is_stuck = False

    def owe(self, streams: Sequence[Touched]) -> None:
        """A commit is on the disk: its events wait in the folds, and these are its streams."""
        self._streams += streams
        if self._timer is None:
            self._timer = self._loop.call_later(STUCK_SECONDS if self.is_stuck else FLUSH_SECONDS, self._tick)
        elif len(self._streams) > FLUSH_STREAMS and not self.is_stuck:
            self._timer.cancel()
            self._timer = self._loop.call_soon(self._tick)

    def close(self) -> None:
        """Nothing is written here any more."""
        if self._timer is not None:
            self._timer.cancel()

    async def read(self, work: Callable[..., T], *arguments: Any) -> T:
        """``work(*arguments)`` in the worker, with every row and stream that follows from what is committed."""
        self.folds.settle()
        await self.settle()
        result = await self._worker.run(work, *arguments)
        if not self.is_stuck:
            return result
        owed = flush_parameters(self.folds, self._streams)
        self.folds.stay()
        return await self._worker.run(self._views.over, owed, work, *arguments)

    def model(self, name: str) -> ReadModel:
        """The read model of this name."""
        return self.folds.caches[name].model

    async def page(self, model: str, query: Query) -> Page:
        """A page of rows."""
        kind = self.model(model)
        return await self.read(self._views.page, page_statement(kind, query), total_statement(kind, query))

    async def row(self, model: str, key: str) -> bytes | None:
        """The public JSON of one row, or None."""
        written = self.folds.written(model, key)
        if written is None:
            return None
        public, _, content_at, _, _ = written
        if not content_at:
            return public
        return with_payload(public, await self._worker.run(self._views.payload, content_at))

    async def private_row(self, model: str, key: str) -> Row | None:
        """A copy of one row with its private fields."""
        written = self.folds.written(model, key)
        return None if written is None else folded_row(written)

    async def flushed(self) -> None:
        """Return once all that is committed now was flushed, or could not be."""
        await self.settle()
        if self._flushing is not None:
            await asyncio.shield(self._flushing)

    def flush(self) -> None:
        """Post what is owed, unless a flush is under way."""
        if self._flushing is None and self._is_owing():
            streams, self._streams = self._streams, []
            owed = flush_parameters(self.folds, streams)
            self._flushing = self._loop.create_future()
            self._worker.post(partial(self._flushed, streams, self.folds.position), self._views.flush, owed)

    async def settle(self) -> None:
        """Return once the flush that holds all that is committed now is posted, after the one that may be under way."""
        while self._flushing is not None and self._is_owing():
            await asyncio.shield(self._flushing)
        self.flush()

    def _is_owing(self) -> bool:
        if not self.folds.is_whole:
            return False  # the rows are half made: they are made anew at the next start
        self.folds.settle()
        return bool(self._streams) or self.folds.is_dirty()

    def _flushed(self, streams: list[Touched], position: int, _: Any, error: Exception | None) -> None:
        self.is_stuck = error is not None
        if error is None:
            self.folds.left()
            self.heads.indexed = position
            self.heads.greatest = max(self.heads.greatest, max((touched[0] for touched in streams), default=""))
        else:
            self.folds.stay()
            self._streams = streams + self._streams
            self.owe(())
        flushing, self._flushing = self._flushing, None
        if flushing is not None:
            flushing.set_result(None)

    def _tick(self) -> None:
        self._timer = None
        self.flush()
