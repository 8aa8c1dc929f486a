"""Where in a payload a text was found."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Annotated, Final

import orjson
from msgspec import Meta, UnsetType

from organism.events.entity import Entity
from organism.model import words

HIT_CHARS: Final = 160
CHARS_BEFORE: Final = 60
MOST_ESCAPED: Final = len("\\u0000")
_REST: Final = re.compile(rb'(?:[^"\\]|\\u[0-9a-f]{4}|\\[^u])*+')
"""What follows in a string of JSON, up to its end."""


class Hit(Entity):
    """The first place where a payload has the text: a piece of what the payload says, and where in it the text is."""

    message_id: words.MessageId
    text: Annotated[str, Meta(max_length=HIT_CHARS, examples=["My name is Dan."])]
    start: Annotated[words.Count, Meta(description="How many characters of the piece come before the text.")]
    end: Annotated[words.Count, Meta(description="Where the text ends in the piece.")]


ShownHit = Annotated[Hit | UnsetType | None, Meta(description="With `?q=`: where it was found.")]


def hit(message_id: str, payload: bytes, text: str) -> Hit | None:
    """The first find of a text in a payload, which is JSON, A-Z and a-z alike; None if it is not there.

    Of a string the piece is what it says, else the JSON itself.
    """
    wanted = orjson.dumps(text)[1:-1].lower()
    start = payload.lower().find(wanted)
    if start < 0:
        return None
    end = start + len(wanted)
    more = _REST.match(payload, end, end + HIT_CHARS * MOST_ESCAPED)
    before = _said_before(payload[max(0, start - CHARS_BEFORE * MOST_ESCAPED) : start])[-CHARS_BEFORE:]
    found = _said(payload[start:end])[:HIT_CHARS]
    before = before[max(0, len(before) + len(found) - HIT_CHARS) :]
    piece = (before + found + _said(b"" if more is None else more[0]))[:HIT_CHARS]
    return Hit(message_id, piece, len(before), len(before) + len(found))


def _said_before(part: bytes) -> str:
    """What the end of the part says, from the string's beginning on if that is in it."""
    end = len(part)
    while (at := part.rfind(b'"', 0, end)) >= 0:
        end = at
        if (at - len(part[:at].rstrip(b"\\"))) % 2 == 0:  # else the quote is escaped
            return _said(part[at + 1 :])
    for cut in range(MOST_ESCAPED):  # where the part begins, a character may be cut in two
        with suppress(orjson.JSONDecodeError):
            return _text(part[cut:])
    return _said(part)


def _said(part: bytes) -> str:
    """What a part of a string of JSON says; as it stands there if it is a part of a character."""
    try:
        return _text(part)
    except orjson.JSONDecodeError:
        return part.decode("utf-8", "replace")


def _text(part: bytes) -> str:
    text: str = orjson.loads(b'"%b"' % part)
    return text
