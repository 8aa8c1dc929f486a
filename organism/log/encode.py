"""Units and contents as they are stored, and back; and the chain that protects them.

A unit is one row of JSON: ``[first, version, at, thread, cause, correlation, actor, [[type, data], …]]``. The first
position stands in the row itself, so that its digest also covers where it lies. The actor is ``[tenant, user, request
id]`` or null. An event of another thread than the unit's, or with another cause or correlation, is ``[type, data,
thread, cause, correlation]``.

Content is a row beside it, sealed by a digest in its event that covers the text and its owner. It is empty only where
the chain says so: the row then names the position of a ``content_erased`` event, which comes after its own event and
names the same owner.

The chain: a commit's hash is HMAC-SHA-256(key, previous hash ‖ first position ‖ digests of its units in order), so a
changed, missing or swapped unit is found without trusting the database, and nobody without the key can write a log that
verifies. The epoch and the timeline, the anchored head and the snapshots are no part of a commit and carry a MAC of
their own under the same key. The key is derived from the key file and the tenant, so a log that is copied into another
tenant's directory does not verify there.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Final

import orjson

from organism.errors import ContentDamaged, LogDamaged
from organism.model.events import ORGANISM_STREAM, SCHEMA_VERSION, Actor, Content, Event, Unit

GENESIS: Final = bytes(32)  # The hash before the first commit
DIGEST_BYTES: Final = 32
SALT_BYTES: Final = 16

RandomBytes = Callable[[int], bytes]  # `os.urandom`, but in tests
UNIT_FIELDS: Final = 8
SHARED_FIELDS: Final = 2  # of an event that shares all else with its unit
SEAL: Final = "content"  # The field of an event's data that holds the digest of its content
OWNER: Final = "content_owner"  # The field that names the content's owner, where it is not the event's thread
REMEDY: Final = "Run `organism log verify --data DIR` to see how far it is whole, then restore a backup."
SealedContent = tuple[int, str, bytes, bytes, bytes]  # Position, owner, salt, JSON, XML
ContentRow = Sequence[Any]  # Owner, salt, JSON, XML, and the position of the event that says it was erased, else None
EventAt = Callable[[int], Event | None]
"""The event at a position, checked against its unit's digest; None if there is none."""
ERASURE: Final = "content_erased"  # The event that says whose content was erased, by its field `owner`
MISSING: Final = "is missing, and no event says that it was erased"

Data = dict[str, Any]
UpcastSteps = Mapping[int, Mapping[str, Callable[[Data], Data]]]
"""``steps[n]`` lifts each type's data from version n to n + 1; a type that is not named there did not change."""
STEPS: Final[UpcastSteps] = MappingProxyType({})  # Version 1 is the first: there is nothing to lift yet


def chain_key(secret: bytes, tenant: str) -> bytes:
    """The key of a tenant's chain; ``secret`` is what its key file holds, ``tenant`` the name of its directory."""
    return hmac.digest(secret, b"organism\0" + tenant.encode(), "sha256")


def digest(body: bytes) -> bytes:
    return sha256(body).digest()


def link(key: bytes, previous: bytes, first: int, digests: Iterable[bytes]) -> bytes:
    return hmac.digest(key, b"".join((previous, first.to_bytes(8, "big", signed=True), *digests)), "sha256")


def mac(key: bytes, *fields: str | int) -> bytes:
    """The MAC of something that is trusted beside the commits; the first field says what it is."""
    return hmac.digest(key, orjson.dumps(fields), "sha256")


def seal(owner: str, salt: bytes, json: bytes, xml: bytes) -> str:
    """What stands in an event for its content: nothing can be guessed from it once salt and text are erased."""
    return sha256(b"".join((salt, owner.encode(), b"\0", json, b"\0", xml))).hexdigest()


class Salts:
    """Random salts, taken in blocks, since one system call a salt costs more than the digest."""

    __slots__ = ("_at", "_block", "_random_bytes")

    _BLOCK_BYTES: Final = 256 * SALT_BYTES

    def __init__(self, random_bytes: RandomBytes) -> None:
        self._random_bytes = random_bytes
        self._block = b""
        self._at = 0

    def next(self) -> bytes:
        at = self._at
        if at >= len(self._block):
            self._block = self._random_bytes(self._BLOCK_BYTES)
            at = 0
        self._at = at + SALT_BYTES
        return self._block[at : self._at]


def lift(version: int, kind: str, data: Data, steps: UpcastSteps = STEPS, present: int = SCHEMA_VERSION) -> Data:
    """Data written by an older version, as it would be written today. Raises ``LogDamaged`` for a newer one's."""
    if version > present:
        raise LogDamaged(
            f"The log holds events of version {version}, this program knows them up to {present}: "
            "run the newer program that wrote them."
        )
    for number in range(version, present):
        step = steps.get(number, {}).get(kind)
        data = data if step is None else step(data)
    return data


def encode(unit: Unit, first: int, salts: Salts) -> tuple[bytes, list[SealedContent], dict[str, int]]:
    """Give the unit's events their positions and what they share with it, and seal their contents, in one walk.

    Returns the row, the contents, and each stream that the unit touches with the position of its last event there.
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


def decode(fields: Sequence[Any]) -> list[Event]:
    """The events of one parsed row, lifted to the present version, without content."""
    position, version, at, thread, cause, correlation, who, listed = fields
    actor = None if who is None else Actor(*who)
    is_present = version == SCHEMA_VERSION
    events: list[Event] = []
    for own in listed:
        kind, data = own[0], own[1]
        event = Event(kind, data if is_present else lift(version, kind, data))
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


def heads_of(events: Iterable[Event]) -> dict[str, int]:
    """Each stream that the events touch, with the position of its last event among them."""
    return {event.thread or ORGANISM_STREAM: event.position for event in events}


def fault(position: int, sealed: Any, row: ContentRow, event_at: EventAt) -> str | None:
    """Why a row is not the content of the event at ``position``; None if it is, or was erased."""
    owner, salt, json, xml, erased_at = row
    if not (isinstance(salt, bytes) and isinstance(json, bytes) and isinstance(xml, bytes)):
        return "is not of the form in which it was written"
    if erased_at is None and seal(owner, salt, json, xml) == sealed:
        return None
    if salt or json or xml:
        return "does not fit its digest, it was changed"
    if not isinstance(erased_at, int) or not _was_erased(position, owner, erased_at, event_at):
        return "is empty, and no event says that it was erased"
    return None


def _was_erased(position: int, owner: str, erased_at: int, event_at: EventAt) -> bool:
    event, erasure = event_at(position), event_at(erased_at)
    if event is None or erasure is None:
        return False
    is_owner = owner == event.data.get(OWNER, event.thread or ORGANISM_STREAM)
    return is_owner and erased_at > position and erasure.type == ERASURE and erasure.data.get("owner") == owner


def content_of(position: int, sealed: str, row: ContentRow | None, event_at: EventAt) -> Content:
    """The content at a position; raises ``ContentDamaged`` if it is not there as it was written, nor erased."""
    said = MISSING if row is None else fault(position, sealed, row, event_at)
    if row is None or said is not None:
        raise ContentDamaged(f"The content at position {position} {said}. {REMEDY}")
    owner, salt, json, xml, _ = row
    return Content(owner, json, xml, erased=not salt)
