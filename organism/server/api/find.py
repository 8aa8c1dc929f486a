"""Finding: agents by a part of their name, threads and messages by a part of their id or by a text."""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct
from starlette.responses import Response

from organism.events.entity import Entity
from organism.model import words
from organism.server.http.call import Call, JsonResponse, Route, Tag, tagged
from organism.server.http.contract import gives
from organism.server.http.rights import READ
from organism.views.hits import Hit, hit
from organism.views.organism import AGENTS
from organism.views.threads import title
from organism.views.views import KEY, Query, Where, rows_of

T = TypeVar("T")
DEFAULT_LIMIT: Final = 10
SEARCH_SECONDS: Final = 0.25
"""How long payloads are searched: then what is older is left out."""
FIRST_SPAN, LAST_SPAN, PAGE_ROWS = 1024, 16_384, 50
"""So many positions are searched at once: each time twice as many, since what a search has found is lost with it."""
LEAST_OF_ID: Final = 6
_OF_ID: Final = re.compile(r"[a-z0-9.-]+")


class FoundAgent(Entity):
    """An agent whose name has the text."""

    name: words.AgentName
    description: str


class FoundThread(Entity):
    """A thread whose id begins or ends with the text, or whose title has it."""

    id: words.ThreadId
    title: Annotated[str | None, Meta(examples=["Dan"])]
    status: words.ThreadStatus


class FoundMessage(Entity, kw_only=True):
    """A message whose id begins or ends with the text, or whose payload has it."""

    id: words.MessageId
    thread_id: words.ThreadId
    sender: words.AgentName = msgspec.field(name="from")
    to: words.AgentName
    payload_type: words.PayloadType
    timestamp: words.Time
    position: words.Position
    hit: Annotated[Hit | None, Meta(description="Where its payload has the text; null if its id alone has it.")] = None


class Found(Entity):
    """What was found, of each kind the newest."""

    agents: list[FoundAgent]
    threads: list[FoundThread]
    messages: list[FoundMessage]
    complete: Annotated[bool, Meta(description="Whether every payload was searched; `false`: only the newest.")]


class _Payload(Struct):
    payload: Raw


async def find(call: Call) -> Response:
    """What has a text of 2 to 200 characters: names of agents, titles and payloads, A-Z and a-z alike, and ids.

    An id is found by its beginning or its end, if that has six characters or more. Payloads are searched from the
    newest on, for a quarter of a second: `complete` says whether that was enough.
    """
    given = call.parameters()
    search = _Search(call, given["q"], given.get("limit", DEFAULT_LIMIT))
    await search.ids()
    is_complete = False
    with suppress(TimeoutError):
        async with asyncio.timeout(SEARCH_SECONDS):
            is_complete = await search.payloads()
    agents = await search.agents()
    return JsonResponse(Found(agents, list(search.threads.values()), list(search.messages.values()), is_complete))


class _Search:
    """One search: what it has found so far."""

    def __init__(self, call: Call, text: str, limit: int) -> None:
        self.threads: dict[str, FoundThread] = {}
        self.messages: dict[str, FoundMessage] = {}
        self._views = call.tenant.views
        self._at = call.tenant.log.head
        self._text = text
        self._limit = limit

    async def agents(self) -> list[FoundAgent]:
        rows = [row.public for row in await self._views.live_rows(AGENTS, self._at)]
        return [FoundAgent(row.name, row.description) for row in rows if self._is_in(row.name)][: self._limit]

    async def ids(self) -> None:
        """Find threads and messages by the beginning or the end of their ids."""
        if len(self._text) < LEAST_OF_ID or not _OF_ID.fullmatch(self._text):
            return
        for pattern in (f"{self._text}*", f"*{self._text}"):
            where = (Where(KEY, "glob", pattern),)
            query = Query(where, descending=True, limit=self._limit, at=self._at, is_counted=False)
            for thread in rows_of(await self._views.rows("threads", query), FoundThread):
                _put(self.threads, thread.id, thread, self._limit)
            for message in rows_of(await self._views.rows("messages", query), FoundMessage):
                _put(self.messages, message.id, message, self._limit)

    async def payloads(self) -> bool:
        """Find messages by their payloads, and threads by their titles; False if it has ended before the oldest."""
        until, span = self._at, FIRST_SPAN
        while until > 0:
            after: int = max(0, until - span)
            where = (Where("position", ">", after), Where("position", "<=", until))
            query = Query(
                where, "position", descending=True, limit=PAGE_ROWS, text=self._text, at=self._at, is_counted=False
            )
            page = await self._views.rows("messages", query)
            for row, payload in zip(rows_of(page, FoundMessage), rows_of(page, _Payload), strict=True):
                if len(self.messages) >= self._limit and len(self.threads) >= self._limit:
                    return False
                await self._take(row, bytes(payload.payload))
            await asyncio.sleep(0)  # a log in memory is read at once: the time may be over
            until, span = after, min(2 * span, LAST_SPAN)
            if page.count == PAGE_ROWS and page.last is not None:
                until = page.last[0] - 1
        return True

    async def _take(self, message: FoundMessage, payload: bytes) -> None:
        """Take a message whose payload has the text, and its thread if that is called by it."""
        message.hit = hit(message.id, payload, self._text)
        _put(self.messages, message.id, message, self._limit)
        if self._is_in(title(payload)) and message.thread_id not in self.threads:
            row = await self._views.row("threads", message.thread_id, self._at)
            thread = None if row is None else msgspec.json.decode(row, type=FoundThread)
            if thread is not None and self._is_in(thread.title):
                _put(self.threads, thread.id, thread, self._limit)

    def _is_in(self, text: str | None) -> bool:
        return text is not None and _lower(self._text) in _lower(text)


def _put(found: dict[str, T], key: str, value: T, most: int) -> None:
    if key in found or len(found) < most:
        found[key] = value


def _lower(text: str) -> str:
    """The text with a-z for A-Z, as payloads are searched."""
    return text.encode().lower().decode()


NARROW: Final = {
    "q": Annotated[str, Meta(min_length=2, max_length=200, description="What to find.", examples=["refund"])],
    "limit": Annotated[int, Meta(ge=1, le=50, description="How many of each kind at most.", examples=[10])],
}
ROUTES: Final = tagged(
    Tag("find", __doc__),
    Route(
        "GET /find",
        find,
        right=READ,
        by_head=True,
        gives=gives(Found),
        query=tuple(NARROW),
        narrow=NARROW,
        requires=("q",),
    ),
)
