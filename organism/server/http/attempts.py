"""What has become of messages: the attempts to handle them, read from the log where they are asked for."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

import msgspec
from msgspec import Struct

from organism.events.record import Record
from organism.events.vocabulary import Event
from organism.log.log import EventFilter, EventLog
from organism.views.handlings import ATTEMPT_EVENTS, ENDED, MessageHandling, settle, take
from organism.views.organism import AGENTS
from organism.views.views import ViewStore

PAGE_EVENTS: Final = 500


class _Place(Struct):
    """Where a message stands."""

    id: str
    thread_id: str
    position: int


async def read_handlings(log: EventLog, views: ViewStore, rows: bytes, at: int) -> list[MessageHandling]:
    """What has become of each message of a JSON array when the log ended at a position.

    An attempt is in the stream of its thread: that is read from the first of the messages on until all have ended.
    """
    running = {message for row in await views.live_rows(AGENTS, at) for message in row.private.running}
    by_thread: defaultdict[str, list[_Place]] = defaultdict(list)
    messages = msgspec.json.decode(rows, type=list[_Place])
    for place in messages:
        by_thread[place.thread_id].append(place)
    found: dict[str, MessageHandling] = {}
    for thread, places in by_thread.items():
        handlings = {place.id: MessageHandling() for place in places}
        after: int | None = min(place.position for place in places)
        while after is not None and any(handling.state not in ENDED for handling in handlings.values()):
            wanted = EventFilter((thread,), ATTEMPT_EVENTS)
            records: list[Record[Event]] = await log.read(after, at, wanted, PAGE_EVENTS)
            for record in records:
                take(handlings, record)
            after = records[-1].position if len(records) == PAGE_EVENTS else None
        found |= handlings
    settle(found, running)
    return [found[place.id] for place in messages]
