"""What goes into one commit: units in order, encoded at ``append``, so that the disk's thread computes nothing."""

from __future__ import annotations

from hashlib import sha256

from organism.log.chain import Salts, link
from organism.log.conceal import Redactor, conceal, is_held
from organism.log.encode import SealedContent, encode
from organism.log.heads import Heads
from organism.log.spans import TypeSpan, TypeSpans
from organism.log.versions import Changes, RowVersions
from organism.model.events import Event, Unit

Touched = tuple[str, int, int]
"""A stream, the first position of a unit that holds events of it, and the position of the last of them."""


class Batch:
    """The units of one commit.

    ``streams`` lists (stream, the unit's first position, its last one in that stream) for each stream that a unit
    touches, ``types`` what is new to the index of types; ``changes`` are those of each read model.
    """

    __slots__ = ("bodies", "changes", "contents", "digests", "firsts", "last", "size", "streams", "types", "units")

    def __init__(self) -> None:
        self.units: list[Unit] = []
        self.firsts: list[int] = []
        self.bodies: list[bytes] = []
        self.digests: list[bytes] = []
        self.contents: list[SealedContent] = []
        self.streams: list[Touched] = []
        self.types: list[TypeSpan] = []
        self.changes: dict[str, Changes] = {}
        self.last = 0
        self.size = 0

    def events(self) -> list[Event]:
        """All events in order."""
        return [event for unit in self.units for event in unit.events]

    def hash(self, key: bytes, previous: bytes) -> bytes:
        """The commit's hash, after the ``previous`` commit's."""
        return link(key, previous, self.firsts[0], self.digests)


class Intake:
    """Takes units in: checks what they expect, gives positions, encodes, folds. ``last`` is the last position given.

    ``redactor`` knows what must not be written; None: nothing is secret here.
    """

    __slots__ = ("_salts", "batch", "heads", "last", "redactor", "types", "versions")

    def __init__(self, heads: Heads, versions: RowVersions, salts: Salts, last: int) -> None:
        self.heads = heads
        self.versions = versions
        self.types = TypeSpans()
        self.last = last
        self.batch = Batch()
        self.redactor: Redactor | None = None
        self._salts = salts

    def take(self, unit: Unit) -> None:
        """Add the unit, or raise and change nothing: ``StalePosition``, or ``TypeError`` for what is no JSON."""
        if unit.expect:
            self.heads.check(unit.expect)
        first = self.last + 1
        body, contents, streams = encode(unit, first, self._salts)
        redactor = self.redactor
        if redactor is not None and is_held(redactor, unit, body, contents):
            conceal(unit, redactor)
            body, contents, streams = encode(unit, first, self._salts)
        self.versions.take(first, unit.events, self.batch.changes)
        self.types.take(unit.events, self.batch.types)
        unit.expect = {}  # it may name units, and those others: a chain through the whole past
        unit.first = first
        unit.last = self.last = last = first + len(unit.events) - 1
        batch, heads = self.batch, self.heads
        batch.units.append(unit)
        batch.firsts.append(first)
        batch.bodies.append(body)
        batch.digests.append(sha256(body).digest())
        batch.last = last
        batch.size += len(body)
        for content in contents:
            batch.contents.append(content)
            batch.size += len(content[3]) + len(content[4])
        for stream, position in streams.items():
            heads.put(stream, position)
            batch.streams.append((stream, first, position))

    def swap(self) -> Batch:
        """The batch so far; what is taken in from now on goes in the next one."""
        batch, self.batch = self.batch, Batch()
        return batch

    def void(self, *batches: Batch) -> None:
        """These are not on the disk: no ``expect`` may fit them, and nothing that is remembered may rest on them."""
        self.heads.forget()
        self.versions.forget()
        self.types.forget()
        for batch in batches:
            for unit in batch.units:
                unit.first = unit.last = -1

    def commit(self, position: int) -> None:
        """Everything up to there is on the disk."""
        self.heads.committed = self.versions.committed = position
