"""What a person is asked to allow shows each character that is in it (S22)."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any, Final

_INVISIBLE: Final = frozenset({"Cf", "Cc", "Co", "Cn", "Zl", "Zp"})


def visible(value: Any) -> Any:
    """JSON with each character that nobody sees, or that turns others around, written out as its number."""
    if isinstance(value, str):
        return "".join(_seen(char) for char in value)
    if isinstance(value, Mapping):
        return {visible(str(key)): visible(each) for key, each in value.items()}
    return [visible(each) for each in value] if isinstance(value, list) else value


def _seen(char: str) -> str:
    is_plain = char in "\n\t" or unicodedata.category(char) not in _INVISIBLE
    return char if is_plain else f"⟨U+{ord(char):04X}⟩"
