"""What the log's twin keeps in memory: units and contents in a ledger, row versions in tables."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

import orjson

from organism.errors import LogDamaged
from organism.log.batch import Batch
from organism.log.contents import ContentRow, content_of
from organism.log.encode import SEAL, decode, hand_over, parse
from organism.log.log import Query, ReadModel, Verification
from organism.log.select import KeyedRow, PayloadAt, has_text, matches, value_of
from organism.log.spans import TypeSpan
from organism.log.upcast import Upcaster
from organism.log.verify import Walk
from organism.log.versions import FOREVER, Changes, Standing, Written, first_version, folded_row
from organism.model.events import Content, Event


@dataclass(slots=True)
class Stored:
    """A unit as the other engine's row holds it."""

    first: int
    digest: bytes
    body: bytes
    hash: bytes | None


class Ledger:
    """Units in order and contents by position, in the shape of the other engine's rows, checked when they are read."""

    def __init__(self, upcaster: Upcaster) -> None:
        self.units: list[Stored] = []
        self.contents: dict[int, ContentRow] = {}
        self._streams: dict[str, int] = {}
        self._types: set[TypeSpan] = set()
        self._upcaster = upcaster

    def add(self, batch: Batch, chained: bytes) -> None:
        """Keep a commit."""
        last = batch.firsts[-1]
        for first, sealed, body in zip(batch.firsts, batch.digests, batch.bodies, strict=True):
            self.units.append(Stored(first, sealed, body, chained if first == last else None))
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
        begin = bisect_right(self.units, after + 1, key=lambda unit: unit.first) - 1
        for number in range(max(begin, 0), len(self.units)):
            events = self._decode(number)
            if events[0].position > until:
                return
            yield from (event for event in events if after < event.position <= until)

    def events_down(self, after: int, until: int) -> Iterator[Event]:
        """The same, newest first."""
        begin = bisect_right(self.units, until, key=lambda unit: unit.first) - 1
        for number in range(begin, -1, -1):
            events = self._decode(number)
            if events[-1].position <= after:
                return
            yield from (event for event in reversed(events) if after < event.position <= until)

    def fold(self, after: int, apply: Callable[[Event], object]) -> None:
        """Hand every event after ``after`` to ``apply``."""
        begin = bisect_right(self.units, after + 1, key=lambda unit: unit.first) - 1
        rows = [(unit.first, unit.body) for unit in self.units[max(begin, 0) :]]
        hand_over(rows, after, self._upcaster, apply)

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
            state.step(unit.first, unit.digest, unit.body, unit.hash)
            if unit.hash is not None and state.head <= after:
                state = Walk(key, unit.hash, state.head)
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
        unit = self.units[number]
        return decode(parse(unit.first, unit.digest, unit.body), self._upcaster)


class Tables:
    """Row versions in memory: of each row (number, until, row), the newest last."""

    def __init__(self, models: Sequence[ReadModel]) -> None:
        self._models = {model.name: model for model in models}
        self._rows: dict[str, dict[str, list[tuple[int, int, Written]]]] = {model.name: {} for model in models}
        self._key_of: dict[str, dict[int, str]] = {model.name: {} for model in models}

    def add(self, changes: Mapping[str, Changes]) -> None:
        """Keep what a commit made of the rows."""
        for name, changed in changes.items():
            model, rows, key_of = self._models[name], self._rows[name], self._key_of[name]
            for number, key, written in changed.versions:
                rows.setdefault(key, []).append((number, FOREVER, written))
                key_of[number] = key
            for ended, end in changed.ended:
                versions = rows[key_of[ended]]
                nth = bisect_left(versions, ended, key=itemgetter(0))
                versions[nth] = (ended, end, versions[nth][2])
            for row in changed.final:
                shown = model.show(row)
                position = shown["position"]
                written = (orjson.dumps(shown), b"", position, row[1:])
                rows[row[0]] = [(first_version(position), FOREVER, written)]

    def newest(self, model: str, key: str) -> Standing | None:
        """The newest version of a row; None if there never was one."""
        versions = self._rows[model].get(key)
        if not versions:
            return None
        number, until, written = versions[-1]
        return number, folded_row(*written[:2]) if until == FOREVER else None

    def rows(self, model: str, at: int) -> list[KeyedRow]:
        """All rows as they stood at a position."""
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
