"""Cursors of lists: opaque, bound by a MAC to the tenant, the path and the filter that they were made for (S6)."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final

from organism.errors import InvalidField

_MAC_BYTES: Final = 12
_OFFSET_BYTES: Final = 6


class Cursors:
    """Makes and opens cursors under the server's key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def seal(self, listing: str, offset: int) -> str:
        """The cursor that goes on at ``offset`` in ``listing`` (tenant, path and filter as one text)."""
        place = offset.to_bytes(_OFFSET_BYTES)
        return urlsafe_b64encode(place + self._mac(listing, place)).decode()

    def open(self, listing: str, cursor: str) -> int:
        """The offset. Raises ``InvalidField`` for what was not made for this very listing."""
        try:
            sealed = urlsafe_b64decode(cursor.encode())
        except ValueError:
            sealed = b""
        place = sealed[:_OFFSET_BYTES]
        if not hmac.compare_digest(sealed[_OFFSET_BYTES:], self._mac(listing, place)):
            raise InvalidField(
                "The cursor was not made for this list and filter; take `next` of the page before.",
                param="query.cursor",
            )
        return int.from_bytes(place)

    def _mac(self, listing: str, place: bytes) -> bytes:
        return hmac.new(self._key, listing.encode() + b"\x00" + place, "sha256").digest()[:_MAC_BYTES]
