"""The port to durable state, and what every engine guarantees.

L1  A unit is written whole or not at all, and its events get dense, rising positions in the order of ``append``.
L2  ``Unit.then`` is called in the loop's thread, in order of position, once the unit is known to be on disk (with None)
    or to have failed (with the error); nothing that failed is ever shown.
L3  A unit whose ``expect`` is stale is refused (``StalePosition``) and does not touch the others of its commit.
L4  A read that begins after ``then`` sees the unit, its content and the rows that follow from it.
L5  ``follow`` gives every event after its position once and in order, with no gap at the seam between past and present.
L6  A second process on the same place is refused at ``open`` (``LogHeld``); a fenced one writes no more.
L7  What was acknowledged and is changed, missing, swapped or cut is found and located (``verify``, and at each read).
L8  After a failed commit nothing is written until the tail was read again from the disk; the error was
    ``CommitUnknown`` for the units of that commit and ``LogUnavailable`` for what came after; reads go on.
L9  Once ``erase`` has returned, what its owner had as contents before its event is in no file, no follower is given
    it, and no read that begins then, as of whatever position. The events stay, ``verify`` finds them whole, and their
    digests tell nothing. Event and erasure are there together or not at all. What comes after the event stays.
L10 A stream that ``copy`` began shares its past by reference: a read of it, or a follower that begins then, gets the
    events of ``source`` up to ``until``, what that stream shares included, then its own. Contents stay their owner's.
L11 ``export`` gives a line of JSON for each event that a read of the stream gives, in order, in bounded memory.

The rows folded from the events (V1 to V4) have a port of their own: organism/views/views.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from organism.events import vocabulary as events
from organism.events.record import Actor, Record, Unit
from organism.model.redact import Redactor

SPAN_EVENTS: Final = 1024  # The index of types lists the types of events in each span of so many positions


def span_of(position: int) -> int:
    """The span that holds the position; span ``n`` begins after position ``n * SPAN_EVENTS``."""
    return (position - 1) // SPAN_EVENTS


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events a read wants. Empty tuples want all. ``content`` loads each event's content too.

    ``threads`` are streams; of one that is a fork, the past that it shares is wanted too (L10).
    """

    threads: tuple[str, ...] = ()
    types: tuple[type[events.Event], ...] = ()
    content: bool = False


Origins = Mapping[str, int]
"""Streams whose past is shared by forks, each with the position up to which it is."""


def wants(wanted: EventFilter, origins: Origins) -> Callable[[Record[events.Event]], bool]:
    """The filter as a function. Events of no thread belong to ``ORGANISM_STREAM``."""
    threads, types = frozenset(wanted.threads), frozenset(wanted.types)

    def is_wanted(record: Record[events.Event]) -> bool:
        if types and type(record.event) not in types:
            return False
        return not threads or record.stream in threads or record.position <= origins.get(record.stream, 0)

    return is_wanted


@dataclass(frozen=True, slots=True)
class Verification:
    """What ``verify`` found up to ``position``: events and commits checked; ``damage`` says what and where."""

    position: int
    events: int
    commits: int
    damage: tuple[str, ...] = ()


class History(Protocol):
    """Reads of a log. Every call is made from the loop's thread."""

    @property
    def head(self) -> int:
        """The position of the last event known to be on disk; 0 for an empty log."""

    @property
    def last_at(self) -> int:
        """The ``at`` of the last event, in µs; 0 for an empty log."""

    @property
    def timeline(self) -> str:
        """The name of this log's timeline: new for each new log and after each restore."""

    async def read(
        self,
        after: int = 0,
        until: int | None = None,
        wanted: EventFilter | None = None,
        limit: int = 500,
        *,
        reverse: bool = False,
    ) -> list[Record[events.Event]]:
        """Events with after < position ≤ until, in order (or newest first); at most ``limit``."""

    def follow(self, after: int, wanted: EventFilter | None = None) -> AsyncIterator[list[Record[events.Event]]]:
        """Lists of events after ``after`` until the log closes; an empty one says that none up to the head passes.

        A follower of named threads that has read to the head is woken only by what it wants of them. Of a stream that
        becomes a fork later, a follower gets only the events after that.
        """

    async def type_spans(self, types: Sequence[type[events.Event]], low: int, high: int, limit: int) -> list[int]:
        """The spans (``span_of``) from ``low`` to ``high`` that hold events of these types, in order."""

    async def position_at(self, at_us: int) -> int:
        """The last position whose event is not after this time (µs since 1970); 0 if there is none."""

    async def content(self, position: int) -> tuple[bytes, bytes] | None:
        """(json, xml) of the content of the event at ``position``; None if there is none or it was erased."""

    async def contents(self, digests: Mapping[int, str]) -> dict[int, tuple[bytes, bytes]]:
        """(json, xml) by position, but for what was erased; ``digests`` are the events' ``content``."""

    def export(self, stream: str) -> AsyncIterator[bytes]:
        """The stream up to the head as JSON Lines: what ``GET /log`` shows of each event, its content and its XML."""

    async def fold(self, after: int, apply: Callable[[Record[events.Event]], object]) -> None:
        """Call ``apply`` with every event after ``after``, in order and without content."""

    async def load_snapshot(self, name: str) -> tuple[int, bytes] | None:
        """The newest snapshot that is not ahead of the head, or None."""

    async def verify(self, after: int = 0) -> Verification:
        """Check every commit's hash and every event's digest after ``after``."""


class EventLog(History, Protocol):
    """One tenant's log. Every call is made from the loop's thread; ``append`` never waits.

    ``on_lost`` is called with the true head after a failed commit, once the log takes writes again; ``on_stalled`` when
    a commit takes too long to be waited for. What was appended is not refused then: it is written as soon
    as the disk answers.
    """

    on_lost: Callable[[int], None] | None
    on_stalled: Callable[[], None] | None

    @property
    def available(self) -> bool:
        """Whether it takes writes now, and writes them within seconds."""

    def key_for(self, purpose: str) -> bytes:
        """A key for what is stored next to the log, derived from the log's own: the same in each life."""

    def conceal(self, redactor: Redactor) -> None:
        """From the next unit on, write no secret that the redactor knows."""

    def append(self, unit: Unit) -> None:
        """Queue the unit for the next commit; its outcome comes by ``unit.then``.

        Its records may have no positions before that: a decision that rests on an uncommitted unit expects the unit
        itself. Raises ``StalePosition``, ``LogUnavailable``, ``Fenced``, and ``TypeError`` or ``ValueError`` for what
        could not be read again; then nothing was queued.
        """

    async def commit(self, unit: Unit) -> int:
        """``append``, then wait; gives the position of the unit's last event, or raises what ``then`` got."""

    async def erase(self, owner: str, at: int, actor: Actor | None = None) -> int:
        """Erase all contents of the owner (L9); gives the position of the ``content_erased``, in the organism's stream.

        ``at`` is its time in µs. There may be nothing to erase. Text that is appended meanwhile is erased if it comes
        before that position. Raises as ``commit`` does; ``CommitUnknown`` also if the text may still be in a file.
        """

    async def copy(self, source: str, until: int, target: str, at: int, actor: Actor | None = None) -> int:
        """Begin the stream ``target`` as a fork (L10); gives the position of its ``thread_forked``.

        Raises ``StalePosition`` if there is such a stream, ``NotFound`` if there is no ``source``, ``BadPosition`` if
        that has no event up to ``until`` or ends before it; and as ``commit`` does.
        """

    async def save_snapshot(self, name: str, position: int, body: bytes) -> None:
        """Save a disposable snapshot of a fold at ``position``; the last two of a name are kept."""

    async def close(self) -> None:
        """Write what is queued, anchor the head, unlock its directory."""
