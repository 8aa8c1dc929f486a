"""The rows of read models, read from the log's own file, where they are written with the commits of their events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from traceback import format_exception
from typing import Any

import structlog

from organism.errors import OrganismError
from organism.log import units
from organism.log.commits import invalidate
from organism.log.disk import Disk, Memory
from organism.log.rows import pages
from organism.log.rows.spans import OpenSpans, spanned
from organism.log.rows.versions import CHECKPOINT_EVENTS, LiveRows, RowFolding, folded_row, write
from organism.log.snapshots import CHECKPOINT, Snapshots
from organism.sqlite.driver import Connection
from organism.views.views import Page, Query, R, ReadModel, Sums, Where, rows_of

_log = structlog.get_logger("organism")


class SqliteViews:
    """The ``ViewStore`` of a log."""

    def __init__(self, store: Disk | Memory, models: Sequence[ReadModel]) -> None:
        self._store = store
        self._models = {model.name: model for model in models}
        self._folding: RowFolding
        self._digests: units.Digests = {}
        self._past: LiveRows | None = None
        self._is_whole = True

    async def begin(self, position: int) -> RowFolding:
        """Fold what comes after ``position``: when the log is opened, and after each failed commit."""
        self._past = None
        self._digests = {}  # what was read of units that are perhaps not on the disk counts no more
        store, models = self._store, list(self._models.values())
        live = await store.read(live_rows_at, store.snapshots, models, position)
        load = partial(store.read_now, pages.newest_version)
        keep = partial(store.post, partial(store.snapshots.save, keeps_all=True))
        self._folding = RowFolding(models, load, live, keep, self._invalidate)
        greatest = await store.read(pages.greatest_keys, models)
        self._folding.go_on(greatest, await store.read(open_spans_at, models, position))
        return self._folding

    async def row(self, model: str, key: str, at: int | None = None) -> bytes | None:
        found = await self._row(self._models[model], key, at)
        return None if found is None else found[0]

    async def private_row(self, model: ReadModel[R], key: str) -> R | None:
        found = await self._row(model, key, None)
        return None if found is None else folded_row(model, *found)

    async def live_rows(self, model: ReadModel[R], at: int | None = None) -> Sequence[R]:
        return (await self._live_at(at)).all_of(model)

    async def rows(self, model: str, query: Query) -> Page:
        kind = self._models[model]
        statement = pages.page_statement(kind, replace(query, at=self._bounded(query.at)), self._models)
        if kind.is_live:
            statement = pages.over_live(kind, (await self._live_at(query.at)).rows(kind), statement)
        read = self._store.read if query.text else self._store.read_quickly
        return await read(pages.read_page, kind, statement, self._digests)

    async def sums(self, model: str, sums: Sums) -> list[tuple[Any, ...]]:
        statement = pages.sums_statement(self._models[model], replace(sums, at=self._bounded(sums.at)))
        return await self._store.read_quickly(pages.read_sums, statement)

    async def _row(self, model: ReadModel, key: str, at: int | None) -> pages.StoredRow | None:
        if model.is_live:
            row = (await self._live_at(at)).row(model, key)
            return None if row is None else write(model, row)[:2]
        return await self._store.read_quickly(pages.read_row, model, key, self._bounded(at), self._models)

    def _invalidate(self, error: Exception) -> None:
        """A fold has failed: no row is shown any more, and the next start rebuilds all of them."""
        _log.error(
            "rows_failed",
            error=str(error),
            next="Restart the server: it makes the rows again from the log.",
            traceback="".join(format_exception(error)),
        )
        self._is_whole = False
        self._store.post(invalidate)

    def _bounded(self, at: int | None) -> int:
        """The position, but at most that of the last commit whose units have been notified."""
        if not self._is_whole:
            raise OrganismError("A read model could not take an event; its rows are made again at the next start.")
        committed = self._folding.live.position
        return committed if at is None else min(at, committed)

    async def _live_at(self, at: int | None) -> LiveRows:
        """The live rows, now or at a position; who looks at one asks for several rows of it."""
        position = self._bounded(at)
        for live in (self._folding.live, self._past):
            if live is not None and live.position == position:
                return live
        models = list(self._models.values())
        self._past = past = await self._store.read(live_rows_at, self._store.snapshots, models, position)
        return past


def live_rows_at(connection: Connection, snapshots: Snapshots, models: Sequence[ReadModel], position: int) -> LiveRows:
    """The live rows at a position: the checkpoint before it, and a fold of the events since."""
    live = LiveRows(models)
    checkpoint = snapshots.load(connection, CHECKPOINT, position)
    if checkpoint is not None:
        live.load(checkpoint)
    while live.position < position:
        span = units.Span(live.position, min(live.position + CHECKPOINT_EVENTS, position), units.END)
        live.take(units.read(connection, span, units.WITHOUT_CONTENT))
    return live


def open_spans_at(connection: Connection, models: Sequence[ReadModel], position: int) -> OpenSpans:
    """What lies in the spans that go beyond a position: events, and for a longer span the rows of shorter ones."""
    spans, opened = spanned(models), OpenSpans()
    for shorter, longer in pairwise(spans):
        where = (Where("position", ">", position - position % longer.span), Where("position", "<=", position))
        query = Query(where, "position", limit=longer.span // shorter.span)
        page = pages.read_page(connection, shorter, pages.page_statement(shorter, query, {}), {})
        opened.parts[longer.name] = rows_of(page, shorter.row)  # of one with the same span there are none
    if spans and (more := position % spans[0].span):
        events_after = units.Span(position - more, position, units.END)
        opened.records = units.read(connection, events_after, units.WITHOUT_CONTENT)
    return opened
