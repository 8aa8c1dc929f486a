"""The audit chain: a unit's digest, a commit's hash, the digest of content that can be erased, and what else has a MAC.

A commit's hash is HMAC-SHA-256(key, previous hash ‖ first position ‖ digests of its units in order), so a changed,
missing or swapped unit is found without trusting the database, and nobody without the key can write a log that
verifies. The epoch and the timeline, the anchored head and the snapshots are not part of a commit and carry a MAC of
their own under the same key. The key is derived from the key file and the tenant, so a log that is copied into another
tenant's directory does not verify there.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Final

import orjson

GENESIS: Final = bytes(32)
"""The hash before the first commit."""
DIGEST_BYTES: Final = 32
SALT_BYTES: Final = 16

RandomBytes = Callable[[int], bytes]
"""So many random bytes; ``os.urandom`` but in tests."""


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
