"""Bytes in, bytes out: strict JSON from outside, fields spliced into finished rows, cursors."""

from __future__ import annotations

import hmac
import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any, Final

import orjson

from organism.errors import Fault, InvalidField, InvalidJson

MAX_DEPTH: Final = 64
MAX_POSITION: Final = (1 << 63) - 1
_STRINGS: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_BRACKETS: Final = re.compile(rb"[\[\]{}]")
_STEP: Final = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def parse_json(body: bytes) -> Any:
    """The value. Raises ``InvalidJson`` if it is not strict UTF-8 JSON, is over 64 deep or repeats a key (S14)."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidJson(f"The body is not valid JSON: {error}.") from error
    bare = _STRINGS.sub(b'""', body)
    depth = max(accumulate(map(_STEP.__getitem__, _BRACKETS.findall(bare))), default=0)
    if depth > MAX_DEPTH:
        raise InvalidJson(f"The body is nested {depth} deep; at most {MAX_DEPTH} is taken.")
    _REPEATED_KEYS.decode(body.decode())
    return value


def _refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for key, value in pairs:
        if key in seen:
            raise InvalidJson(
                f"The key {key!r} stands twice in one object; send it once.", details=(Fault(f"/{key}", "named twice"),)
            )
        seen[key] = value
    return seen


_REPEATED_KEYS: Final = json.JSONDecoder(object_pairs_hook=_refuse_twice, parse_int=str, parse_float=str)
"""orjson takes the last of equal keys; this one refuses them. Numbers of any length cost it nothing."""


def splice(row: bytes, extra: Mapping[str, Any]) -> bytes:
    """A finished JSON object with further fields at its end. A value that is ``bytes`` is finished JSON itself."""
    parts = [b'"' + name.encode() + b'":' + encoded(value) for name, value in extra.items()]
    return b"".join((row[:-1], b"," if len(row) > len(b"{}") else b"", b",".join(parts), b"}"))


def encoded(value: Any) -> bytes:
    """The value as JSON; ``bytes`` are finished JSON already."""
    return value if isinstance(value, bytes) else orjson.dumps(value)


def microseconds(text: str, pointer: str) -> int:
    """ISO 8601 with an offset → microseconds since 1970. Raises ``InvalidField`` that names ``pointer``."""
    try:
        # In a query string an unescaped + is read as a space.
        time = datetime.fromisoformat(text.replace(" ", "+") if "T" in text else text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise InvalidField(
            f"Expected a time as 2024-01-15T10:00:00Z (with its offset); came {text[:40]!r}.", param=pointer
        )
    return (time - _EPOCH) // timedelta(microseconds=1)


def whole_number(text: str, place: str, least: int, most: int) -> int:
    """The number that a text says. Raises ``InvalidField`` that names ``place``."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= len(str(most))) or not least <= int(text) <= most:
        name = place.rpartition(".")[2]
        raise InvalidField(f"`{name}` is a whole number from {least} to {most}; came {text[:40]!r}.", param=place)
    return int(text)


_MAC_BYTES: Final = 12
_GROUP_BYTES: Final = 3
"""Cursors are padded to what base64 writes without a remainder, so that each has one text only."""


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
        """The place. Raises ``InvalidField`` for a cursor of another listing."""
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
