"""Contents as they are stored, and the chain that protects them and their units.

Content is a row of its own. A digest of the text and its owner stands in the unit. A row is empty only if the chain
says so: it names the position of a ``ContentErased`` that comes after its event and has the same owner.

The chain: a commit's hash is HMAC-SHA-256(key, previous hash ‖ first position ‖ digests of its units in order), so a
changed, missing or swapped unit is found without trusting the database, and no one without the key can write a log that
verifies. Epoch and timeline, the anchor and the snapshots are not part of a commit; each has a MAC under the same key.
The key is derived from the key file and the tenant, so a log copied into another tenant's directory does not verify.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import Any, Final

import orjson

from organism.errors import ContentDamaged, LogDamaged
from organism.events import vocabulary as events
from organism.events.record import ORGANISM_STREAM, Content, Record, Unit
from organism.events.stored import VERSION, Placed, Seal, StoredUnit, decode_unit, encode_unit

GENESIS: Final = bytes(32)  # The hash before the first commit
DIGEST_BYTES: Final = 32
SALT_BYTES: Final = 16

BLOCK_SALTS: Final = 256

RandomBytes = Callable[[int], bytes]  # `os.urandom`, but in tests
REMEDY: Final = "Run `organism log verify --data DIR` to see how far it is whole, then restore a backup."
SealedContent = tuple[int, str, bytes, bytes, bytes]  # Position, owner, salt, JSON, XML
ContentRow = Sequence[Any]  # Owner, salt, JSON, XML, and the position of the event that says it was erased, else None
RecordAt = Callable[[int], Record[events.Event] | None]
"""The record at a position, checked against its unit's digest; None if there is none."""
MISSING: Final = "is missing, and no event says that it was erased"


def chain_key(secret: bytes, tenant: str) -> bytes:
    """The key of a tenant's chain; ``secret`` is what its key file holds, ``tenant`` the name of its directory."""
    return hmac.digest(secret, b"organism\0" + tenant.encode(), "sha256")


def digest(body: bytes) -> bytes:
    return sha256(body).digest()


def link(key: bytes, previous: bytes, first: int, digests: Iterable[bytes]) -> bytes:
    return hmac.digest(key, b"".join((previous, first.to_bytes(8, "big", signed=True), *digests)), "sha256")


def mac(key: bytes, *fields: str | int) -> bytes:
    """The MAC of something outside the commits; the first field says what it is."""
    return hmac.digest(key, orjson.dumps(fields), "sha256")


def content_digest(owner: str, salt: bytes, json: bytes, xml: bytes) -> str:
    """The digest of a content that its event carries; it reveals nothing once salt and text are erased."""
    return sha256(b"".join((salt, owner.encode(), b"\0", json, b"\0", xml))).hexdigest()


def place(unit: Unit, first: int) -> dict[str, int]:
    """Give the unit and its records their positions from ``first`` on, and the records what they share with it.

    Returns each stream that the unit touches with the position of its last event there.
    """
    streams: dict[str, int] = {}
    for position, record in enumerate(unit.records, first):
        if not record.at:
            _share(unit, record)
        record.position = position
        streams[record.thread or ORGANISM_STREAM] = position
    unit.first, unit.last = first, first + len(unit.records) - 1
    return streams


class Salts:
    """Makes salts. Randomness is read once a block: a system call costs as much as a digest."""

    __slots__ = ("_block", "_random_bytes")

    def __init__(self, random_bytes: RandomBytes) -> None:
        self._random_bytes = random_bytes
        self._block: list[bytes] = []

    def new(self) -> bytes:
        """A salt that was never given before."""
        if not self._block:
            block = self._random_bytes(BLOCK_SALTS * SALT_BYTES)
            self._block = [block[at : at + SALT_BYTES] for at in range(0, len(block), SALT_BYTES)]
        return self._block.pop()


def encode(unit: Unit, salts: Salts) -> tuple[bytes, list[SealedContent]]:
    """The row of a unit that has its place, and its contents, each sealed by the digest in its record.

    Raises ``TypeError`` or ``ValueError`` for what is no JSON.
    """
    thread, cause, correlation = unit.thread_id, unit.cause, unit.correlation
    contents: list[SealedContent] = []
    happened: list[events.Event] = []
    seals: list[Seal] = []
    placed: list[Placed] = []
    for index, record in enumerate(unit.records):
        own_thread = record.thread
        content = record.content
        if content is not None:
            json, xml, salt = content.json, content.xml, salts.new()
            owner = content.owner
            record.digest = content_digest(owner, salt, json, xml)
            record.content_owner = owner if owner != (own_thread or ORGANISM_STREAM) else None
            seals.append(Seal(index, record.digest, record.content_owner))
            contents.append((record.position, owner, salt, json, xml))
        if own_thread is not thread or record.cause is not cause or record.correlation is not correlation:
            placed.append(Placed(index, own_thread, record.cause, record.correlation))
        happened.append(record.event)
    row = StoredUnit(unit.first, VERSION, unit.at, thread, cause, correlation, unit.actor, happened, seals, placed)
    return encode_unit(row), contents


def _share(unit: Unit, record: Record[events.Event]) -> None:
    """Fill in what the record shares with its unit."""
    record.at, record.actor = unit.at, unit.actor
    record.thread = record.thread or unit.thread_id
    record.cause = record.cause or unit.cause
    record.correlation = record.correlation or unit.correlation


def check_order(after: int, rows: Sequence[Sequence[Any]]) -> None:
    """Raise ``LogDamaged`` if the rows do not end after ``after``: a read that goes on from them would never end."""
    if not isinstance(rows[-1][0], int) or rows[-1][0] <= after:
        raise LogDamaged(f"What follows position {after} is not in order: a page of the database was changed. {REMEDY}")


def check(first: int, sealed: Any, body: Any) -> None:
    """Raise ``LogDamaged`` with the position if a unit's row does not fit its digest."""
    if not isinstance(body, bytes) or digest(body) != sealed:
        raise LogDamaged(f"The unit at position {first} does not fit its digest: it was changed. {REMEDY}")


def parse(first: int, sealed: Any, body: Any) -> StoredUnit:
    """The unit of a row whose digest is right; raises ``LogDamaged`` with the position."""
    check(first, sealed, body)
    try:
        unit = decode_unit(body)
    except ValueError as error:
        raise LogDamaged(f"The unit at position {first} cannot be read: it was changed. {REMEDY}") from error
    if unit.first != first:
        raise LogDamaged(f"The unit at position {first} was written for position {unit.first}: it was moved. {REMEDY}")
    return unit


def heads_of(records: Iterable[Record[events.Event]]) -> dict[str, int]:
    """Each stream that the records touch, with the position of its last one among them."""
    return {record.stream: record.position for record in records}


def fault(position: int, sealed: Any, row: ContentRow, record_at: RecordAt) -> str | None:
    """Why a row is not the content of the event at ``position``; None if it is, or was erased."""
    owner, salt, json, xml, erased_at = row
    if not (isinstance(salt, bytes) and isinstance(json, bytes) and isinstance(xml, bytes)):
        return "is not of the form in which it was written"
    if erased_at is None and content_digest(owner, salt, json, xml) == sealed:
        return None
    if salt or json or xml:
        return "does not fit its digest, it was changed"
    if not isinstance(erased_at, int) or not _was_erased(position, owner, erased_at, record_at):
        return "is empty, and no event says that it was erased"
    return None


def _was_erased(position: int, owner: str, erased_at: int, record_at: RecordAt) -> bool:
    record, erasure = record_at(position), record_at(erased_at)
    if record is None or erasure is None or erased_at <= position:
        return False
    is_owner = owner == (record.content_owner or record.stream)
    return is_owner and isinstance(erasure.event, events.ContentErased) and erasure.event.owner == owner


def content_of(position: int, sealed: str, row: ContentRow | None, record_at: RecordAt) -> Content:
    """The content at a position; raises ``ContentDamaged`` unless it is there as it was written, or was erased."""
    reason = MISSING if row is None else fault(position, sealed, row, record_at)
    if row is None or reason is not None:
        raise ContentDamaged(f"The content at position {position} {reason}. {REMEDY}")
    owner, salt, json, xml, _ = row
    return Content(owner, json, xml, erased=not salt)
