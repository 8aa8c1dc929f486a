"""Events as they happen, by Server-Sent Events: what ``/ws`` pushes, for clients that only listen."""

from __future__ import annotations

from typing import Final

from organism.errors import BadPosition, RateLimitExceeded
from organism.server.bodies import named_in
from organism.server.call import Answer, Call, Route
from organism.server.commands import IN_ADDRESS, LISTS, Subscribe, opening_of, position_in
from organism.server.contract import Contract, Gives
from organism.server.shapes.words import FrameNames, Position
from organism.server.snapshot import Start, start_from_position, start_from_snapshot
from organism.server.stream import Stream
from organism.server.viewer import Tail

TAKEN: Final = ("since", "log", *LISTS)
LAST_SEEN: Final = "headers.last-event-id"
KIND: Final = b"text/event-stream"
UNBUFFERED: Final = ((b"x-accel-buffering", b"no"),)
"""Asks a proxy not to gather events before it passes them on."""


async def events(call: Call) -> Answer:
    """First ``connected``, then every event after it that passes the filter.

    ``Last-Event-ID``, else ``since``, goes on after a position that the client has, as ``/ws?since=`` does.
    """
    asked = opening_of(call.query, TAKEN).begin
    tail = call.process.tail(call.tenant)
    start = await _start(call, asked, tail)
    stream = Stream(call.who, call.process.connections, tail, asked.filter(), start)
    return Answer(b"", kind=KIND, headers=UNBUFFERED, stream=stream)


async def _start(call: Call, asked: Subscribe, tail: Tail) -> Start:
    since = _last_seen(call, asked.since)
    if since is None and asked.log is None:
        return await start_from_snapshot(call.tenant, tail.snapshots, call.process.organism.status)
    places = {**IN_ADDRESS, "/since": LAST_SEEN} if call.header(b"last-event-id") else IN_ADDRESS
    with named_in(places):
        return start_from_position(call.tenant.log, since, asked.log)


def _last_seen(call: Call, since: int | None) -> int | None:
    """The position that the client has: the header's is the newer one, since a browser comes again by the same URL."""
    said = call.header(b"last-event-id")
    return position_in(said, LAST_SEEN) if said else since


STREAM: Final = Contract(
    gives=(Gives(str, kind=KIND.decode()),),
    query=TAKEN,
    narrow={"since": Position, "events": FrameNames},
    headers=("Last-Event-ID",),
    refuses=(BadPosition, RateLimitExceeded),
)

ROUTES: Final = (Route("GET", "/events", events, contract=STREAM),)
