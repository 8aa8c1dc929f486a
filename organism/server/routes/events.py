"""Events as they happen, by Server-Sent Events: what ``/ws`` pushes, for clients that only listen."""

from __future__ import annotations

from typing import Final

from organism.errors import InvalidRequest
from organism.server.bodies import parsed
from organism.server.call import Answer, Call, Route
from organism.server.commands import Subscribe
from organism.server.lists import MAX_POSITION, whole_number
from organism.server.push import Filter
from organism.server.standing import connected, resumed
from organism.server.stream import Beginning, Stream

KIND: Final = b"text/event-stream"
UNBUFFERED: Final = ((b"x-accel-buffering", b"no"),)
"""Asks a proxy not to gather events before it passes them on."""
_LISTS: Final = ("threads", "agents", "events")


async def events(call: Call) -> Answer:
    """First ``connected``, then every event after it that passes the filter.

    ``Last-Event-ID``, else ``since``, goes on after a position that the client has, as ``/ws?since=`` does.
    """
    call.allow_query("since", "log", *_LISTS)
    wanted = _filter(call)
    stream = Stream(call.who, call.process.seats, call.process.tail(call.tenant), wanted, await _beginning(call))
    return Answer(b"", kind=KIND, headers=UNBUFFERED, stream=stream)


async def _beginning(call: Call) -> Beginning:
    since, timeline = _since(call), call.query.get("log")
    if since is None and timeline is None:
        states = call.process.tail(call.tenant).states
        said, states_at = await connected(call.tenant, states, call.process.organism.status)
        return Beginning(said, said["position"], states_at, announce=False)
    position = resumed(call.tenant.log, since, timeline)
    return Beginning({"position": position, "log": call.tenant.log.timeline}, position, 0, announce=True)


def _since(call: Call) -> int | None:
    """The position that the client has: the header's is the newer one, since a browser comes again by the same URL."""
    said, place = call.header(b"last-event-id"), "headers.last-event-id"
    if not said and "since" in call.query:
        said, place = call.query["since"], "query.since"
    return whole_number(said, place, 0, MAX_POSITION) if said or place == "query.since" else None


def _filter(call: Call) -> Filter:
    """The three lists, each as names with commas between them. Raises ``InvalidField`` that names the parameter."""
    try:
        return parsed(Subscribe, {name: call.query[name].split(",") for name in _LISTS if name in call.query}).filter()
    except InvalidRequest as error:
        error.param = f"query.{error.details[0].pointer.split('/')[1]}"
        raise


ROUTES: Final = (Route("GET", "/events", events),)
