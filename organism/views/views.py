"""The port to the rows of read models, now and at any position of the log.

Every store guarantees:

V1 A read that begins after a unit's ``then`` sees every row that follows from the unit.
V2 A page has the rows that match, in their order; the next page, which begins behind its last row, skips none.
V3 Rebuilding every row from the events gives byte-equal rows.
V4 Rows read ``at`` a position are what they were when the log ended there, but for content erased since. In the middle
   of a unit, a row that the unit changes more than once may be shown as the whole unit leaves it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Annotated, Any, Final, Generic, NamedTuple, Protocol

import msgspec
from msgspec import Meta, Raw, Struct, UnsetType
from msgspec.structs import fields
from typing_extensions import TypeVar  # the one of typing has a default from Python 3.13 on

from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Record

Public = TypeVar("Public", bound=Struct)
Private = TypeVar("Private", bound=Struct)
R = TypeVar("R")
T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True, default=Any)


class PrivateFields(Entity, rename=lambda name: f"_{name}"):
    """The base of what only a row's fold, its columns and decisions need. It never leaves the store."""


class Stored(Entity, Generic[Public, Private]):
    """A row of a model with private fields: what the API shows, and those."""

    public: Public
    private: Private


Fold = Callable[[dict[str, Any], Sequence[Record[events.Event]]], None]
"""Changes rows as the records of a unit say. ``rows[key]`` is the row before, or None for one that is not there; it may
be changed in place or set. Rows of a model that ``is_final`` are only set."""
Keys = Callable[[Record[Any]], Sequence[str]]  # The keys of the rows that an event touches
Types = Collection[type[events.Event]]
KEY: Final = "key"
CHANGED: Final = "changed"  # `Query.order_by` for rows in the order of their last change
ERASED: Final = b'{"erased":true}'
TITLE_CHARS: Final = 120  # The most that a thread or a session is called by
PAGE_ROWS: Final = 500  # So many rows are read at once where all are wanted


def fold_each(keys: Mapping[type[events.Event], Keys], apply: Callable[[str, Any, Record[Any]], Any]) -> Fold:
    """A fold that goes event by event: ``apply`` returns the row after an event, None if there is none any more."""

    def fold(rows: dict[str, Any], records: Sequence[Record[events.Event]]) -> None:
        for record in records:
            keys_of = keys.get(type(record.event))
            for key in keys_of(record) if keys_of is not None else ():
                rows[key] = apply(key, rows[key], record)

    return fold


@dataclass(frozen=True, slots=True)
class Where:
    """One condition on a column, or on one of the columns ``any_of``.

    ``op`` is ``=``, ``<>``, ``<``, ``<=``, ``>``, ``>=``, ``in`` (a list), ``has`` (a name in a list column, which
    holds names joined and enclosed by ``|``, as ``|console|greeter|``), ``has_any`` (one of some names in it) or
    ``glob`` (a pattern of SQLite). The column ``KEY`` is the key.
    """

    column: str
    op: str
    value: Any
    any_of: tuple[str, ...] = ()


class Counted(NamedTuple):
    """Rows of another model that are counted with a row: ``column`` holds its key, and they fulfil ``where``."""

    model: str
    column: str
    where: tuple[Where, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadModel(Generic[R_co]):
    """A fold of the log whose rows are stored, in the commits of the events that they follow from (V1).

    ``row`` is the class of its rows, which is the API's shape too; with ``private``, its rows are ``Stored``.
    ``types`` are those of the events that ``fold`` looks at. A new ``version`` has all rows rebuilt.
    ``columns`` names the fields to search or sort by, with their SQL type; ``indexes`` lists tuples of columns.
    ``text_in``: (model, column) of rows whose content is searched for a text; the column holds this model's keys.
    ``with_first`` completes a row by the content of the first of those rows; None was erased.
    ``counted_as`` adds a field of this name: how many rows there are of each ``counted``, by their model.
    ``with_content`` adds ``"payload"``: the content JSON of the event at its ``position``, or ``{"erased": true}``.
    ``is_live``: all rows, which are few and change with nearly every event, are in memory.
    ``complete`` sets what follows from a row's other fields whenever it is written: a live one changes far more often.
    ``is_final``: rows never change, and each is stored once, at its ``position``.
    ``totals``: what ``ViewStore.sums`` says of each group of rows: the ``sum``, ``min`` or ``max`` of a column.
    ``span``: a final row is of so many positions, the last of which is its ``position``; ``fold`` gets all of their
    records at once, without content, or if other models have a shorter span, the rows of the last of those.
    """

    name: str
    version: int
    types: Types
    fold: Fold
    row: type[Struct]
    private: type[Struct] | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    indexes: tuple[tuple[str, ...], ...] = ()
    with_content: bool = False
    is_live: bool = False
    complete: Callable[[Any], None] | None = None
    text_in: tuple[str, str] | None = None
    with_first: Callable[[bytes, bytes | None], bytes] | None = None
    counted_as: str = ""
    counted: tuple[Counted, ...] = ()
    is_final: bool = False
    totals: tuple[tuple[str, str], ...] = ()
    span: int = 0
    values: tuple[Callable[[Any], Any], ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        """``values`` read the columns of a row."""
        places = {each.encode_name: each.name for each in fields(self.row)}
        if self.private is not None:
            places = {name: f"public.{place}" for name, place in places.items()}
            places |= {each.name: f"private.{each.name}" for each in fields(self.private)}
        object.__setattr__(self, "values", tuple(attrgetter(places[name]) for name in self.columns))


@dataclass(frozen=True, slots=True)
class Among:
    """A condition on a column that holds keys of ``model``: the row of that key fulfils ``where``."""

    column: str
    model: str
    where: tuple[Where, ...]


@dataclass(frozen=True, slots=True)
class HasCounted:
    """A condition on what is counted with a row: whether there is anything."""

    is_any: bool


class Elapsed(NamedTuple):
    """The time between what two columns hold; of ``until`` that is the first one that holds a time."""

    since: str
    until: tuple[str, ...]


class Amount(NamedTuple):
    """A column's decimal number, which is text."""

    column: str


PageKey = tuple[Any, str]
"""A row's value of what a page is ordered by (empty without it), and its key."""


@dataclass(frozen=True, slots=True)
class Query:
    """A page of a read model's rows, ``at`` a position if one is given (V4).

    Ties of ``order_by`` are broken by the key. The page begins behind ``after``, whether that row still exists or not,
    and skips ``offset`` rows. ``text`` is searched for in contents (``with_content``, ``text_in``). ``is_counted``: the
    page says how many rows match and how many come before it; else those are its own count and ``offset``.
    """

    where: tuple[Where, ...] = ()
    order_by: str | Elapsed | Amount = ""
    descending: bool = False
    limit: int = 50
    offset: int = 0
    text: str = ""
    at: int | None = None
    after: PageKey | None = None
    among: tuple[Among, ...] = ()
    counted: HasCounted | None = None
    is_counted: bool = True


class Begin(NamedTuple):
    """The first characters of a column's text."""

    column: str
    chars: int


@dataclass(frozen=True, slots=True)
class Sums:
    """The rows that fulfil ``where``, ``at`` a position if one is given (V4), grouped ``by`` these values."""

    by: tuple[str | Begin, ...]
    where: tuple[Where, ...] = ()
    at: int | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """``rows``: a JSON array of ``count`` of ``total`` rows, ``before`` of them before it; ``last``: its last key."""

    rows: bytes
    count: int
    total: int
    before: int
    last: PageKey | None


class ViewStore(Protocol):
    """The rows of one tenant's log. Every call is made from the loop's thread.

    Raises ``ContentDamaged`` or ``LogDamaged`` for what is not as it was written, ``LogUnavailable``, and
    ``OrganismError`` if a fold has failed: half-made rows are never shown.
    """

    async def row(self, model: str, key: str, at: int | None = None) -> bytes | None:
        """The public JSON of one row, or None; ``at`` a position if one is given (V4)."""

    async def rows(self, model: str, query: Query) -> Page:
        """A page of rows."""

    async def sums(self, model: str, sums: Sums) -> list[tuple[Any, ...]]:
        """Of each group: the values that it is grouped by, how many rows it has, and the model's ``totals``.

        Groups are in the order of their first rows. It takes a millisecond for about a thousand rows.
        """

    async def private_row(self, model: ReadModel[R], key: str) -> R | None:
        """One row with its private fields, for decisions that rest on what is no longer in memory."""

    async def live_rows(self, model: ReadModel[R], at: int | None = None) -> Sequence[R]:
        """Every row of a live model with its private fields, to look at at once and not to change.

        Without a position, or at the head, it does not wait, and the next events change these very rows.
        """


def rows_of(page: Page, kind: type[T]) -> list[T]:
    """The page's rows, which are of this class."""
    return msgspec.json.decode(page.rows, type=list[kind])  # type: ignore[valid-type]  # it is a value to mypy


async def all_rows(views: ViewStore, model: str, query: Query, kind: type[T]) -> list[T]:
    """Every row that the query finds, however many, in its order, read page by page; its ``limit`` does not count.

    For what must not rest on a part. Rows that change meanwhile may be there as they were or as they are.
    """
    found: list[T] = []
    query = replace(query, limit=PAGE_ROWS)
    while True:
        page = await views.rows(model, query)
        found += rows_of(page, kind)
        if page.count < PAGE_ROWS:
            return found
        query = replace(query, after=page.last, offset=0)


def with_payload(public: bytes, payload: bytes | None) -> bytes:
    """The row completed by its content; None was erased."""
    return b'%b,"payload":%b}' % (public[:-1], ERASED if payload is None else payload)


class PayloadCut(Entity):
    """What is shown of a payload that is longer than was asked for."""

    bytes: Annotated[int, Meta(ge=1, description="How long its JSON is.", examples=[20_000])]
    text: Annotated[str, Meta(description="The beginning of its JSON.", examples=['{"name":"D'])]


Cut = Annotated[
    PayloadCut | UnsetType, Meta(description="With `payloads`: the beginning of a longer payload, which is null then.")
]
MOST_PAYLOAD_BYTES: Final = 1 << 16
"""The most that ``payloads`` may ask for."""
_FIELDS: Final = msgspec.json.Decoder(dict[str, Raw])
_ROWS: Final = msgspec.json.Decoder(list[Raw])


def cut_payload(row: bytes, most_bytes: int, name: str = "payload") -> bytes:
    """A row in which a payload of more bytes of JSON is null, with its beginning as ``payload_cut`` beside it.

    That it was erased is said in any case. ``name`` is that of the field.
    """
    if len(row) <= most_bytes:
        return row
    fields = _FIELDS.decode(row)
    payload = bytes(fields.get(name, b""))
    if len(payload) <= most_bytes or payload == ERASED:
        return row
    beginning = payload[:most_bytes].decode("utf-8", "ignore")  # a character in two parts is left out
    cut = Raw(msgspec.json.encode(PayloadCut(len(payload), beginning)))
    return msgspec.json.encode({**fields, name: Raw(b"null"), "payload_cut": cut})


def cut_payloads(rows: bytes, most_bytes: int, name: str = "payload") -> bytes:
    """The rows of a JSON array, each with its payload cut."""
    return msgspec.json.encode([Raw(cut_payload(bytes(row), most_bytes, name)) for row in _ROWS.decode(rows)])
