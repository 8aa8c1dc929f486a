"""The log's own events, in order."""

from __future__ import annotations

from typing import Any, Final

import orjson

from organism.errors import InvalidField
from organism.log.log import EventFilter
from organism.model.events import EVENT_TYPES, Event
from organism.model.redact import Redactor
from organism.model.times import iso
from organism.server.bodies import Faults
from organism.server.call import Answer, Call, Route, answer
from organism.server.contract import Contract, gives
from organism.server.lists import DEFAULT_LIMIT, MAX_LIMIT, MAX_POSITION, flag, whole
from organism.server.past import read_events
from organism.server.shapes.objects import Events

TAKES: Final = ("after", "until", "thread", "type", "limit", "content")


async def events(call: Call) -> Answer:
    """Events after ``after`` and up to ``until``: ``{events, next}``; ``next`` is the ``after`` of the next page."""
    head = call.tenant.log.head
    faults = Faults()
    with faults:
        call.allow_query(*TAKES)
    with faults:
        limit = whole(call, "limit", DEFAULT_LIMIT, 1, MAX_LIMIT)
    with faults:
        after = whole(call, "after", 0, 0, MAX_POSITION)
    with faults:
        until = whole(call, "until", head, 0, MAX_POSITION)
    with faults:
        kinds = _kinds(call)
    with faults:
        has_content = flag(call, "content")
    faults.tell()
    thread = call.query.get("thread", "")
    wanted = EventFilter((thread,) if thread else (), kinds, has_content)
    found = await read_events(call.tenant.log, after, min(until, head), wanted, limit)
    more = found[-1].position if len(found) == limit and found[-1].position < head else None
    return answer({"events": [_shown(event, call.process.redactor) for event in found], "next": more})


def _kinds(call: Call) -> tuple[str, ...]:
    kind = call.query.get("type", "")
    if kind and kind not in EVENT_TYPES:
        raise InvalidField(f"There is no event type {kind[:40]!r}; docs/design.md lists them.", param="query.type")
    return (kind,) if kind else ()


def _shown(event: Event, redactor: Redactor) -> dict[str, Any]:
    """The event; what looks like a credential is shown in nothing but a payload, which stands as it came."""
    said = {
        "position": event.position,
        "type": event.type,
        "at": iso(event.at),
        "thread_id": event.thread,
        "cause": event.cause,
        "correlation": event.correlation,
        "actor": event.actor,
        "data": orjson.Fragment(redactor.shown(orjson.dumps(event.data))),
    }
    if event.content is not None:
        said["content"] = {"erased": True} if event.content.erased else orjson.loads(event.content.json)
    return said


ROUTES: Final = (Route("GET", "/log", events, by_head=True, contract=Contract(gives=gives(Events), query=TAKES)),)
