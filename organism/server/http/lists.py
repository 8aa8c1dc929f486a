"""Lists: paging and filters parsed from the query, the envelope put around the finished rows.

``{"<name>": [...], "count", "total", "limit", "offset", "next"}``: the rows are the log's own bytes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Literal, TypedDict

import msgspec
import orjson
from msgspec import Meta, Raw, Struct
from starlette.responses import Response

from organism.errors import BadPosition, InvalidField
from organism.model import words
from organism.model.times import iso
from organism.server.http.attempts import read_handlings
from organism.server.http.bodies import Faults
from organism.server.http.call import Call, JsonResponse
from organism.server.json import MAX_POSITION, encoded, microseconds, splice
from organism.views.hits import hit
from organism.views.threads import Message
from organism.views.views import Among, Amount, Elapsed, HasCounted, Page, PageKey, Query, Where, cut_payloads, rows_of

AT: Final = "at"


class ListPage(TypedDict):
    """What every list says besides its rows."""

    count: Annotated[words.Count, Meta(description="How many are here.")]
    total: Annotated[words.Count, Meta(description="How many there are.")]
    limit: Annotated[int, Meta(ge=1, le=500, examples=[50])]
    offset: Annotated[int, Meta(ge=0, description="How many come before these.", examples=[0])]
    next: Annotated[words.Cursor | None, Meta(description="The `cursor` of the next page; null on the last.")]


class MessageList(ListPage):
    """Messages, by default oldest first."""

    messages: list[Message]


async def as_of(call: Call) -> int | None:
    """The position that ``at`` asks for, None for now. Raises ``BadPosition`` if it is ahead, or ``InvalidField``."""
    at = await position_in(call, AT)
    return None if at == call.tenant.log.head else at


async def position_in(call: Call, name: str) -> int | None:
    """The position that a parameter gives, itself or as a time; None without one. Raises as ``as_of`` does."""
    text = call.query.get(name)
    if text is None:
        return None
    log = call.tenant.log
    if (at_us := time_in(call, name)) is not None:
        return await log.position_at(at_us)
    if len(text) > len(str(MAX_POSITION)) or int(text) > log.head:
        raise BadPosition(
            f"The position {text[:40]} is ahead of the log; its head is {log.head}.", param=f"query.{name}"
        )
    return int(text)


def time_in(call: Call, name: str) -> int | None:
    """The time (µs) that a parameter gives, None if it gives a position or is missing. Raises ``InvalidField``."""
    text = call.query.get(name)
    if text is None or (text.isascii() and text.isdigit()):
        return None
    return microseconds(text, f"query.{name}", "a position, or a time")


DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 500
LAST_US: Final = 253_402_300_799_999_999
"""The end of the year 9999: later times do not sort as text."""
PAGING: Final = ("limit", "offset", "cursor")
IN_ROWS: Final = ("payloads", "handlings", "xml")
"""The parameters that change what is shown of the rows, and not which there are."""

Condition = Where | Among | HasCounted
Filter = Callable[[Any], Condition]
Order = tuple[str | Elapsed | Amount, bool]
"""What rows are sorted by, and whether they descend."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What a list route shows: the read model, its order, and the filters that its query takes, by name.

    ``orders`` are those that ``order`` may ask for.
    ``moves``: rows change places, so pages are of the rows as of the first page. ``reshape`` makes the shown array,
    which is called ``shown_as`` if not as the model.
    """

    name: str
    order_by: str
    descending: bool = False
    orders: Mapping[str, Order] = field(default_factory=dict)
    moves: bool = False
    filters: Mapping[str, Filter] = field(default_factory=dict)
    has_past: bool = True
    has_text: bool = False
    has_payloads: bool = False
    has_xml: bool = False
    shown_as: str = ""
    reshape: Callable[[Call, bytes], Awaitable[bytes]] | None = None

    @property
    def takes(self) -> tuple[str, ...]:
        """The names of all parameters."""
        more = {"order": self.orders, "q": self.has_text, "payloads": self.has_payloads}
        more |= dict.fromkeys(("handlings", "xml"), self.has_xml)
        return (*PAGING, *((AT,) * self.has_past), *self.filters, *(name for name, takes in more.items() if takes))


async def list_of(call: Call, listing: Listing, *fixed: Condition, of: str = "", key: str = "") -> Response:
    """The page of rows that the call asks for; ``fixed`` are the route's own conditions.

    Raises ``NotFound`` if the list belongs to the row ``key`` of the read model ``of``, and there is no such row.
    """
    query, given = await query_of(call, listing, fixed)
    if listing.moves and query.at is None:
        query = replace(query, at=call.tenant.log.head)
    page = await call.tenant.views.rows(listing.name, query)
    if of and not page.total:
        await call.row(of, key, query.at)
    rows = page.rows if listing.reshape is None else await listing.reshape(call, page.rows)
    if query.text:
        rows = await _with_hits(call, rows, query)
    if listing.has_payloads:
        rows = await rows_as_asked(call, rows, given, query.at)
    return JsonResponse(
        envelope(listing.shown_as or listing.name, rows, page, query, next_cursor(call, page, query.at))
    )


class _Searched(Struct):
    """A message or a dead letter in whose payload a text was found, or a thread in one of whose payloads it was."""

    id: str
    payload: Raw = Raw()


async def _with_hits(call: Call, rows: bytes, query: Query) -> bytes:
    """The rows of a JSON array with where the query's text was found: the oldest message of a thread that has it."""
    shown = []
    for row in msgspec.json.decode(rows, type=list[Raw]):
        found: _Searched | None = msgspec.json.decode(row, type=_Searched)
        if found is not None and not bytes(found.payload):
            of_thread = (Where("thread_id", "=", found.id),)
            first = Query(of_thread, "position", limit=1, text=query.text, at=query.at, is_counted=False)
            page = await call.tenant.views.rows("messages", first)
            found = next(iter(rows_of(page, _Searched)), None)  # none if it was erased meanwhile
        where = None if found is None else hit(found.id, bytes(found.payload), query.text)
        shown.append(splice(bytes(row), {"hit": where}))
    return b"[%b]" % b",".join(shown)


def envelope(name: str, rows: bytes, page: Page, query: Query, next_page: str | None) -> bytes:
    """The list's JSON."""
    return b'{"%b":%b,"count":%d,"total":%d,"limit":%d,"offset":%d,"next":%b}' % (
        name.encode(),
        rows,
        page.count,
        page.total,
        query.limit,
        page.before,
        encoded(next_page),
    )


def paging(call: Call) -> Query:
    """The page that the call asks for of a list that has no filters. Raises an ``InvalidRequest``."""
    faults, after = Faults(), None
    given = call.parameters(faults)
    with faults:
        if "cursor" in call.query:
            after = _opened(call)[0]
    faults.raise_found()
    return Query(limit=given.get("limit", DEFAULT_LIMIT), offset=given.get("offset", 0), after=after)


def page_of(call: Call, name: str, rows: Sequence[Any]) -> bytes:
    """The page, of rows that are all at hand, that the call asks for."""
    query = paging(call)
    offset = query.offset if query.after is None else query.after[0]
    found = rows[offset : offset + query.limit]
    page = Page(orjson.dumps(found), len(found), len(rows), offset, (offset + len(found), ""))
    return envelope(name, page.rows, page, query, next_cursor(call, page, None))


def next_cursor(call: Call, page: Page, at: int | None, path: str = "") -> str | None:
    """The cursor of the next page, None on the last. ``path`` is that of the list, if it is not the call's own."""
    if page.last is None or page.before + page.count >= page.total:
        return None
    return call.process.cursors.seal(_listing_id(call, path), [*page.last, at])


async def query_of(call: Call, listing: Listing, fixed: tuple[Condition, ...] = ()) -> tuple[Query, Mapping[str, Any]]:
    """The query, and all parameters. Raises an ``InvalidRequest`` that names all that is wrong."""
    faults, after = Faults(), None
    given = call.parameters(faults)
    conditions = [*fixed, *(make(given[name]) for name, make in listing.filters.items() if name in given)]
    with faults:
        at = await as_of(call)
    with faults:
        if "cursor" in call.query:
            after, recorded = _opened(call)
            at = recorded if at is None else at
    faults.raise_found()
    order_by, descending = listing.orders.get(given.get("order", ""), (listing.order_by, listing.descending))
    query = Query(
        tuple(each for each in conditions if isinstance(each, Where)),
        order_by,
        descending,
        given.get("limit", DEFAULT_LIMIT),
        given.get("offset", 0),
        given.get("q", ""),
        at,
        after,
        tuple(each for each in conditions if isinstance(each, Among)),
        next((each for each in conditions if isinstance(each, HasCounted)), None),
    )
    return query, given


def _opened(call: Call) -> tuple[PageKey, int | None]:
    """Behind which row the cursor's page begins, and as of which position. Raises ``InvalidField``."""
    if "offset" in call.query:
        raise InvalidField("`cursor` and `offset` both say where to begin; send one of them.", param="query.offset")
    value, key, at = call.process.cursors.open(_listing_id(call), call.query["cursor"])
    return (value, key), at


def _listing_id(call: Call, path: str = "") -> str:
    """What a cursor is bound to: all that chooses the rows."""
    chosen = sorted((name, value) for name, value in call.query.items() if name not in {*PAGING, *IN_ROWS})
    return repr((call.tenant.id, call.end_user, call.tenant.log.timeline, path or call.path, chosen))


def since(column: str) -> Filter:
    """A filter on a column of times: at or after it (µs)."""
    return lambda at: Where(column, ">=", at)


def since_text(column: str) -> Filter:
    """The same on a column that holds times as they are shown, which sort as the times do."""
    return lambda at: Where(column, ">=", iso(min(max(0, at), LAST_US)))


def until_text(column: str) -> Filter:
    """A filter on a column of times as they are shown: at or before it (µs)."""
    return lambda at: Where(column, "<=", iso(min(max(0, at), LAST_US)))


def equals(column: str) -> Filter:
    """A filter on what a column holds."""
    return lambda value: Where(column, "=", value)


MESSAGES: Final = Listing(
    "messages",
    "position",
    filters={
        "agent": lambda name: Where("", "=", name, any_of=("from", "to")),
        "status": lambda text: Among("thread_id", "threads", (Where("status", "=", text),)),
        "from": equals("from"),
        "to": equals("to"),
        "type": equals("payload_type"),
        "cause": equals("cause"),
        "since": since_text("timestamp"),
    },
    orders={"asc": ("position", False), "desc": ("position", True)},
    has_text=True,
    has_payloads=True,
    has_xml=True,
)
"""All messages, and those of a thread."""
NARROW_MESSAGES: Final = {
    "status": words.ThreadStatus,
    "from": Annotated[words.AgentName, Meta(description="Only what this one sent.")],
    "to": Annotated[words.AgentName, Meta(description="Only what this one got.")],
    "type": Annotated[words.PayloadType, Meta(description="Only messages whose payload is of this type.")],
    "order": Annotated[Literal["asc", "desc"], Meta(description="`desc`: newest first.")],
}
"""What parameters of these lists are."""


async def rows_as_asked(call: Call, rows: bytes, given: Mapping[str, Any], at: int | None = None) -> bytes:
    """The rows of a JSON array, ``at`` a position if one is given.

    With ``payloads`` they are cut to so many bytes; with ``handlings`` each message says what has become of it, with
    ``xml`` it has its envelope.
    """
    if given.get("handlings"):
        tenant = call.tenant
        handlings = await read_handlings(tenant.log, tenant.views, rows, tenant.log.head if at is None else at)
        each = zip(msgspec.json.decode(rows, type=list[Raw]), handlings, strict=True)
        rows = b"[%b]" % b",".join([splice(bytes(row), {"handling": handling}) for row, handling in each])
    if "payloads" in given:
        rows = cut_payloads(rows, given["payloads"])
    if given.get("xml"):
        finished = [await _with_xml(call, orjson.dumps(row)) for row in orjson.loads(rows)]
        rows = b"[" + b",".join(finished) + b"]"
    return rows


async def _with_xml(call: Call, row: bytes) -> bytes:
    """A message with ``xml``: its envelope byte for byte, or null once it was erased."""
    content = await call.tenant.log.content(orjson.loads(row)["position"])
    return splice(row, {"xml": content[1].decode() if content else None})
