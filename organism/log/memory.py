"""The log's twin without a disk: the same guarantees but durability, for tests and for organisms that may forget."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from itertools import islice
from typing import Final

from organism.log.batch import Batch, Intake
from organism.log.chain import GENESIS, RandomBytes, Salts
from organism.log.heads import Heads
from organism.log.journal import Journal
from organism.log.live import LiveRows
from organism.log.log import EventFilter, Page, Query, ReadModel, Row, Verification
from organism.log.select import KeyedRow, finish, select_page
from organism.log.shelf import Ledger, Tables
from organism.log.tail import wants
from organism.log.upcast import Upcaster
from organism.log.versions import RowVersions, Written, folded_row, hold_whole
from organism.model.events import Event

SNAPSHOTS_KEPT: Final = 2


class MemoryLog(Journal):
    """A log in memory. Made by ``open``; everything is gone with it."""

    def __init__(self, models: Sequence[ReadModel], random_bytes: RandomBytes, upcaster: Upcaster) -> None:
        self._ledger = Ledger(upcaster)
        self._tables = Tables(models)
        self._models = {model.name: model for model in models}
        self._snapshots: dict[str, dict[int, bytes]] = {}
        self._key = random_bytes(32)
        self._hash = GENESIS
        self._versions = RowVersions(models, self._tables.newest)
        intake = Intake(Heads(self._ledger.head_of), self._versions, Salts(random_bytes), 0)
        super().__init__(intake, LiveRows(models), random_bytes(16).hex(), 0)

    @classmethod
    async def open(
        cls,
        models: Sequence[ReadModel] = (),
        *,
        random_bytes: RandomBytes = os.urandom,
        upcaster: Upcaster | None = None,
    ) -> MemoryLog:
        """An empty log."""
        return cls(models, random_bytes, upcaster or Upcaster())

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
        wanted = wanted or EventFilter()
        end = self.head if until is None else min(until, self.head)
        events = self._ledger.events_down(after, end) if reverse else self._ledger.events(after, end)
        found = islice(filter(wants(wanted), events), limit)
        return [self._ledger.fill(event) for event in found] if wanted.content else list(found)

    def follow(self, after: int, wanted: EventFilter | None = None) -> AsyncIterator[list[Event]]:
        """Lists of events after ``after``: the past first, then each commit's as it becomes known.

        Ends when the log closes. A list may be empty: it says that the positions up to the head passed the filter by.
        """
        return self._tail.follow(after, wanted, self.read)

    async def row(self, model: str, key: str, at: int | None = None) -> bytes | None:
        """The public JSON of one row, or None; ``at`` a position if one is given (L10)."""
        found = self._find(model, key, at)
        return None if found is None else finish(found, self._ledger.payload)

    async def rows(self, model: str, query: Query) -> Page:
        """A page of rows."""
        kind, payload = self._models[model], self._ledger.payload
        if kind.is_live:
            return select_page(kind, self._live_rows(kind, query.at), query)
        hold_whole(self._versions.is_whole)
        return select_page(kind, self._tables.search(kind, query, self._moment(query.at), payload), query, payload)

    async def private_row(self, model: str, key: str) -> Row | None:
        """One row with its private fields, for decisions that rest on what is no longer in memory."""
        found = self._find(model, key, None)
        return None if found is None else folded_row(*found[:2])

    def _find(self, name: str, key: str, at: int | None) -> Written | None:
        model = self._models[name]
        if not model.is_live:
            hold_whole(self._versions.is_whole)
        rows = self._live_rows(model, at) if model.is_live else self._tables.rows(name, self._moment(at))
        return next((written for known, written, _ in rows if known == key), None)

    def _live_rows(self, model: ReadModel, at: int | None) -> list[KeyedRow]:
        if self._moment(at) == self.head:
            return list(self._live.rows(model))
        live = LiveRows([model])
        if past := list(self._ledger.events(0, self._moment(at))):
            live.take(past)
        return list(live.rows(model))

    def _moment(self, at: int | None) -> int:
        """The position, or the log's last one if there is none so high."""
        return self.head if at is None else min(at, self.head)

    async def type_spans(self, types: Sequence[str], low: int, high: int, limit: int) -> list[int]:
        """See ``History.type_spans``."""
        return self._ledger.type_spans(types, low, high)[:limit]

    async def position_at(self, at_us: int) -> int:
        """The last position whose event is not after this time (µs since 1970); 0 if there is none."""
        newest_first = self._ledger.events_down(0, self.head)
        return next((event.position for event in newest_first if event.at <= at_us), 0)

    async def content(self, position: int) -> tuple[bytes, bytes] | None:
        """(json, xml) of the content of the event at ``position``; None if there is none or it was erased."""
        events = self._ledger.events(position - 1, min(position, self.head))
        digests = {event.position: event.data["content"] for event in events if "content" in event.data}
        return self._ledger.readable(digests).get(position)

    async def contents(self, digests: Mapping[int, str]) -> dict[int, tuple[bytes, bytes]]:
        """See ``History.contents``."""
        return self._ledger.readable(digests)

    async def fold(self, after: int, apply: Callable[[Event], object]) -> None:
        """Hand every event after ``after`` to ``apply``, in order and without content: the fastest way to fold a log.

        It is the same ``Event`` each time, with other fields: ``apply`` may keep its data, never the event.
        """
        self._ledger.fold(after, apply)

    async def save_snapshot(self, name: str, position: int, body: bytes) -> None:
        """Keep a disposable snapshot of a fold at ``position`` (the last two are kept)."""
        kept = self._snapshots.setdefault(name, {})
        kept[position] = body
        for old in sorted(kept)[:-SNAPSHOTS_KEPT]:
            del kept[old]

    async def load_snapshot(self, name: str) -> tuple[int, bytes] | None:
        """The newest snapshot that is not ahead of the head, or None."""
        fitting = {position: body for position, body in self._snapshots.get(name, {}).items() if position <= self.head}
        return max(fitting.items()) if fitting else None

    async def verify(self, after: int = 0) -> Verification:
        """Check every commit's hash and every event's digest after ``after``."""
        return self._ledger.verify(self._key, after)

    async def close(self) -> None:
        """Write what is queued, anchor the head, release the place."""
        await self._drain()
        self._tail.close()

    def _write(self, batch: Batch) -> None:
        """Keep the batch; ``_committed`` is called in a later iteration, as it is with a disk."""
        self._hash = batch.hash(self._key, self._hash)
        self._ledger.add(batch, self._hash)
        self._tables.add(batch.changes)
        self._loop.call_soon(self._committed, batch)
