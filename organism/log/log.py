"""The port to durable state, and what every engine guarantees.

L1  A unit is written whole or not at all, and its events get dense, rising positions in the order of ``append``.
L2  ``Unit.then`` is called in the loop's thread, in order of position, only once the unit is known to be on disk (None)
    or known to have failed (the error); nothing that failed is ever shown.
L3  A unit whose ``expect`` is stale is refused (``StalePosition``) and does not touch the others of its commit.
L4  A read that begins after ``then`` sees the unit, its content and every read model row that follows from it.
L5  ``follow`` gives every event after its position once and in order, with no gap at the seam between past and present.
L6  A second process on the same place is refused at ``open`` (``LogHeld``); a fenced one writes no more.
L7  What was acknowledged and is changed, missing, swapped or cut is found and located (``verify``, and at each read).
L8  After a failed commit nothing is written until the tail was read again from the disk; the error was
    ``CommitUnknown`` for the units of that commit and ``LogUnavailable`` for what came after; reads go on.
L9  Making every row again from the events gives byte-equal rows.
L10 Rows read ``at`` a position are what they were when the log ended there, but for content erased since. In the middle
    of a unit, a row that the unit changes more than once may be shown as the whole unit leaves it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from organism.events.record import Record, Unit
from organism.events.vocabulary import Event
from organism.model.redact import Redactor
from organism.model.times import iso

Row = dict[str, Any]
"""A read model's row: JSON-able fields; those that begin with ``_`` are the fold's own and never leave the engine."""
ColumnRow = tuple[Any, ...]
"""A row of a model that says how it is ``shown``: its key, then the values of the declared columns."""
Fold = Callable[[dict[str, Any], Sequence[Record[Event]]], None]
"""Changes rows as the records of a unit say. ``rows[key]`` is the row before, or None for one that is not there; it may
be changed in place or set. Rows of a model that is ``shown`` are only set, to a ``ColumnRow``."""
Keys = Callable[[Record[Any]], Sequence[str]]  # The keys of the rows that an event touches
Types = Collection[type[Event]]
KEY: Final = "key"  # The column of `Shown` that is the row's key
CHANGED: Final = "changed"  # `Query.order_by` for rows in the order of their last change
SPAN_EVENTS: Final = 1024  # the index of types says which types a span of positions holds


def span_of(position: int) -> int:
    """The span that holds the position; span ``n`` begins after position ``n * SPAN_EVENTS``."""
    return (position - 1) // SPAN_EVENTS


def fold_each(keys: Mapping[type[Event], Keys], apply: Callable[[str, Row | None, Record[Any]], Row | None]) -> Fold:
    """The fold that goes event by event: ``apply`` gives the row after an event, None if there is none any more."""

    def fold(rows: dict[str, Any], records: Sequence[Record[Event]]) -> None:
        for record in records:
            keys_of = keys.get(type(record.event))
            for key in keys_of(record) if keys_of is not None else ():
                rows[key] = apply(key, rows[key], record)

    return fold


@dataclass(frozen=True, slots=True)
class Shown:
    """A field of a public row: the value of ``column`` (``KEY``: the row's key); a time in µs is shown by ``iso``."""

    name: str
    column: str
    is_time: bool = False


@dataclass(frozen=True, slots=True)
class ReadModel:
    """A fold of the log whose rows the engine keeps; they are there with the events that they follow from (L4).

    ``types`` are those of the events that ``fold`` looks at. A new ``version`` has all rows made again from the log.
    ``columns`` names the fields to search or sort by, with their SQL type; ``indexes`` lists tuples of columns.
    ``text_in``: (model, column) of rows whose content is searched for a text; the column holds this model's keys.
    ``with_content`` adds ``"payload"``: the content JSON of the event at ``row["position"]``, or ``{"erased": true}``.
    ``is_live``: all rows, which are few and changed by nearly every event, are kept in memory.
    ``shown``, of a model with content whose rows never change: only key and columns are stored, JSON is made of them.
    """

    name: str
    version: int
    types: Types
    fold: Fold
    columns: Mapping[str, str] = field(default_factory=dict)
    indexes: tuple[tuple[str, ...], ...] = ()
    with_content: bool = False
    is_live: bool = False
    text_in: tuple[str, str] | None = None
    shown: tuple[Shown, ...] = ()

    def show(self, row: ColumnRow) -> Row:
        """The public row without its payload."""
        values = dict(zip((KEY, *self.columns), row, strict=True))
        return {
            field.name: iso(values[field.column]) if field.is_time else values[field.column] for field in self.shown
        }


@dataclass(frozen=True, slots=True)
class Where:
    """One condition on a column, or on one of the columns ``any_of``.

    ``op`` is ``=``, ``<``, ``<=``, ``>``, ``>=``, ``in`` (a list) or ``has`` (a name in a list column, which holds
    names joined and enclosed by ``|``, as ``|console|greeter|``).
    """

    column: str
    op: str
    value: Any
    any_of: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Among:
    """A condition on a column that holds keys of ``model``: the row of that key fulfils ``where``."""

    column: str
    model: str
    where: tuple[Where, ...]


Place = tuple[Any, str]
"""Where a row stands in an order: its value of the column that the order is by (empty without one), and its key."""


@dataclass(frozen=True, slots=True)
class Query:
    """A page of a read model's rows, ``at`` a position if one is given (L10).

    Ties of ``order_by`` are broken by the key. The page begins behind the place ``after``, whether a row is there or
    not, and skips ``offset`` rows. ``text`` is searched for in contents (``with_content``, ``text_in``).
    """

    where: tuple[Where, ...] = ()
    order_by: str = ""
    descending: bool = False
    limit: int = 50
    offset: int = 0
    text: str = ""
    at: int | None = None
    after: Place | None = None
    among: tuple[Among, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """``rows``: a JSON array of ``count`` of ``total`` rows, ``before`` of them before it; ``last``: its last place."""

    rows: bytes
    count: int
    total: int
    before: int
    last: Place | None


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Which events a read wants. Empty tuples want all. ``content`` loads each event's content too."""

    threads: tuple[str, ...] = ()
    types: tuple[type[Event], ...] = ()
    content: bool = False


def wants(wanted: EventFilter) -> Callable[[Record[Event]], bool]:
    """The filter as a function. Events of no thread belong to ``ORGANISM_STREAM``."""
    threads, types = frozenset(wanted.threads), frozenset(wanted.types)

    def is_wanted(record: Record[Event]) -> bool:
        return (not types or type(record.event) in types) and (not threads or record.stream in threads)

    return is_wanted


@dataclass(frozen=True, slots=True)
class Verification:
    """What ``verify`` found up to ``position``: events and commits checked; ``damage`` says what and where."""

    position: int
    events: int
    commits: int
    damage: tuple[str, ...] = ()


class History(Protocol):
    """What a log answers. Every call is made from the loop's thread."""

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
    ) -> list[Record[Event]]:
        """Events with after < position ≤ until, in order (or newest first); at most ``limit``."""

    def follow(self, after: int, wanted: EventFilter | None = None) -> AsyncIterator[list[Record[Event]]]:
        """Lists of events after ``after`` until the log closes; an empty one says that none up to the head passes."""

    async def row(self, model: str, key: str, at: int | None = None) -> bytes | None:
        """The public JSON of one row, or None; ``at`` a position if one is given (L10)."""

    async def rows(self, model: str, query: Query) -> Page:
        """A page of rows."""

    async def private_row(self, model: str, key: str) -> Row | None:
        """One row with its private fields, for decisions that rest on what is no longer in memory."""

    async def type_spans(self, types: Sequence[type[Event]], low: int, high: int, limit: int) -> list[int]:
        """The spans (``span_of``) from ``low`` to ``high`` that hold events of these types, in order."""

    async def position_at(self, at_us: int) -> int:
        """The last position whose event is not after this time (µs since 1970); 0 if there is none."""

    async def content(self, position: int) -> tuple[bytes, bytes] | None:
        """(json, xml) of the content of the event at ``position``; None if there is none or it was erased."""

    async def contents(self, digests: Mapping[int, str]) -> dict[int, tuple[bytes, bytes]]:
        """(json, xml) by position, but for what was erased; ``digests`` are the events' ``content``."""

    async def fold(self, after: int, apply: Callable[[Record[Event]], object]) -> None:
        """Hand every event after ``after`` to ``apply``, in order and without content."""

    async def load_snapshot(self, name: str) -> tuple[int, bytes] | None:
        """The newest snapshot that is not ahead of the head, or None."""

    async def verify(self, after: int = 0) -> Verification:
        """Check every commit's hash and every event's digest after ``after``."""


class Log(History, Protocol):
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

    def conceal(self, redactor: Redactor) -> None:
        """Write no secret that the redactor knows, from the next unit on."""

    def append(self, unit: Unit) -> None:
        """Queue the unit for the next commit; its outcome comes by ``unit.then``.

        Raises ``StalePosition`` (nothing was queued), ``LogUnavailable`` or ``Fenced``.
        """

    async def commit(self, unit: Unit) -> int:
        """``append``, then wait; gives the position of the unit's last event, or raises what ``then`` got."""

    async def save_snapshot(self, name: str, position: int, body: bytes) -> None:
        """Keep a disposable snapshot of a fold at ``position`` (the last two are kept)."""

    async def close(self) -> None:
        """Write what is queued, anchor the head, release the place."""
