"""What goes into one commit: units in order, sealed in the loop, so that the disk's thread computes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec
import orjson

from organism.errors import StalePosition
from organism.events import vocabulary as events
from organism.events.record import Content, Record, Unit
from organism.events.stored import check_events
from organism.log.encode import Salts, SealedContent, encode, link, place
from organism.log.log import span_of
from organism.log.rows.versions import RowFolding
from organism.model.redact import Redactor

Touched = tuple[str, int, int]
"""A stream, the first position of a unit that holds events of it, and the position of the last of them."""
TypeSpan = tuple[str, int]  # A type of events, and a span that holds some
Erasure = tuple[int, int, str, int]
"""The span of positions whose contents are erased, their owner, and the position of the event that says so."""
GENERATION_STREAMS: Final = 4096
SAFE_FIELDS: Final = frozenset({"event", "outcome", "kind", "effect", "why", "status", "type", "decision"})
"""Fields whose values are the program's own words: they are never masked."""
TEXTLESS: Final = frozenset(
    {events.MessageSent, events.MessageStarted, events.MessageHandled, events.ThreadCreated, events.ThreadCompleted}
)
"""Events of ids, names and times, which hold no text."""


class Heads:
    """Stream → position of its last event, those on their way to the disk included.

    Two generations bound the memory: a stream that was not touched while the younger one filled up is forgotten once
    it is on the disk, where ``look_up`` finds it. One above ``greatest`` was never written: ids rise with time.
    """

    __slots__ = ("_look_up", "_old", "_young", "committed", "greatest")

    def __init__(self, look_up: Callable[[str], int]) -> None:
        self._look_up = look_up
        self._young: dict[str, int] = {}
        self._old: dict[str, int] = {}
        self.greatest = ""
        self.committed = 0  # the last position on the disk, where streams can be looked up

    def check(self, expect: Mapping[str, int | Unit]) -> None:
        """Raise ``StalePosition`` if any stream has moved on since."""
        for stream, seen in expect.items():
            head = self.of(stream)
            if head == seen:
                continue
            first, last = (seen.first, seen.last) if isinstance(seen, Unit) else (seen, seen)
            if not first <= head <= last:
                raise StalePosition(
                    f"The decision rests on position {last} of stream {stream!r}, which is at {head} by now."
                )

    def of(self, stream: str) -> int:
        """The position of the stream's last event; 0 for a stream that does not exist."""
        head = self._young.get(stream)
        if head is None:
            head = self._old.get(stream)
            if head is None:
                head = 0 if stream > self.greatest else self._look_up(stream)
            self.put(stream, head)
        return head

    def put(self, stream: str, position: int) -> None:
        self._young[stream] = position
        self.greatest = max(self.greatest, stream)
        if len(self._young) > GENERATION_STREAMS:
            kept = {stream: head for stream, head in self._old.items() if head > self.committed}
            self._old = kept | self._young
            self._young = {}


class TypeSpans:
    """What units add to the index of types: each type once a span.

    ``has_forks``: whether a stream may share the past of another.
    """

    __slots__ = ("_seen", "_span", "has_forks")

    def __init__(self, *, has_forks: bool = False) -> None:
        self.has_forks = has_forks
        self._span = -1
        self._seen: set[type[events.Event]] = set()

    def take(self, records: Sequence[Record[events.Event]], noted: list[TypeSpan]) -> None:
        """Add what the next records need in the index to ``noted``; some of it may be there already."""
        for record in records:
            span = span_of(record.position)
            if span != self._span:
                self._span = span
                self._seen = set()
            kind = type(record.event)
            if kind not in self._seen:
                self._seen.add(kind)
                noted.append((kind.event_type, span))
                self.has_forks |= kind is events.ThreadForked


class Erased(NamedTuple):
    """What a unit erases: the owner's contents at the positions ``found`` and after ``searched``."""

    owner: str
    found: Sequence[int]
    searched: int


class Batch:
    """The units of one commit.

    ``streams`` lists (stream, the unit's first position, its last one in that stream) for each stream that a unit
    touches, ``types`` what is new to the index of types, ``erasures`` what is erased of the contents up to here.
    """

    __slots__ = ("bodies", "contents", "digests", "erasures", "firsts", "last", "size", "streams", "types", "units")

    def __init__(self) -> None:
        self.units: list[Unit] = []
        self.firsts: list[int] = []
        self.bodies: list[bytes] = []
        self.digests: list[bytes] = []
        self.contents: list[SealedContent] = []
        self.streams: list[Touched] = []
        self.types: list[TypeSpan] = []
        self.erasures: list[Erasure] = []
        self.last = 0
        self.size = 0

    def records(self) -> list[Record[events.Event]]:
        return [record for unit in self.units for record in unit.records]

    def hash(self, key: bytes, previous: bytes) -> bytes:
        """The commit's hash, after the ``previous`` commit's."""
        return link(key, previous, self.firsts[0], self.digests)


class Appender:
    """Adds units to the next batch in two stages: ``add`` checks and places each one, ``seal`` does the rest for many.

    ``last`` is the last position assigned. After a failed commit another appender begins from what is on the disk.
    """

    __slots__ = ("_added", "_salts", "batch", "folding", "heads", "last", "redactor", "types")

    def __init__(self, heads: Heads, types: TypeSpans, folding: RowFolding, salts: Salts, last: int) -> None:
        self.heads = heads
        self.folding = folding
        self.types = types
        self.last = last
        self.batch = Batch()
        self._added: list[Unit] = []
        self.redactor: Redactor | None = None
        self._salts = salts

    def add(self, unit: Unit, erased: Erased | None = None) -> None:
        """Add the unit and what it has ``erased``, or raise and change nothing.

        Raises ``StalePosition``; ``TypeError`` or ``ValueError`` for what is no JSON.
        """
        if unit.expect:
            self.heads.check(unit.expect)
        if any(type(record.event) not in TEXTLESS for record in unit.records):
            check_events([record.event for record in unit.records])  # what cannot be read again must not be written
        first, batch, heads = self.last + 1, self.batch, self.heads
        for stream, position in place(unit, first).items():
            heads.put(stream, position)
            batch.streams.append((stream, first, position))
        unit.expect = {}  # it may refer to units, and those to others: a chain through the whole past
        self.last = unit.last
        self._added.append(unit)
        if erased is not None:
            spans = [*((position, position) for position in erased.found), (erased.searched + 1, first - 1)]
            batch.erasures += [(low, high, erased.owner, unit.last) for low, high in spans]

    @property
    def waiting(self) -> int:
        """How many units the next commit has so far."""
        return len(self.batch.units) + len(self._added)

    def seal(self) -> None:
        """Encode and redact each unit added since the last call, then fold them all, then index them.

        Raises what encoding raises: then the batch must not be written.
        """
        units, self._added = self._added, []
        if not units:
            return
        batch = self.batch
        batch.units += units
        for unit in units:
            self._encode(unit, batch)
        self.folding.take([(unit.first, unit.records) for unit in units])
        for unit in units:
            self.types.take(unit.records, batch.types)
        batch.last = units[-1].last

    def swap(self) -> Batch:
        """The batch so far, from which a unit that is not sealed has no row; now units are added to the next one."""
        batch, self.batch = self.batch, Batch()
        batch.units += self._added
        self._added = []
        return batch

    def _encode(self, unit: Unit, batch: Batch) -> None:
        body, contents = encode(unit, self._salts)
        redactor = self.redactor
        if redactor is not None:
            has_text = any(type(record.event) not in TEXTLESS for record in unit.records)
            texts = [content[3] for content in contents] + [body] * has_text
            if any(_holds_secret(redactor, text) for text in texts):
                conceal(unit, redactor)
                body, contents = encode(unit, self._salts)
        batch.firsts.append(unit.first)
        batch.bodies.append(body)
        batch.digests.append(sha256(body).digest())
        batch.size += len(body)
        for content in contents:
            batch.contents.append(content)
            batch.size += len(content[3]) + len(content[4])


def _holds_secret(redactor: Redactor, text: bytes) -> bool:
    """Most texts hold no mark. ``find`` is faster than ``in``, which first tries to read bytes as a number."""
    for mark in redactor.marks:
        if text.find(mark) >= 0:
            return redactor.holds(text) or redactor.holds_token(text)
    return False


def conceal(unit: Unit, redactor: Redactor) -> None:
    """Replace live secrets in the unit's records."""
    for record in unit.records:
        fields = msgspec.to_builtins(record.event)
        masked = {name: _masked(name, value, redactor) for name, value in fields.items()}
        record.event = msgspec.convert(masked, type(record.event))
        content = record.content
        if content is not None:
            record.content = Content(
                content.owner, redactor.masked_bytes(content.json), redactor.masked_bytes(content.xml)
            )


def _masked(name: str, value: Any, redactor: Redactor) -> Any:
    return value if name in SAFE_FIELDS else orjson.loads(redactor.masked_bytes(orjson.dumps(value)))
