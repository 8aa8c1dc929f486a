"""Events as they happen, by Server-Sent Events: what ``/ws`` pushes, for clients that only listen."""

from __future__ import annotations

from typing import Final

from organism.errors import BadPosition, RateLimitExceeded
from organism.server.bodies import named_in
from organism.server.call import Answer, Call, Route
from organism.server.commands import Subscribe
from organism.server.contract import Contract, Gives
from organism.server.opening import IN_ADDRESS, LISTS, asked_of, position_in
from organism.server.shapes.words import FrameNames, Position
from organism.server.standing import connected, resumed
from organism.server.stream import Beginning, Stream

TAKEN: Final = ("since", "log", *LISTS)
LAST_SEEN: Final = "headers.last-event-id"
KIND: Final = b"text/event-stream"
UNBUFFERED: Final = ((b"x-accel-buffering", b"no"),)
"""Asks a proxy not to gather events before it passes them on."""


async def events(call: Call) -> Answer:
    """First ``connected``, then every event after it that passes the filter.

    ``Last-Event-ID``, else ``since``, goes on after a position that the client has, as ``/ws?since=`` does.
    """
    asked = asked_of(call.query, TAKEN).begin
    beginning = await _beginning(call, asked)
    tail = call.process.tail(call.tenant)
    stream = Stream(call.who, call.process.seats, tail, asked.filter(), beginning)
    return Answer(b"", kind=KIND, headers=UNBUFFERED, stream=stream)


async def _beginning(call: Call, asked: Subscribe) -> Beginning:
    since = _last_seen(call, asked.since)
    if since is None and asked.log is None:
        standing = call.process.tail(call.tenant).standing
        said, states_at = await connected(call.tenant, standing, call.process.organism.status)
        return Beginning(said, said["position"], states_at, announce=False)
    places = {**IN_ADDRESS, "/since": LAST_SEEN} if call.header(b"last-event-id") else IN_ADDRESS
    with named_in(places):
        position = resumed(call.tenant.log, since, asked.log)
    return Beginning({"position": position, "log": call.tenant.log.timeline}, position, 0, announce=True)


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
