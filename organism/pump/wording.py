"""Texts and values of handlers as they may stand in the log: valid UTF-8, and never an error of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from datetime import date, time
from typing import Final

import orjson

from organism.config.foreign import attempt

CHARACTERS: Final = 2_000
_BY_PYTHON: Final = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME


def readable(text: str) -> str:
    """The text without the lone surrogates that no UTF-8 holds."""
    return text[:CHARACTERS].encode("utf-8", "replace").decode()


def described(error: BaseException) -> str:
    """An exception as it stands in the log: its kind and text, no traceback."""
    kind = _said(lambda: type(error).__name__) or "Exception"
    text = _said(lambda: str(error))
    return readable(f"{kind}: {text}" if text else kind)


def shown(value: object) -> str:
    """As much of a value as can be shown."""
    return readable(_said(lambda: repr(value)) or _said(lambda: f"<{type(value).__name__}>"))


def _said(say: Callable[[], str]) -> str:
    """What foreign code says, as a text of no class of its own; empty if it raises."""
    return attempt(lambda: str.__str__(say())).result or ""


def json_of(value: object, option: int = 0) -> bytes:
    """A handler's value as JSON, or ``TypeError``. Python reads dataclasses and times: orjson aborts if they raise."""
    return orjson.dumps(value, _native, option | _BY_PYTHON)


def run_json(value: object) -> bytes:
    """JSON of what a model or a handler said: halves of characters, which no UTF-8 holds, become question marks."""
    try:
        return json_of(value)
    except TypeError:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def _native(value: object) -> object:
    if isinstance(value, date | time):
        return value.isoformat()
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value) if not field.name.startswith("_")}
    raise TypeError
