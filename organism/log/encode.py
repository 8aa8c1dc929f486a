"""A unit as one row: ``[first, version, at, thread, cause, correlation, actor, [[type, data], …]]`` in JSON.

The first position stands in the row itself, so that its digest also covers where it lies. The actor is ``[tenant,
user, request id]`` or null. An event of another thread than the unit's, or with another cause or correlation, is
``[type, data, thread, cause, correlation]``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import orjson

from organism.errors import LogDamaged
from organism.log.chain import Salts, digest, seal
from organism.log.upcast import Upcaster
from organism.model.events import ORGANISM_STREAM, SCHEMA_VERSION, Actor, Event, Unit

UNIT_FIELDS: Final = 8
SHARED_FIELDS: Final = 2
"""So many fields has an event that shares all else with its unit."""
SEAL: Final = "content"
"""The field of an event's data that holds the digest of its content."""
OWNER: Final = "content_owner"
"""The field that names the content's owner, where it is not the event's thread."""
REMEDY: Final = "Run `organism log verify --data DIR` to see how far it is whole, then restore a backup."


SealedContent = tuple[int, str, bytes, bytes, bytes]
"""Position, owner, salt, JSON, XML."""


def encode(unit: Unit, first: int, salts: Salts) -> tuple[bytes, list[SealedContent], dict[str, int]]:
    """Give the unit's events their positions and what they share with it, and seal their contents.

    Gives the row, the contents, and each stream that the unit touches with the position of its last event there.
    One walk over the events does it all, since each message pays for it.
    """
    thread, cause, correlation = unit.thread_id, unit.cause, unit.correlation
    contents: list[SealedContent] = []
    listed: list[tuple[Any, ...]] = []
    streams: dict[str, int] = {}
    position = first
    for event in unit.events:
        if not event.at:
            _share(unit, event)
        event.position = position
        own_thread = event.thread
        content = event.content
        if content is not None:
            json, xml, salt = content.json, content.xml, salts.next()
            owner = content.owner
            event.data[SEAL] = seal(owner, salt, json, xml)
            if owner != (own_thread or ORGANISM_STREAM):
                event.data[OWNER] = owner
            contents.append((position, owner, salt, json, xml))
        if own_thread is thread and event.cause is cause and event.correlation is correlation:
            listed.append((event.type, event.data))
        else:
            listed.append((event.type, event.data, own_thread, event.cause, event.correlation))
        streams[own_thread or ORGANISM_STREAM] = position
        position += 1
    actor = unit.actor
    who = None if actor is None else (actor.tenant, actor.user, actor.request_id, actor.principal)
    body = orjson.dumps((first, SCHEMA_VERSION, unit.at, thread, cause, correlation, who, listed))
    return body, contents, streams


def _share(unit: Unit, event: Event) -> None:
    """The event was made without its unit: give it what it does not say itself."""
    event.at, event.actor = unit.at, unit.actor
    event.thread = event.thread or unit.thread_id
    event.cause = event.cause or unit.cause
    event.correlation = event.correlation or unit.correlation


def hold_order(after: int, rows: Sequence[Sequence[Any]]) -> None:
    """Raise ``LogDamaged`` if rows that begin after ``after`` do not: a read that goes on from them never ends."""
    if not isinstance(rows[-1][0], int) or rows[-1][0] <= after:
        raise LogDamaged(f"What follows position {after} is not in order: a page of the database was changed. {REMEDY}")


def check(first: int, sealed: Any, body: Any) -> None:
    """Raise ``LogDamaged`` with the position if a unit's row does not fit its digest."""
    if not isinstance(body, bytes) or digest(body) != sealed:
        raise LogDamaged(f"The unit at position {first} does not fit its digest: it was changed. {REMEDY}")


def parse(first: int, sealed: Any, body: Any) -> list[Any]:
    """The row's fields, once its digest was found right; raises ``LogDamaged`` with the position."""
    check(first, sealed, body)
    try:
        fields: list[Any] = orjson.loads(body)
    except ValueError:
        fields = []
    if not isinstance(fields, list) or len(fields) != UNIT_FIELDS:
        raise LogDamaged(f"The unit at position {first} cannot be read: it was changed. {REMEDY}")
    if fields[0] != first:
        raise LogDamaged(f"The unit at position {first} was written for position {fields[0]}: it was moved. {REMEDY}")
    return fields


def decode(fields: Sequence[Any], upcaster: Upcaster) -> list[Event]:
    """The events of one parsed row, lifted to the present version, without content."""
    position, version, at, thread, cause, correlation, who, listed = fields
    actor = None if who is None else Actor(*who)
    is_present = version == upcaster.present
    events: list[Event] = []
    for own in listed:
        kind, data = own[0], own[1]
        event = Event(kind, data if is_present else upcaster.lift(version, kind, data))
        event.position = position
        event.at = at
        event.actor = actor
        if len(own) == SHARED_FIELDS:
            event.thread, event.cause, event.correlation = thread, cause, correlation
        else:
            event.thread, event.cause, event.correlation = own[2], own[3], own[4]
        events.append(event)
        position += 1
    return events


def hand_over(
    rows: Iterable[tuple[int, bytes]], after: int, upcaster: Upcaster, apply: Callable[[Event], object]
) -> None:
    """Hand each event after ``after`` to ``apply``: one ``Event`` for all, as making one costs more than most folds."""
    event = Event("", {})
    present = upcaster.present
    for _, body in rows:
        position, version, at, thread, cause, correlation, who, listed = orjson.loads(body)
        event.at = at
        event.actor = None if who is None else Actor(*who)
        event.thread, event.cause, event.correlation = thread, cause, correlation
        for fields in listed:
            event.type = kind = fields[0]
            event.data = fields[1] if version == present else upcaster.lift(version, kind, fields[1])
            event.position = position
            position += 1
            if position <= after + 1:
                continue
            if len(fields) == SHARED_FIELDS:
                apply(event)
                continue
            event.thread, event.cause, event.correlation = fields[SHARED_FIELDS:]
            apply(event)
            event.thread, event.cause, event.correlation = thread, cause, correlation


def heads_of(events: Iterable[Event]) -> dict[str, int]:
    """Each stream that the events touch, with the position of its last event among them."""
    return {event.thread or ORGANISM_STREAM: event.position for event in events}
