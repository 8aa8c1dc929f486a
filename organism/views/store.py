"""The store over SQLite: rows lie in the log's own file, written with the commits of their events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from organism.log import units
from organism.log.commits import Store, doubt
from organism.log.snapshots import CHECKPOINT, Snapshot, Snapshots
from organism.sqlite.driver import Connection
from organism.views import pages
from organism.views.tables import columns_of, definition, fingerprint, stored, trigger
from organism.views.versions import CHECKPOINT_EVENTS, LiveRows, RowFolding, RowVersions, folded_row, hold_whole, write
from organism.views.views import Page, Query, ReadModel, Row

ANY_KEY: Final = "\U0010ffff"  # No key is above it, so every row is looked up


class SqliteViews:
    """The rows of these models: a ``ViewStore``, and the ``Projections`` of the log that it is given to."""

    def __init__(self, models: Sequence[ReadModel]) -> None:
        self.definition = [text for model in stored(models) for text in definition(model)]
        self.versions = {model.name: fingerprint(model) for model in models}
        self.columns = [name for model in stored(models) for name in columns_of(model)]
        self.triggers = [trigger(model) for model in stored(models)]
        self._models = {model.name: model for model in models}
        self._store: Store
        self._folding: RowFolding
        self._is_whole = True

    async def row(self, model: str, key: str, at: int | None = None) -> bytes | None:
        found = await self._row(self._models[model], key, at)
        return None if found is None else found[0]

    async def private_row(self, model: str, key: str) -> Row | None:
        found = await self._row(self._models[model], key, None)
        return None if found is None else folded_row(*found)

    async def rows(self, model: str, query: Query) -> Page:
        kind = self._models[model]
        if kind.is_live:
            return pages.live_page(kind, (await self._live_at(query.at)).rows(kind), query)
        statement = pages.page_statement(kind, replace(query, at=self._bounded(query.at)), self._models)
        read = self._store.read if query.text else self._store.read_quickly
        return await read(pages.read_page, statement)

    async def begin(self, store: Store, position: int) -> RowFolding:
        """The folding from ``position`` on, which becomes the one whose rows are shown."""
        models = list(self._models.values())
        versions = RowVersions(models, partial(store.read_now, pages.newest_version), position)
        for name, greatest in (await store.read(pages.greatest_keys, models)).items():
            versions.current[name].greatest = greatest
        live = await store.read(live_rows_at, store.snapshots, models, position)
        versions.is_whole = self._is_whole
        keep = partial(store.post, partial(store.snapshots.save, keeps_all=True))
        self._store, self._folding = store, RowFolding(versions, live, keep, self._doubt)
        return self._folding

    def again(self, connection: Connection, snapshots: Snapshots | None) -> RowFolding:
        """The folding that makes all rows again."""
        models = list(self._models.values())
        versions = RowVersions(models, partial(pages.newest_version, connection))
        for current in versions.current.values():
            current.greatest = ANY_KEY

        def keep(checkpoint: Snapshot) -> None:
            if snapshots is not None:
                snapshots.save(connection, checkpoint, keeps_all=True)

        return RowFolding(versions, LiveRows(models), keep)

    async def _row(self, model: ReadModel, key: str, at: int | None) -> pages.StoredRow | None:
        if model.is_live:
            row = (await self._live_at(at)).row(model, key)
            return None if row is None else write(model, row)[:2]
        return await self._store.read_quickly(pages.read_row, model, key, self._bounded(at))

    def _doubt(self) -> None:
        """A fold has failed: nothing is shown any more, and the next start makes all rows again."""
        self._is_whole = False
        self._store.post(doubt)

    def _bounded(self, at: int | None) -> int:
        """The position, or the last one that was told: a commit that is not told yet is not shown either."""
        versions = self._folding.versions
        hold_whole(versions.is_whole)
        told = versions.committed
        return told if at is None else min(at, told)

    async def _live_at(self, at: int | None) -> LiveRows:
        """The live rows as they stand, or stood at a position."""
        folding = self._folding
        if at is None or at >= folding.versions.committed:
            return folding.live
        return await self._store.read(live_rows_at, self._store.snapshots, list(self._models.values()), at)


def live_rows_at(connection: Connection, snapshots: Snapshots, models: Sequence[ReadModel], position: int) -> LiveRows:
    """The live rows as they stood at a position of the log: the checkpoint before it, and the events since."""
    live = LiveRows(models)
    checkpoint = snapshots.load(connection, CHECKPOINT, position)
    if checkpoint is not None:
        live.load(checkpoint)
    while live.position < position:
        span = units.Span(live.position, min(live.position + CHECKPOINT_EVENTS, position), units.END)
        live.take(units.read(connection, span, units.WITHOUT_CONTENT))
    return live
