"""Rows for people: folded from committed units, kept behind the log, never behind a read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from organism.log.batch import Batch
from organism.log.driver import Connection
from organism.log.folds import Folds, read_row, with_payload, write_row
from organism.log.heads import Heads
from organism.log.log import Page, Query, ReadModel, Row
from organism.log.tables import flush_parameters
from organism.log.views import Views
from organism.log.worker import Worker

FLUSH_SECONDS: Final = 0.05
"""So long may rows lag behind the log when nobody reads."""


class Rows:
    """Collects what the commits owe to the disposable file, and writes it there before any read of it.

    ``worker`` runs its jobs in order, so a read that is posted after a flush sees it.
    """

    def __init__(self, worker: Worker, views: Views, folds: Folds, heads: Heads) -> None:
        self._loop = asyncio.get_running_loop()
        self._worker = worker
        self._views = views
        self.folds = folds
        self.heads = heads
        self._streams: list[tuple[str, int]] = []
        self._flushing: asyncio.Future[None] | None = None
        self._is_due = False

    def owe(self, streams: Sequence[tuple[str, int]]) -> None:
        """A commit is on the disk: its events wait in the folds, and these are its streams."""
        self._streams += streams
        if not self._is_due:
            self._is_due = True
            self._loop.call_later(FLUSH_SECONDS, self._tick)

    async def settle(self) -> None:
        """Return once every committed event is in the file, or posted to be there before what is posted next."""
        while self._flushing is not None:
            await asyncio.shield(self._flushing)
        self.flush()

    def flush(self) -> None:
        """Post what is owed, unless a flush is under way."""
        self.folds.settle()
        if self._flushing is not None or not (self._streams or self.folds.dirty_rows()):
            return
        streams, self._streams = self._streams, []
        parameters = flush_parameters(self.folds, streams)
        self._flushing = self._loop.create_future()
        self._worker.post(self._flushed(streams, self.folds.position), self._views.flush, parameters)

    def _flushed(self, streams: list[tuple[str, int]], position: int) -> Callable[[None, Exception | None], None]:
        def tell(_: None, error: Exception | None) -> None:
            flushing, self._flushing = self._flushing, None
            for cache in self.folds.caches.values():
                cache.left() if error is None else cache.stay()
            if error is None:
                self.heads.indexed = position
                self.heads.greatest = max([self.heads.greatest, *(stream for stream, _ in streams)])
            else:
                self._streams = streams + self._streams
            if flushing is not None:
                flushing.set_result(None)

        return tell

    def _tick(self) -> None:
        self._is_due = False
        self.flush()

    async def row(self, model: str, key: str) -> bytes | None:
        """The public JSON of one row, or None."""
        self.folds.settle()
        cache = self.folds.caches[model]
        row = cache.find(key)
        if row is None:
            return None
        written = write_row(cache.model, row)
        if not cache.model.with_content:
            return written.public
        payload = await self._worker.run(self._views.payload, written.content_at)
        return with_payload(written.public, payload)

    async def private_row(self, model: str, key: str) -> Row | None:
        """A copy of the row with its private fields."""
        self.folds.settle()
        cache = self.folds.caches[model]
        row = cache.find(key)
        if row is None:
            return None
        written = write_row(cache.model, row)
        return read_row(written.public, written.private)

    async def page(self, model: str, query: Query) -> Page:
        """A page of rows."""
        await self.settle()
        return await self._worker.run(self._views.page, model, query)
