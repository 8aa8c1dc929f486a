"""Events as they happen, by Server-Sent Events: what ``/ws`` pushes, for clients that only listen.

And the ticket that opens ``/ws``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from typing import Annotated, Final, TypedDict

from msgspec import Meta
from starlette.responses import Response

from organism.errors import BadPosition, MissingField, RateLimitExceeded
from organism.model import words
from organism.model.principal import Principal
from organism.server.http.auth import LIFE_SECONDS
from organism.server.http.bodies import NoBody, Places, named_in
from organism.server.http.call import Call, JsonResponse, Route, Tag, tagged
from organism.server.http.contract import Gives, gives
from organism.server.http.rights import READ
from organism.server.http.streaming import SSE, live_response
from organism.server.push.filter import as_events
from organism.server.push.frames import FrameNames
from organism.server.push.snapshot import Start, start_from_position, start_from_snapshot
from organism.server.push.viewer import Tail, Viewer
from organism.server.ws.answers import UNTIL
from organism.server.ws.commands import IN_ADDRESS, LISTS, Opening, opening_of, position_in

TAKEN: Final = ("since", "until", "log", *LISTS, "payloads")
LAST_SEEN: Final = "headers.last-event-id"


@dataclass(eq=False)
class EventStream:
    """A client of ``GET /events``, as the registry of connections knows it."""

    who: Principal
    viewer: Viewer

    def dismiss(self, _code: int) -> None:
        self.viewer.end()


class Ticket(TypedDict):
    """Opens `/ws?ticket=…`, once."""

    ticket: Annotated[str, Meta(examples=["ticket_GyXq1b5T0dV8yQb"])]
    expires_in_seconds: Annotated[int, Meta(examples=[30])]


async def events(call: Call) -> Response:
    """First ``connected``, then every event after it that passes the filter.

    ``Last-Event-ID``, else ``since``, goes on after a position that the client has, as ``/ws?since=`` does; at
    ``until`` the stream ends.
    """
    seen = call.headers.get("last-event-id", "").strip()
    opening = opening_of(call.query, TAKEN, position_in(seen, LAST_SEEN) if seen else None)
    places = {**IN_ADDRESS, "/since": LAST_SEEN} if seen else IN_ADDRESS
    return await live_response(call, _stream(call, opening, places), SSE)


async def _stream(call: Call, opening: Opening, places: Places) -> AsyncGenerator[bytes, None]:
    tail = call.process.tail(call.tenant)
    with tail.watched():
        start = await _start(call, opening, places, tail)
        stream = EventStream(call.who, Viewer(tail, replace(opening.filter(), form=as_events), start))
        call.process.connections.add(stream)
        try:
            yield stream.viewer.own(start.connected)
            async for frames in stream.viewer.stream():
                yield frames
        finally:
            call.process.connections.remove(stream)


async def _start(call: Call, opening: Opening, places: Places, tail: Tail) -> Start:
    if not opening.resumes:
        status = call.process.organism.status
        return await start_from_snapshot(call.tenant, tail.snapshots, status, opening.filter())
    with named_in(places):
        return start_from_position(call.tenant.log, opening.since, opening.log, opening.until)


async def ticket(call: Call) -> Response:
    """A ticket for ``/ws?ticket=…``: good for 30 seconds, once, with the rights of the token that asks."""
    await call.body_as(NoBody)
    ticket = call.process.authenticator.tickets.issue(call.who)
    return JsonResponse(Ticket(ticket=ticket, expires_in_seconds=LIFE_SECONDS))


ROUTES: Final = (
    *tagged(
        Tag("events", __doc__),
        Route(
            "GET /events",
            events,
            right=READ,
            gives=(Gives(str, kind=SSE),),
            query=TAKEN,
            narrow={"since": words.Position, "until": UNTIL, "events": FrameNames},
            headers=("Last-Event-ID",),
            refuses=(BadPosition, MissingField, RateLimitExceeded),
        ),
    ),
    *tagged(
        Tag("ws_ticket", "The ticket that opens `/ws` for a page, which can send no header with its handshake."),
        Route("POST /ws-ticket", ticket, right=READ, gives=gives(Ticket), takes=NoBody, refuses=(RateLimitExceeded,)),
    ),
)
