"""Strict JSON: no duplicate keys, no ``NaN``, bounded depth and digits; every fault has its JSON pointer.

Python's reader takes the last of two equal keys, and ``NaN``; here its pairs are walked once for faults.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from organism.errors import Fault, pointer

MAX_DEPTH: Final = 64
MAX_DIGITS: Final = 40
MAX_FAULTS: Final = 50
MAX_SHOWN: Final = 60
MAX_FOUND: Final = 1000

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_OPENING: Final = re.compile(r"""\{(?=[ \t\r\n]*["}])|\[(?=[ \t\r\n]*["{\[\]tfnNI0-9-])""")
"""A bracket that may begin an object or a list, and not one of prose."""


class NotJson(ValueError):
    """The text is not valid JSON. ``faults`` says where and why."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(f"{fault.pointer}: {fault.message}".removeprefix(": ") for fault in faults))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class Found:
    """A list or an object that stands in a text. ``faults`` are what is wrong with it; then ``value`` is not whole."""

    value: dict[str, Any] | list[Any]
    faults: tuple[Fault, ...]


def read_json(text: str) -> Any:
    """The one value that the text is. Raises ``NotJson``."""
    try:
        raw = _decoder(strict=True).decode(text.removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        reason = f"this is not JSON (line {error.lineno}, column {error.colno}): {error.msg}"
        raise NotJson([Fault("", reason)]) from None
    except RecursionError:
        raise NotJson([_too_deep("")]) from None
    faults: list[Fault] = []
    value = _plain(raw, "", 0, faults)
    if faults:
        raise NotJson(faults)
    return value


def found_in(text: str) -> Iterator[Found | Fault]:
    """The objects and lists that stand in a text, those within others left out; a ``Fault`` for one that breaks off.

    Where one breaks off the search goes on, a bounded number of times; then it raises ``NotJson``.
    """
    decoder = _decoder(strict=False)  # line breaks inside texts are forgiven: models write them
    at = count = 0
    while opening := _OPENING.search(text, at):
        start, count = opening.start(), count + 1
        if count > MAX_FOUND:
            raise NotJson([Fault("", f"more than {MAX_FOUND} brackets that may begin an object or a list")])
        try:
            raw, at = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            at = max(error.pos, start + 1)
            yield Fault("", f"what begins at character {start + 1} breaks off at {error.pos + 1}: {error.msg}")
        except RecursionError:
            raise NotJson([_too_deep("")]) from None
        else:
            faults: list[Fault] = []
            value = _plain(raw, "", 0, faults)
            yield Found(value, tuple(faults))


def came(value: Any) -> str:
    """The value and its kind, for an error text: ``3 (a number)``, ``"five" (text)``, ``a list``."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    text = json.dumps(value[: MAX_SHOWN + 1] if isinstance(value, str) else value, ensure_ascii=False)
    shown = text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
    kind = "text" if isinstance(value, str) else "a number"
    return shown if value is None or isinstance(value, bool) else f"{shown} ({kind})"


class _Pairs(list[tuple[str, Any]]):
    """An object as it stands, each pair of it."""


@dataclass(frozen=True, slots=True)
class _NoNumber:
    """Takes the place of a number that cannot be represented."""

    reason: str


def _decoder(*, strict: bool) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=_Pairs, parse_int=_integer, parse_float=_float, parse_constant=_constant, strict=strict
    )


def _integer(text: str) -> int | _NoNumber:
    if len(text) > MAX_DIGITS:
        return _NoNumber(f"expected a number of at most {MAX_DIGITS} digits, came one of {len(text)}")
    return int(text)


def _float(text: str) -> float | _NoNumber:
    wrong = _NoNumber(f"expected a number that can be held, came {text[:MAX_DIGITS]}")
    return number if math.isfinite(number := float(text)) else wrong


def _constant(text: str) -> _NoNumber:
    return _NoNumber(f"expected a value of JSON, came {text}")


def _too_deep(place: str) -> Fault:
    return Fault(place, f"nested deeper than {MAX_DEPTH} levels")


def _plain(raw: Any, place: str, depth: int, faults: list[Fault]) -> Any:
    """Plain values of what was read; what is wrong with them is noted, up to a bound."""
    if isinstance(raw, _NoNumber):
        return _noted(faults, place, raw.reason)
    if isinstance(raw, str):
        return _text(raw, place, faults)
    if not isinstance(raw, list):
        return raw
    if depth >= MAX_DEPTH:
        return _noted(faults, place, _too_deep(place).message)
    if not isinstance(raw, _Pairs):
        return [_plain(item, pointer(place, at), depth + 1, faults) for at, item in enumerate(raw)]
    entries: dict[str, Any] = {}
    for key, value in raw:
        inner = pointer(place, _text(key, place, faults)[:MAX_SHOWN])
        if key in entries:
            _noted(faults, inner, "this key stands here twice")
        entries[key] = _plain(value, inner, depth + 1, faults)
    return entries


def _text(text: str, place: str, faults: list[Fault]) -> str:
    if text.isascii() or not _SURROGATE.search(text):
        return text
    _noted(faults, place, "expected characters, came half of a surrogate pair")
    return _SURROGATE.sub("\ufffd", text)


def _noted(faults: list[Fault], place: str, message: str) -> None:
    if len(faults) < MAX_FAULTS:
        faults.append(Fault(place, message))
