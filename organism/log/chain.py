"""The audit chain: a unit's digest, a commit's hash, and the digest of content that can be erased.

A commit's hash is HMAC-SHA-256(key, previous hash ‖ first position ‖ digests of its units in order), so a changed,
missing or swapped unit is found without trusting the database, and nobody without the key can write a log that
verifies.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any, Final

GENESIS: Final = bytes(32)
"""The hash before the first commit."""
DIGEST_BYTES: Final = 32
SALT_BYTES: Final = 16

RandomBytes = Callable[[int], bytes]
"""So many random bytes; ``os.urandom`` but in tests."""


def digest(body: bytes) -> bytes:
    """The digest of a unit's row."""
    return sha256(body).digest()


def link(key: bytes, previous: bytes, first: int, digests: Iterable[bytes]) -> bytes:
    """The hash of a commit that begins at position ``first``."""
    return hmac.digest(key, b"".join((previous, first.to_bytes(8, "big", signed=True), *digests)), "sha256")


def seal(salt: bytes, json: bytes, xml: bytes) -> str:
    """What stands in an event for its content: nothing can be guessed from it once salt and text are erased."""
    return sha256(b"".join((salt, json, b"\0", xml))).hexdigest()


def fits(sealed: str, salt: Any, json: Any, xml: Any) -> bool:
    """Whether the content is the one that was sealed, or was erased (an empty salt).

    What a damaged file gives may be of any type.
    """
    if not (isinstance(salt, bytes) and isinstance(json, bytes) and isinstance(xml, bytes)):
        return False
    return not salt or seal(salt, json, xml) == sealed


class Salts:
    """Random salts, taken in blocks, since one system call a salt costs more than the digest."""

    __slots__ = ("_at", "_block", "_random_bytes")

    _BLOCK_BYTES: Final = 256 * SALT_BYTES

    def __init__(self, random_bytes: RandomBytes) -> None:
        self._random_bytes = random_bytes
        self._block = b""
        self._at = 0

    def next(self) -> bytes:
        """A salt that was not used before."""
        at = self._at
        if at >= len(self._block):
            self._block = self._random_bytes(self._BLOCK_BYTES)
            at = 0
        self._at = at + SALT_BYTES
        return self._block[at : self._at]
