"""JSON as servers of models write it."""

from __future__ import annotations

import json
from typing import Any, Final

import orjson

HALF: Final = b"\\ud"
"""How an escaped half of a character begins; such halves are no JSON to the strict reader, but servers send them."""

CUT: Final = "unexpected end of data"
"""What the readers of JSON and of UTF-8 both say of a text whose end is missing."""


def loads(text: bytes) -> Any:
    """The value. Raises ``ValueError`` where the text is no JSON, or nested too deeply."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        if HALF not in text.lower():
            raise
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def ends_early(text: bytes) -> bool:
    """Whether the text is the beginning of JSON whose end is missing."""
    try:
        orjson.loads(_whole_characters(text))
    except orjson.JSONDecodeError as error:
        return CUT in str(error)
    return False


def _whole_characters(text: bytes) -> bytes:
    """The text less a character that is cut at its end."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return text[: error.start] if error.reason == CUT else text
    return text
