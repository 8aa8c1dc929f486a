"""Reading units from the log's tables, each checked against its digest."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import orjson

from organism.errors import LogDamaged
from organism.events.entity import Entity
from organism.events.record import Content, Record
from organism.events.vocabulary import Event
from organism.log.driver import Connection, statements
from organism.log.encode import REMEDY, check, content_of, hold_order, parse
from organism.log.log import EventFilter, wants

END: Final = (1 << 63) - 1
PORTION_UNITS: Final = 512
FOLD_UNITS: Final = 2048
_SQL: Final = statements("log.sql")


@dataclass(frozen=True, slots=True)
class Span:
    """Positions with after < position ≤ until, of which at most ``limit`` events are wanted."""

    after: int
    until: int
    limit: int
    is_reverse: bool = False


class Units(Entity):
    """Reads over one connection."""

    connection: Connection

    def read(self, span: Span, wanted: EventFilter) -> list[Record[Event]]:
        """The events of the span that are wanted, newest first if it is reverse."""
        is_wanted = wants(wanted)
        found: list[Record[Event]] = []
        for records in self._portions(span, wanted):
            ordered = reversed(records) if span.is_reverse else records
            found += [each for each in ordered if span.after < each.position <= span.until and is_wanted(each)]
            if len(found) >= span.limit:
                break
        del found[span.limit :]
        if wanted.content:
            contents = self._contents({record.position: record.digest for record in found if record.digest})
            for record in found:
                record.content = contents.get(record.position)
        return found

    def content(self, position: int) -> tuple[bytes, bytes] | None:
        """(json, xml) at the position; None if there is none or it was erased."""
        return self.contents_at([position]).get(position)

    def contents(self, digests: Mapping[int, str]) -> dict[int, tuple[bytes, bytes]]:
        """(json, xml) by position; what was erased is missing."""
        return {position: (c.json, c.xml) for position, c in self._contents(digests).items() if not c.erased}

    def contents_at(self, positions: Iterable[int]) -> dict[int, tuple[bytes, bytes]]:
        """(json, xml) by position; what was erased, and events without content, are missing."""
        wanted = sorted(positions)
        rows = self.connection.execute(_SQL["units_of"], (orjson.dumps(wanted).decode(),))
        digests: dict[int, str] = {}
        missing = set(wanted)
        for first, sealed, body in rows:  # many of a page may lie in one unit: it is read once
            unit = parse(first, sealed, body)
            found = wanted[bisect_left(wanted, first) : bisect_left(wanted, unit.last + 1)]
            missing.difference_update(found)
            named = unit.digests()
            digests.update((position, named[position]) for position in found if position in named)
        if missing:
            raise LogDamaged(f"The unit that holds position {min(missing)} is missing. {REMEDY}")
        return self.contents(digests)

    def head_of(self, stream: str) -> int:
        """The position of the stream's last event; 0 for a stream that is not indexed."""
        row = self.connection.execute(_SQL["stream_head"], (stream,)).fetchone()
        if row is None or row[0] is None:
            return 0
        unit = self.connection.execute(_SQL["unit_at"], (row[0],)).fetchone()
        is_wanted = wants(EventFilter(threads=(stream,)))
        return max(record.position for record in self._decode([unit] if unit else []) if is_wanted(record))

    def position_at(self, at_us: int, head: int) -> int:
        """The last position up to ``head`` whose event is not after this time."""
        low, high = 1, head + 1  # every unit before the one at ``low`` is not after it, the one at ``high`` is
        while low < high:
            unit = self.connection.execute(_SQL["unit_at"], ((low + high) // 2,)).fetchone()
            records = self._decode([unit] if unit else [])
            if records[0].at <= at_us:
                low = records[-1].position + 1
            else:
                high = records[0].position
        return low - 1

    def type_spans(self, types: Sequence[type[Event]], low: int, high: int, limit: int) -> list[int]:
        """The spans from ``low`` to ``high`` that hold events of these types, in order."""
        names = orjson.dumps([each.event_type for each in types]).decode()
        rows = self.connection.execute(_SQL["type_spans"], (names, low, high, limit))
        return [span for (span,) in rows.fetchall()]

    def begin_of(self, position: int) -> int:
        """The first position of the unit that holds ``position``; ``position`` if there is none."""
        row = self.connection.execute(_SQL["unit_at"], (position,)).fetchone()
        return position if row is None else int(row[0])

    def raw(self, after: int, until: int) -> list[tuple[int, bytes]]:
        """A large portion of (first position, row) of units that begin after ``after``, each fitting its digest."""
        rows = self.connection.execute(_SQL["bodies"], (after, until, FOLD_UNITS)).fetchall()
        if rows:
            hold_order(after, rows)
        for row in rows:
            check(*row)
        return [(first, body) for first, _, body in rows]

    def _portions(self, span: Span, wanted: EventFilter) -> Iterator[list[Record[Event]]]:
        low, high = span.after + 1, span.until
        while low <= high:
            rows = self._rows(span, wanted, low, high)
            records = self._decode(rows[::-1] if span.is_reverse else rows)
            if not wanted.threads:
                _check_dense(records, low, high, is_reverse=span.is_reverse)
            if not records:
                return
            yield records
            if span.is_reverse:
                high = records[0].position - 1
            else:
                low = records[-1].position + 1

    def _rows(self, span: Span, wanted: EventFilter, low: int, high: int) -> list[tuple[Any, ...]]:
        """The next portion of units that hold positions from low to high."""
        direction, portion = "down" if span.is_reverse else "up", min(span.limit, PORTION_UNITS)
        if not wanted.threads:
            return self.connection.execute(_SQL[f"units_{direction}"], (low, high, portion)).fetchall()
        names = orjson.dumps(wanted.threads).decode()
        values = (names, low, high, PORTION_UNITS if wanted.types else portion)
        rows = self.connection.execute(_SQL[f"streams_{direction}"], values).fetchall()
        return _naming(rows, wanted.types) if wanted.types else rows

    def _decode(self, rows: Sequence[tuple[Any, ...]]) -> list[Record[Event]]:
        return [record for first, sealed, body, *_ in rows for record in parse(first, sealed, body).records()]

    def _contents(self, digests: Mapping[int, str]) -> dict[int, Content]:
        """The content at each position, checked against the digest that its event carries."""
        positions = orjson.dumps(list(digests)).decode()
        rows = {position: row for position, *row in self.connection.execute(_SQL["contents"], (positions,))}
        return {
            position: content_of(position, digest, rows.get(position), self.record_at)
            for position, digest in digests.items()
        }

    def record_at(self, position: int) -> Record[Event] | None:
        """The record at the position, without content; None if there is none."""
        unit = self.connection.execute(_SQL["unit_at"], (position,)).fetchone()
        return next((record for record in self._decode([unit] if unit else []) if record.position == position), None)


def _naming(rows: list[tuple[Any, ...]], types: Sequence[type[Event]]) -> list[tuple[Any, ...]]:
    """The rows in whose text one of the types stands, and the last one, which says where the next portion begins.

    A stream may be long and what is looked for rare: a look at the text costs a tenth of reading it.
    """
    tags = [b'"%b"' % each.event_type.encode() for each in types]
    return [row for row in rows[:-1] if any(tag in row[2] for tag in tags)] + rows[-1:]


def _check_dense(records: Sequence[Record[Event]], low: int, high: int, *, is_reverse: bool) -> None:
    """Raise ``LogDamaged`` if a unit is missing between, or where the portion has to begin."""
    found = [record.position for record in records]
    begin = low if not (records and is_reverse) else found[0]
    end = high if not records or is_reverse else found[-1]
    begin, end = min([begin, *found[:1]]), max([end, *found[-1:]])
    if end - begin + 1 != len(found):
        missing = next((a + 1, b - 1) for a, b in pairwise([begin - 1, *found, end + 1]) if b != a + 1)
        raise LogDamaged(f"The positions {missing[0]} to {missing[1]} are missing. {REMEDY}")
