"""The log's twin without a disk: the same guarantees but durability, for tests and for organisms that may forget."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter

import orjson

from organism.errors import LogDamaged
from organism.log.batch import Batch, Heads, Intake, TypeSpan
from organism.log.chain import GENESIS, RandomBytes, Salts
from organism.log.encode import SEAL, ContentRow, Upcaster, content_of, decode, parse
from organism.log.journal import Journal
from organism.log.log import EventFilter, Page, Query, ReadModel, Row, Verification, wants
from organism.log.select import KeyedRow, PayloadAt, finish, has_text, matches, select_page, value_of
from organism.log.snapshots import SNAPSHOTS_KEPT, LiveRows
from organism.log.verify import Walk
from organism.log.versions import (
    FOREVER,
    Changes,
    RowVersions,
    Version,
    Written,
    first_version,
    folded_row,
    hold_whole,
)
from organism.model.events import Content, Event


class Ledger:
    """Units in order and contents by position, in the shape of the other engine's rows, checked when they are read."""

    def __init__(self, upcaster: Upcaster) -> None:
        self.units: list[tuple[int, bytes, bytes, bytes | None]] = []
        """Where each begins, its digest, its body, and the commit's hash if it is the last one of it."""
        self.contents: dict[int, ContentRow] = {}
        self._streams: dict[str, int] = {}
        self._types: set[TypeSpan] = set()
        self._upcaster = upcaster

    def add(self, batch: Batch, chained: bytes) -> None:
        last = batch.firsts[-1]
        for first, sealed, body in zip(batch.firsts, batch.digests, batch.bodies, strict=True):
            self.units.append((first, sealed, body, chained if first == last else None))
        for position, owner, salt, json, xml in batch.contents:
            self.contents[position] = (owner, salt, json, xml, None)
        self._types.update(batch.types)
        self._streams.update((stream, last) for stream, _, last in batch.streams)

    def head_of(self, stream: str) -> int:
        """The position of the stream's last event; 0 if there is no such stream."""
        return self._streams.get(stream, 0)

    def type_spans(self, types: Sequence[str], low: int, high: int) -> list[int]:
        """The spans that hold events of these types, in order."""
        return sorted({span for kind, span in self._types if kind in types and low <= span <= high})

    def events(self, after: int, until: int) -> Iterator[Event]:
        """Events with after < position ≤ until."""
        begin = bisect_right(self.units, after + 1, key=itemgetter(0)) - 1
        for number in range(max(begin, 0), len(self.units)):
            events = self._decode(number)
            if events[0].position > until:
                return
            yield from (event for event in events if after < event.position <= until)

    def events_down(self, after: int, until: int) -> Iterator[Event]:
        begin = bisect_right(self.units, until, key=itemgetter(0)) - 1
        for number in range(begin, -1, -1):
            events = self._decode(number)
            if events[-1].position <= after:
                return
            yield from (event for event in reversed(events) if after < event.position <= until)

    def fill(self, event: Event) -> Event:
        """Give the event its content, checked against the digest that it carries."""
        if SEAL in event.data:
            event.content = self._checked(event.position, event.data[SEAL])
        return event

    def readable(self, digests: Mapping[int, str]) -> dict[int, tuple[bytes, bytes]]:
        """(json, xml) by position, checked against the digests; what was erased is missing."""
        contents = {position: self._checked(position, digest) for position, digest in digests.items()}
        return {position: (c.json, c.xml) for position, c in contents.items() if not c.erased}

    def _checked(self, position: int, digest: str) -> Content:
        return content_of(position, digest, self.contents.get(position), self._event_at)

    def _event_at(self, position: int) -> Event | None:
        return next(self.events(position - 1, position), None)

    def payload(self, position: int) -> bytes | None:
        """The content JSON of the event at ``position``; None if it was erased."""
        found = self.contents.get(position)
        return found[2] if found is not None and found[1] else None

    def verify(self, key: bytes, after: int) -> Verification:
        """Check every commit's hash, every unit's digest and every content after ``after``."""
        state = Walk(key)
        for unit in self.units:
            state.step(*unit)
            if unit[3] is not None and state.head <= after:
                state = Walk(key, unit[3], state.head)
        state.finish()
        if not state.damage:
            state.damage += self._unfit(after, state.head)
        return Verification(state.head, state.head - after, state.commits, tuple(state.damage))

    def _unfit(self, after: int, until: int) -> Iterator[str]:
        for event in self.events(after, until):
            try:
                self.fill(event)
            except LogDamaged as damage:
                yield damage.message

    def _decode(self, number: int) -> list[Event]:
        first, sealed, body, _ = self.units[number]
        return decode(parse(first, sealed, body), self._upcaster)


class Tables:
    """Row versions in memory: of each row (number, until, row), the newest last."""

    def __init__(self, models: Sequence[ReadModel]) -> None:
        self._models = {model.name: model for model in models}
        self._rows: dict[str, dict[str, list[tuple[int, int, Written]]]] = {model.name: {} for model in models}
        self._key_of: dict[str, dict[int, str]] = {model.name: {} for model in models}

    def add(self, changes: Mapping[str, Changes]) -> None:
        for name, changed in changes.items():
            model, rows, key_of = self._models[name], self._rows[name], self._key_of[name]
            for number, key, written in changed.versions:
                rows.setdefault(key, []).append((number, FOREVER, written))
                key_of[number] = key
            for ended, end in changed.ended:
                versions = rows[key_of[ended]]
                nth = bisect_left(versions, ended, key=itemgetter(0))
                versions[nth] = (ended, end, versions[nth][2])
            for row in changed.shown:
                shown = model.show(row)
                position = shown["position"]
                written = (orjson.dumps(shown), b"", position, row[1:])
                rows[row[0]] = [(first_version(position), FOREVER, written)]

    def newest(self, model: str, key: str) -> Version | None:
        """The newest version of a row; None if there never was one."""
        versions = self._rows[model].get(key)
        if not versions:
            return None
        number, until, written = versions[-1]
        return number, folded_row(*written[:2]) if until == FOREVER else None

    def rows(self, model: str, at: int) -> list[KeyedRow]:
        return [
            (key, written, number)
            for key, versions in self._rows[model].items()
            for number, until, written in versions
            if number < first_version(at + 1) and until > at
        ]

    def search(self, model: ReadModel, query: Query, at: int, payload: PayloadAt) -> list[KeyedRow]:
        """The rows that fulfil what the query says of texts and of other models."""
        found = self.rows(model.name, at)
        for among in query.among:
            other = self._models[among.model]
            keys = {key for key, written, _ in self.rows(other.name, at) if matches(other, written, among.where)}
            found = [row for row in found if value_of(model, row[1], among.column) in keys]
        if not query.text:
            return found
        if model.text_in is None:
            return [row for row in found if has_text(payload(row[1][2]), query.text)]
        name, column = model.text_in
        named = {
            value_of(self._models[name], written, column)
            for _, written, _ in self.rows(name, at)
            if has_text(payload(written[2]), query.text)
        }
        return [row for row in found if row[0] in named]


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
        wanted = wanted or EventFilter()
        end = self.head if until is None else min(until, self.head)
        events = self._ledger.events_down(after, end) if reverse else self._ledger.events(after, end)
        found = islice(filter(wants(wanted), events), limit)
        return [self._ledger.fill(event) for event in found] if wanted.content else list(found)

    def follow(self, after: int, wanted: EventFilter | None = None) -> AsyncIterator[list[Event]]:
        return self._tail.follow(after, wanted, self.read)

    async def row(self, model: str, key: str, at: int | None = None) -> bytes | None:
        found = self._find(model, key, at)
        return None if found is None else finish(found, self._ledger.payload)

    async def rows(self, model: str, query: Query) -> Page:
        kind, payload = self._models[model], self._ledger.payload
        if kind.is_live:
            return select_page(kind, self._live_rows(kind, query.at), query)
        hold_whole(self._versions.is_whole)
        return select_page(kind, self._tables.search(kind, query, self._bounded(query.at), payload), query, payload)

    async def private_row(self, model: str, key: str) -> Row | None:
        found = self._find(model, key, None)
        return None if found is None else folded_row(*found[:2])

    def _find(self, name: str, key: str, at: int | None) -> Written | None:
        model = self._models[name]
        if not model.is_live:
            hold_whole(self._versions.is_whole)
        rows = self._live_rows(model, at) if model.is_live else self._tables.rows(name, self._bounded(at))
        return next((written for known, written, _ in rows if known == key), None)

    def _live_rows(self, model: ReadModel, at: int | None) -> list[KeyedRow]:
        if self._bounded(at) == self.head:
            return list(self._live.rows(model))
        live = LiveRows([model])
        if past := list(self._ledger.events(0, self._bounded(at))):
            live.take(past)
        return list(live.rows(model))

    def _bounded(self, at: int | None) -> int:
        """The position, or the log's last one if there is none so high."""
        return self.head if at is None else min(at, self.head)

    async def type_spans(self, types: Sequence[str], low: int, high: int, limit: int) -> list[int]:
        return self._ledger.type_spans(types, low, high)[:limit]

    async def position_at(self, at_us: int) -> int:
        newest_first = self._ledger.events_down(0, self.head)
        return next((event.position for event in newest_first if event.at <= at_us), 0)

    async def content(self, position: int) -> tuple[bytes, bytes] | None:
        events = self._ledger.events(position - 1, min(position, self.head))
        digests = {event.position: event.data["content"] for event in events if "content" in event.data}
        return self._ledger.readable(digests).get(position)

    async def contents(self, digests: Mapping[int, str]) -> dict[int, tuple[bytes, bytes]]:
        return self._ledger.readable(digests)

    async def fold(self, after: int, apply: Callable[[Event], object]) -> None:
        for event in self._ledger.events(after, self.head):
            apply(event)

    async def save_snapshot(self, name: str, position: int, body: bytes) -> None:
        kept = self._snapshots.setdefault(name, {})
        kept[position] = body
        for old in sorted(kept)[:-SNAPSHOTS_KEPT]:
            del kept[old]

    async def load_snapshot(self, name: str) -> tuple[int, bytes] | None:
        fitting = {position: body for position, body in self._snapshots.get(name, {}).items() if position <= self.head}
        return max(fitting.items()) if fitting else None

    async def verify(self, after: int = 0) -> Verification:
        return self._ledger.verify(self._key, after)

    async def close(self) -> None:
        await self._drain()
        self._tail.close()

    def _write(self, batch: Batch) -> None:
        """Keep the batch; ``_committed`` is called in a later iteration, as it is with a disk."""
        self._hash = batch.hash(self._key, self._hash)
        self._ledger.add(batch, self._hash)
        self._tables.add(batch.changes)
        self._loop.call_soon(self._committed, batch)
