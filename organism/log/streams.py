"""What is made of a stream by reading it: its export (L11), and what a fork of it says (L10)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec
import orjson

from organism.errors import BadPosition, NotFound
from organism.events import vocabulary as events
from organism.events.record import Content, Record
from organism.log.log import EventFilter, History
from organism.model.times import iso

PAGE_EVENTS: Final = 64
"""How many events, with their contents, are in memory at a time."""


async def export(log: History, stream: str) -> AsyncIterator[bytes]:
    """A line of JSON for each event of the stream, in order."""
    after, head, wanted = 0, log.head, EventFilter((stream,), content=True)
    while records := await log.read(after, head, wanted, PAGE_EVENTS):
        for record in records:
            content = record.content
            parts = {} if content is None else {"content": _parts(content)}
            yield orjson.dumps(shown(record) | parts, option=orjson.OPT_APPEND_NEWLINE)
        after = records[-1].position


async def forked(log: History, source: str, until: int) -> events.ThreadForked:
    """The event that begins a fork. Raises ``NotFound`` or ``BadPosition``."""
    wanted = EventFilter((source,))
    first = await log.read(0, None, wanted, 1)
    if not first:
        raise NotFound(f"There is no stream {source!r} to fork.")
    (last,) = await log.read(0, None, wanted, 1, reverse=True)
    if not first[0].position <= until <= last.position:
        raise BadPosition(
            f"Expected the position of an event of {source!r} or one between its events, "
            f"which lie from {first[0].position} to {last.position}; got {until}."
        )
    return events.ThreadForked(source, until)


def shown(record: Record[events.Event]) -> dict[str, Any]:
    """The record without its content, as ``GET /log`` shows it; ``data`` has what seals the content."""
    data: dict[str, Any] = msgspec.to_builtins(record.event)
    del data["event"]
    if record.digest:
        data["content"] = record.digest
    if record.content_owner is not None:
        data["content_owner"] = record.content_owner
    return {
        "position": record.position,
        "type": record.type,
        "at": iso(record.at),
        "thread_id": record.thread,
        "cause": record.cause,
        "correlation": record.correlation,
        "actor": None if record.actor is None else msgspec.structs.asdict(record.actor),
        "data": data,
    }


def _parts(content: Content) -> dict[str, Any]:
    """The JSON byte for byte, without line breaks between its tokens: one line."""
    if content.erased:
        return {"erased": True}
    return {"json": orjson.Fragment(content.json.replace(b"\n", b" ")), "xml": content.xml.decode()}
