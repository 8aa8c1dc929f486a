"""What has happened: messages, and the log's own events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final, Literal, NotRequired, TypedDict

import orjson
from msgspec import Meta, Raw
from msgspec.json import decode, encode
from starlette.responses import Response

from organism.errors import NotFound
from organism.events import vocabulary
from organism.events.entity import Entity
from organism.events.record import Record
from organism.log.log import EventFilter
from organism.log.streams import shown
from organism.model import words
from organism.model.redact import Redactor
from organism.model.times import iso
from organism.server.http import lists
from organism.server.http.bodies import Faults
from organism.server.http.call import Call, JsonResponse, Route, Tag, tagged
from organism.server.http.contract import gives
from organism.server.http.rights import READ, Right
from organism.server.json import splice
from organism.server.push.past import newest_records, read_records
from organism.views.run import data_of, kind_of
from organism.views.threads import Message
from organism.views.views import Where

TAKES: Final = ("after", "until", "thread", "type", "order", "limit", "content")
RUN_AND_ENDS: Final[tuple[type[vocabulary.Event], ...]] = (
    *vocabulary.RUN_ENTRIES.values(),
    vocabulary.MessageHandled,
    vocabulary.MessageDropped,
    vocabulary.MessageDead,
)
"""What is read of a handling for its run; behind its end there is no more of it."""
NARROW: Final = {
    "type": Annotated[
        list[words.EventType],
        Meta(min_length=1, max_length=20, description="Only events of these types, separated by commas."),
    ],
    "order": Annotated[Literal["asc", "desc"], Meta(description="`desc`: newest first.")],
}


class Why(TypedDict):
    """How a message came about: it, the one whose handling led to it, and so on; the injection comes last."""

    messages: list[Message]
    count: words.Count
    next: Annotated[words.MessageId | None, Meta(description="Where the path goes on, if it is longer than 500.")]


class RunEntryShown(Entity):
    """An entry of a run, as the log has it."""

    position: words.Position
    type: words.EntryType
    data: Annotated[
        Raw | Any,
        Meta(
            description='What the entry says, by its type; `{"erased":true}` once it was erased.',
            examples=[{"id": "call-1", "name": "calculator", "input": {"expression": "2*21"}}],
        ),
    ]
    at: words.Time


class Run(Entity):
    """What people see of the handling of a message: thoughts, calls of tools, text."""

    entries: list[RunEntryShown]
    next: Annotated[words.Position | None, Meta(description="The `after` of the next page; null at the end.")]


class Actor(TypedDict):
    """Who caused it."""

    tenant: Annotated[str, Meta(examples=["default"])]
    user: str | None
    request_id: Annotated[str, Meta(examples=["req-5f2c9a01d7e84b36"])] | None
    principal: Annotated[str, Meta(description="Who holds the token.", examples=["operator"])] | None


class Event(TypedDict):
    """One event of the log."""

    position: words.Position
    type: words.EventType
    at: words.Time
    thread_id: Annotated[words.ThreadId | None, Meta(description="Null for what concerns the whole organism.")]
    cause: Annotated[words.MessageId | None, Meta(description="The message whose handling led to it.")]
    correlation: Annotated[words.MessageId | None, Meta(description="The message of the injection at the root.")]
    actor: Actor | None
    data: words.EventData
    content: NotRequired[Annotated[Any, Meta(description="With `content=true`: its content.")]]


class EventList(TypedDict):
    """A page of the log."""

    events: list[Event]
    next: Annotated[
        words.Position | None,
        Meta(description="The `after` of the next page, with `order=desc` its `until`; null at the end."),
    ]


async def messages(call: Call) -> Response:
    """Every message, oldest first."""
    fixed: tuple[Where, ...] = ()
    if cause := call.query.get(
        "cause"
    ):  # what it led to is of the agent that handled it, and found by that one's index
        row = await call.tenant.views.row("messages", cause)
        agent = "" if row is None else orjson.loads(row)["to"]
        fixed = (Where("", "=", agent, any_of=("from", "to")),)
    return await lists.list_of(call, lists.MESSAGES, *fixed)


async def message(call: Call) -> Response:
    """One message; with ``?handlings=true`` the attempts to handle it, with ``?xml=true`` its recorded envelope too."""
    faults = Faults()
    given = call.parameters(faults)
    with faults:
        at = await lists.as_of(call)
    faults.raise_found()
    row = await call.row("messages", call.path_params["id"], at)
    return JsonResponse((await lists.rows_as_asked(call, b"[%b]" % row, given, at))[1:-1])


async def why(call: Call) -> Response:
    """The message, the message whose handling led to it, and so on up to the injection at the root, which is the last.

    Of a very long path these are the first 500; ``next`` is the message where it goes on.
    """
    given = call.parameters()
    found: list[bytes] = []
    wanted: str | None = call.path_params["id"]
    while wanted is not None and len(found) < lists.MAX_LIMIT:
        found.append(await call.row("messages", wanted))
        wanted = orjson.loads(found[-1])["cause"]
    rows = b"[" + b",".join(found) + b"]"
    shown = await lists.rows_as_asked(call, rows, given)
    return JsonResponse(splice(b"{}", {"messages": shown, "count": len(found), "next": wanted}))


async def run(call: Call) -> Response:
    """The entries of the message's run, oldest first: thoughts, calls of tools, text as it was gathered in the log.

    They are in the message's thread, which is read from the message on to its end.
    """
    faults = Faults()
    given = call.parameters(faults)
    with faults:
        at = await lists.as_of(call)
    faults.raise_found()
    log = call.tenant.log
    message = decode(await call.row("messages", call.path_params["id"], at), type=Message)
    limit, until = given.get("limit", lists.DEFAULT_LIMIT), log.head if at is None else at
    after: int | None = max(message.position, given.get("after", 0))
    entries: list[RunEntryShown] = []
    wanted = EventFilter((message.thread_id,), RUN_AND_ENDS, content=True)
    while after is not None and after < until and len(entries) <= limit:
        records = await log.read(after, until, wanted, lists.MAX_LIMIT)
        after = records[-1].position if len(records) == lists.MAX_LIMIT else None
        for record in of_message(message.id, records):
            if not isinstance(record.event, vocabulary.RunEvent):
                after = None
                break
            shown = kind_of(record), Raw(data_of(record)), iso(record.at)
            entries.append(RunEntryShown(record.position, *shown))
    more = entries[limit - 1].position if len(entries) > limit else None
    return JsonResponse(encode(Run(entries[:limit], more)))


def of_message(message_id: str, records: Iterable[Record[Any]]) -> Iterator[Record[Any]]:
    """The records of one message's handling."""
    return (record for record in records if record.event.message == message_id)


async def events(call: Call) -> Response:
    """Events after ``after`` and up to ``until``: ``{events, next}``.

    ``next`` is the ``after`` of the next page; with the newest first it is the page's ``until``.
    """
    head, given = call.tenant.log.head, call.parameters()
    threads = (given["thread"],) if "thread" in given else ()
    kinds = tuple(vocabulary.EVENTS[name] for name in given.get("type", ()))
    limit, until, after = (
        given.get("limit", lists.DEFAULT_LIMIT),
        min(given.get("until", head), head),
        given.get("after", 0),
    )
    wanted, is_reverse = EventFilter(threads, kinds, given.get("content", False)), given.get("order") == "desc"
    read = newest_records if is_reverse else read_records
    found = await read(call.tenant.log, after, until, wanted, limit)
    more = None
    if len(found) == limit:
        last = found[-1].position
        more = last - 1 if is_reverse and last - 1 > after else last if not is_reverse and last < head else None
    return JsonResponse({"events": [_shown(record, call.process.redactor) for record in found], "next": more})


def _shown(record: Record[vocabulary.Event], redactor: Redactor) -> dict[str, Any]:
    """The record; what looks like a credential is shown in nothing but a payload, which stands as it came."""
    event = shown(record)
    event["data"] = orjson.Fragment(redactor.shown(orjson.dumps(event["data"])))
    if record.content is not None:
        event["content"] = {"erased": True} if record.content.erased else orjson.loads(record.content.json)
    return event


MESSAGES: Final = tagged(
    Tag("messages", "Messages: the whole history, and one."),
    Route(
        "GET /messages",
        messages,
        right=READ,
        by_head=True,
        gives=gives(lists.MessageList),
        query=lists.MESSAGES.takes,
        narrow=lists.NARROW_MESSAGES,
    ),
    Route(
        "GET /messages/{id}/why",
        why,
        right=READ,
        by_head=True,
        gives=gives(Why),
        query=lists.IN_ROWS,
        refuses=(NotFound,),
    ),
    Route(
        "GET /messages/{id}/run",
        run,
        right=Right("read", {"id": "message"}),
        by_head=True,
        gives=gives(Run),
        query=("after", "limit", lists.AT),
        refuses=(NotFound,),
    ),
    Route(
        "GET /messages/{id}",
        message,
        right=Right("read", {"id": "message"}),
        by_head=True,
        gives=gives(Message),
        query=(*lists.IN_ROWS, lists.AT),
        refuses=(NotFound,),
    ),
)
LOG: Final = tagged(
    Tag("log", "The log's own events, in order."),
    Route("GET /log", events, right=READ, by_head=True, gives=gives(EventList), query=TAKES, narrow=NARROW),
)
