"""Texts of handlers as they may stand in the log: short, valid UTF-8, and never an error of their own."""

from __future__ import annotations

from functools import partial
from typing import Final

from organism.config.foreign import attempt

CHARACTERS: Final = 2_000


def readable(text: str) -> str:
    """The text without the lone surrogates that no UTF-8 holds."""
    return text[:CHARACTERS].encode("utf-8", "replace").decode()


def described(error: BaseException) -> str:
    """An exception as it stands in the log: its kind and text, no traceback."""
    text = attempt(partial(str, error)).result
    kind = type(error).__name__
    return readable(f"{kind}: {text}") if text else kind


def shown(value: object) -> str:
    """As much of a value as can be shown."""
    return readable(attempt(partial(repr, value)).result or f"<{type(value).__name__}>")
