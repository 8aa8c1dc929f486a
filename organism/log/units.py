"""Reads of the log's tables: units, checked against their digests, and contents, checked against their events'."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

from organism.errors import LogDamaged
from organism.events import vocabulary as events
from organism.events.record import Content, Record
from organism.events.stored import StoredUnit
from organism.log.encode import REMEDY, ContentRow, check, check_order, content_of, parse
from organism.log.log import EventFilter, Origins, wants
from organism.sqlite.driver import Connection, Parameters, json_text, statements

END: Final = (1 << 63) - 1
PORTION_UNITS: Final = 512
FOLD_UNITS: Final = 2048
WITHOUT_CONTENT: Final = EventFilter()
NO_ORIGINS: Final[Origins] = MappingProxyType({})
REMEMBERED_DIGESTS: Final = 8192  # Two megabytes
Row = tuple[Any, ...]
Digests = dict[int, str]  # The digest of each content by its position
_SQL: Final = statements("log", "log.sql")


@dataclass(frozen=True, slots=True)
class Span:
    """Positions with after < position ≤ until, of which at most ``limit`` events are wanted."""

    after: int
    until: int
    limit: int
    is_reverse: bool = False


def read(
    connection: Connection, span: Span, wanted: EventFilter, origins: Origins = NO_ORIGINS
) -> list[Record[events.Event]]:
    """The events of the span that pass the filter, newest first if it is reverse."""
    is_wanted = wants(wanted, origins)
    found: list[Record[events.Event]] = []
    low, high = span.after + 1, span.until
    while low <= high and len(found) < span.limit:
        records: list[Record[events.Event]] = []
        with closing(connection.execute(*_portion(span, wanted, origins, low, high))) as rows:
            for unit in _units(rows, wanted):
                ordered = unit.records()[::-1] if span.is_reverse else unit.records()
                found += [each for each in ordered if span.after < each.position <= span.until and is_wanted(each)]
                records += ordered
                if len(found) >= span.limit:
                    break
        if not wanted.threads:
            _check_dense(records[::-1] if span.is_reverse else records, low, high, is_reverse=span.is_reverse)
        if not records:
            break
        if span.is_reverse:
            high = records[-1].position - 1
        else:
            low = records[-1].position + 1
    del found[span.limit :]
    if wanted.content:
        contents = _contents(connection, {record.position: record.digest for record in found if record.digest})
        for record in found:
            record.content = contents.get(record.position)
    return found


def content(connection: Connection, position: int) -> tuple[bytes, bytes] | None:
    """(json, xml) at the position; None if there is none or it was erased."""
    return contents_at(connection, [position], {}).get(position)


def contents(connection: Connection, digests: Mapping[int, str]) -> dict[int, tuple[bytes, bytes]]:
    """(json, xml) by position; what was erased is missing."""
    found = _contents(connection, digests)
    return {position: (each.json, each.xml) for position, each in found.items() if not each.erased}


def contents_at(connection: Connection, positions: Iterable[int], digests: Digests) -> dict[int, tuple[bytes, bytes]]:
    """(json, xml) by position; what was erased, and events without content, are missing.

    ``digests`` are those of contents whose units were checked by earlier reads; it remembers the ones of this read.
    """
    wanted = sorted(positions)
    known = {position: sealed for position in wanted if (sealed := digests.get(position))}
    unknown = [position for position in wanted if position not in known]
    missing = set(unknown)
    for unit in _units_of(connection, unknown):  # many of a page may lie in one unit: it is read once
        found = unknown[bisect_left(unknown, unit.first) : bisect_left(unknown, unit.last + 1)]
        missing.difference_update(found)
        named = unit.digests()
        known.update((position, named[position]) for position in found if position in named)
    if missing:
        raise LogDamaged(f"The unit that holds position {min(missing)} is missing. {REMEDY}")
    if len(digests) > REMEMBERED_DIGESTS:
        digests.clear()
    digests.update(known)
    return contents(connection, known)


def head_of(connection: Connection, stream: str) -> int:
    """The position of the stream's last event; 0 for a stream that is not indexed."""
    ((first,),) = connection.execute(_SQL["stream_head"], (stream,))
    if first is None:
        return 0
    records = _decode(connection.execute(_SQL["unit_at"], (first,)))
    return max(record.position for record in records if record.stream == stream)


def origins(connection: Connection, streams: Sequence[str]) -> Origins:
    """The streams whose past these streams share, directly or through others."""
    found: dict[str, int] = {}
    bounds = dict.fromkeys(streams, END)
    while bounds:
        rows = connection.execute(_SQL["stream_begins"], (json_text(list(bounds)),))
        shared: dict[str, int] = {}
        for stream, *unit in rows:
            fork = next(record.event for record in parse(*unit).records() if record.stream == stream)
            if isinstance(fork, events.ThreadForked) and (until := min(fork.until, bounds[stream])) > found.get(
                fork.source, 0
            ):
                found[fork.source] = shared[fork.source] = until
        bounds = shared
    return found


def positions_owned(connection: Connection, owner: str, until: int) -> list[int]:
    """The positions of the owner's contents, up to one."""
    return [position for (position,) in connection.execute(_SQL["owned"], (until, owner))]


def greatest_stream(connection: Connection) -> str:
    """A stream above this one was never written."""
    ((found,),) = connection.execute(_SQL["greatest_stream"])
    return found or ""


def position_at(connection: Connection, at_us: int, head: int) -> int:
    """The last position up to ``head`` whose event is not after this time."""
    low, high = 1, head + 1  # every unit before the one at ``low`` is not after it, the one at ``high`` is
    while low < high:
        records = _decode(connection.execute(_SQL["unit_at"], ((low + high) // 2,)))
        if records[0].at <= at_us:
            low = records[-1].position + 1
        else:
            high = records[0].position
    return low - 1


def type_spans(
    connection: Connection, types: Sequence[type[events.Event]], low: int, high: int, limit: int
) -> list[int]:
    """The spans from ``low`` to ``high`` that hold events of these types, in order."""
    names = json_text([each.event_type for each in types])
    return [span for (span,) in connection.execute(_SQL["type_spans"], (names, low, high, limit))]


def first_of_unit(connection: Connection, position: int) -> int:
    """The first position of the unit that holds ``position``; ``position`` if there is none."""
    row = connection.execute(_SQL["unit_at"], (position,)).fetchone()
    return position if row is None else int(row[0])


def unit_rows(connection: Connection, after: int, until: int) -> list[tuple[int, bytes]]:
    """(First position, row) of the next units that begin after ``after``, each checked against its digest."""
    rows = connection.execute(_SQL["units_after"], (after, until, FOLD_UNITS)).fetchall()
    if rows:
        check_order(after, rows)
    for first, sealed, body, _ in rows:
        check(first, sealed, body)
    return [(first, body) for first, _, body, _ in rows]


def records_at(connection: Connection, positions: Iterable[int]) -> dict[int, Record[events.Event]]:
    """The records at these positions, as far as there are any, without content."""
    units = _units_of(connection, sorted(positions))
    return {record.position: record for unit in units for record in unit.records()}


def _portion(span: Span, wanted: EventFilter, origins: Origins, low: int, high: int) -> tuple[str, Parameters]:
    """The statement for the next units that hold positions from low to high."""
    direction, portion = "down" if span.is_reverse else "up", min(span.limit, PORTION_UNITS)
    if not wanted.threads:
        return _SQL[f"units_{direction}"], (low, high, portion)
    streams = {**origins, **dict.fromkeys(wanted.threads, END)}
    listed = json_text(list(streams.items()))
    return _SQL[f"streams_{direction}"], (listed, low, high, PORTION_UNITS if wanted.types else portion)


def _units_of(connection: Connection, positions: Sequence[int]) -> list[StoredUnit]:
    """The units that hold these positions."""
    rows = connection.execute(_SQL["units_of"], (json_text(positions),))
    return [parse(*row) for row in rows]


def _decode(rows: Iterable[Row]) -> list[Record[events.Event]]:
    return [record for first, sealed, body, *_ in rows for record in parse(first, sealed, body).records()]


def _contents(connection: Connection, digests: Mapping[int, str]) -> dict[int, Content]:
    """The content at each position, checked against the digest that its event carries."""
    if not digests:
        return {}
    found = connection.execute(_SQL["contents"], (json_text(list(digests)),))
    rows = {position: row for position, *row in found}
    records = _of_erasures(connection, rows)
    return {
        position: content_of(position, digest, rows.get(position), records.get) for position, digest in digests.items()
    }


def _of_erasures(connection: Connection, rows: Mapping[int, ContentRow]) -> dict[int, Record[events.Event]]:
    """The records that tell whether an empty content was erased."""
    erased = {position: row[-1] for position, row in rows.items() if isinstance(row[-1], int)}
    return records_at(connection, {*erased, *erased.values()}) if erased else {}


def _units(rows: Iterable[Row], wanted: EventFilter) -> Iterator[StoredUnit]:
    """The units of rows whose text may name one of the types, and the last one, behind which the next portion begins.

    In a long stream with few such events, searching the text costs a tenth of decoding it.
    """
    tags = [b'"%b"' % each.event_type.encode() for each in wanted.types] if wanted.threads else []
    passed: Row | None = None
    for row in rows:
        passed = row if tags and not any(tag in row[2] for tag in tags) else None
        if passed is None:
            yield parse(*row[:3])
    if passed is not None:
        yield parse(*passed[:3])


def _check_dense(records: Sequence[Record[events.Event]], low: int, high: int, *, is_reverse: bool) -> None:
    """Raise ``LogDamaged`` if a unit is missing between, or where the portion has to begin."""
    found = [record.position for record in records]
    begin = low if not (records and is_reverse) else found[0]
    end = high if not records or is_reverse else found[-1]
    begin, end = min([begin, *found[:1]]), max([end, *found[-1:]])
    if end - begin + 1 != len(found):
        missing = next((a + 1, b - 1) for a, b in pairwise([begin - 1, *found, end + 1]) if b != a + 1)
        raise LogDamaged(f"The positions {missing[0]} to {missing[1]} are missing. {REMEDY}")
