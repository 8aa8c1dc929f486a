"""Bytes in, bytes out: strict JSON from outside, fields spliced into finished rows, cursors."""

from __future__ import annotations

import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import msgspec
import orjson
from msgspec import Struct

from organism.errors import BodyTooLarge, Fault, InvalidField, InvalidJson

MAX_DEPTH: Final = 64
MAX_ELEMENTS: Final = 40_000
"""The values of a body, each field and each element one: twice as many as the largest payload may have."""
MAX_GATEWAY_ELEMENTS: Final = 100_000
"""Of a body that may be larger: 10,000 messages with a few parts each."""
MAX_NAMES: Final = 2_000
"""The fields of one object: as many as an ordinary payload may have elements."""
MAX_POSITION: Final = (1 << 63) - 1
MAX_SHOWN: Final = 200
_TOKEN: Final = re.compile(rb'[^"\[\]{},]*+(?:(")|([\[{])|([\]}])|(,)|\Z)')
_QUOTE, _OPENED, _CLOSED, _COMMA = range(1, 5)
"""The groups of ``_TOKEN``."""
_LONG: Final = re.compile(rb"\d{19}")
"""So many digits that 64 bits may not hold them."""
_WHOLE_NUMBER: Final = re.compile(rb"\s*+(-?\d{19,}+)\s*+[\]},]?")
_IN_STRING: Final = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_AFTER_STRING: Final = re.compile(rb"\s*+(?:(:)|[,\]}]|\Z)")
_PIECE_BYTES: Final = 1 << 20
"""As much is read at once: a search in C lets no other thread run."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def parse_json(body: bytes, most: int = MAX_ELEMENTS) -> Any:
    """The value of strict UTF-8 JSON (S14).

    Raises ``InvalidJson`` if it is none, is over 64 deep, repeats a key or has a whole number that would lose digits,
    ``BodyTooLarge`` if it has more than ``most`` values or an object more than 2,000 fields. All that is found out
    before any value is made: a body of many small values takes far more memory than its bytes, and one that is refused
    should cost next to nothing.
    """
    _check(body, most)
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InvalidJson(f"The body is not valid JSON: {error}.") from error


def _check(body: bytes, most: int) -> None:
    """Count, up to what is too much. It ends without a word at what is no JSON: the parser says it better."""
    at, values, named, has_long = 0, 1, 0, _LONG.search(body) is not None
    open_names: list[set[bytes]] = [set()]  # of the objects around, of each list an empty one, at first of the body
    while at < len(body) and open_names:
        token = _matched(_TOKEN, body, at)
        kind, at = token.lastindex, token.end()
        if has_long and (number := _WHOLE_NUMBER.fullmatch(token[0])):
            _refuse_if_rounded(number[1].decode())
        if kind == _QUOTE:
            at, name = _string(body, at)
            if name:
                named += 1
                _add_name(open_names[-1], name)
        elif kind == _OPENED:
            values += 1
            open_names.append(set())
            if len(open_names) > MAX_DEPTH + 1:
                raise InvalidJson(f"The body is nested too deep; at most {MAX_DEPTH} levels are taken.")
        elif kind == _CLOSED:
            open_names.pop()
        elif kind == _COMMA:
            values += 1
        if max(values, named) > most:
            raise BodyTooLarge(f"A body here has at most {most} values; more came. Send them in several requests.")


def _refuse_if_rounded(digits: str) -> None:
    """The parser makes a floating-point number of what 64 bits do not hold; JavaScript writes 1e20 in digits."""
    number = Decimal(digits)
    if not -(1 << 63) <= number < 1 << 64 and number != Decimal(repr(float(digits))):
        shown = digits if len(digits) <= MAX_SHOWN else f"{digits[:MAX_SHOWN]}…"
        raise InvalidJson(f"The whole number {shown} would lose digits: it has more than 64 bits. Send it as text.")


def _string(body: bytes, at: int) -> tuple[int, bytes]:
    """Where to read on behind the string that begins at ``at``, and the string itself if it is a name."""
    end = at
    while body[end : end + 1] not in {b'"', b""}:
        piece = _matched(_IN_STRING, body, end).end()
        end = piece if piece > end else len(body)  # a backslash is the last byte
    after = _AFTER_STRING.match(body, end + 1)
    if after is None:
        return len(body), b""
    return (after.end(), body[at - 1 : end + 1]) if after[1] else (end + 1, b"")


def _matched(pattern: re.Pattern[bytes], body: bytes, at: int) -> re.Match[bytes]:
    """The match of a pattern that fits anything, in the piece that begins there."""
    found = pattern.match(body, at, at + _PIECE_BYTES)
    assert found is not None  # noqa: S101 - narrows the type
    return found


def _add_name(names: set[bytes], quoted: bytes) -> None:
    name = quoted
    if b"\\" in quoted:  # one name can be written in several ways
        with suppress(orjson.JSONDecodeError):
            name = orjson.dumps(orjson.loads(quoted))
    if name in names:
        shown = name[1:-1].decode(errors="replace")[:MAX_SHOWN]
        raise InvalidJson(
            f"The key {shown!r} stands twice in one object; send it once.", details=(Fault(f"/{shown}", "named twice"),)
        )
    names.add(name)
    if len(names) > MAX_NAMES:
        raise BodyTooLarge(f"An object in a body has at most {MAX_NAMES} fields; more came.")


def splice(row: bytes, extra: Mapping[str, Any]) -> bytes:
    """A finished JSON object with further fields at its end. A value that is ``bytes`` is finished JSON itself."""
    parts = [b'"' + name.encode() + b'":' + encoded(value) for name, value in extra.items()]
    return b"".join((row[:-1], b"," if len(row) > len(b"{}") else b"", b",".join(parts), b"}"))


def encoded(value: Any) -> bytes:
    """The value as JSON; ``bytes`` are finished JSON already."""
    if isinstance(value, Struct):
        return msgspec.json.encode(value)
    return value if isinstance(value, bytes) else orjson.dumps(value)


def microseconds(text: str, pointer: str, expected: str = "a time") -> int:
    """ISO 8601 with an offset → microseconds since 1970. Raises ``InvalidField`` that names ``pointer``."""
    try:
        # In a query string an unescaped + is read as a space.
        time = datetime.fromisoformat(text.replace(" ", "+") if "T" in text else text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise InvalidField(
            f"Expected {expected} as 2024-01-15T10:00:00Z (with its offset); came {text[:40]!r}.", param=pointer
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
