"""Cursors of lists: opaque, bound by a MAC to the tenant, the path and the filter that they were made for (S6)."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any, Final

import orjson

from organism.errors import InvalidField

_MAC_BYTES: Final = 12
_GROUP_BYTES: Final = 3
"""What base64 writes as whole letters: cursors are filled up to it, so that each has one text only."""


class Cursors:
    """Makes and opens cursors under the server's key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def seal(self, listing: str, place: Any) -> str:
        """The cursor that goes on behind ``place`` (JSON) in ``listing`` (tenant, path and filter as one text)."""
        text = orjson.dumps(place)
        text += b" " * (-len(text) % _GROUP_BYTES)
        return urlsafe_b64encode(text + self._mac(listing, text)).decode()

    def open(self, listing: str, cursor: str) -> Any:
        """The place. Raises ``InvalidField`` for what was not made for this very listing."""
        try:
            sealed = urlsafe_b64decode(cursor.encode())
        except ValueError:
            sealed = b""
        text = sealed[:-_MAC_BYTES]
        if not hmac.compare_digest(sealed[-_MAC_BYTES:], self._mac(listing, text)):
            raise InvalidField(
                "The cursor was not made for this list and filter; take `next` of the page before.",
                param="query.cursor",
            )
        return orjson.loads(text)

    def _mac(self, listing: str, text: bytes) -> bytes:
        return hmac.new(self._key, listing.encode() + b"\x00" + text, "sha256").digest()[:_MAC_BYTES]
