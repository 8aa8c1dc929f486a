"""Scalars: value ⇄ text ⇄ JSON, and the exact word on what is wrong with one.

A text form is at once the XSD lexical form and, for kinds that JSON has no type for, the JSON string.
"""

from __future__ import annotations

import re
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import isfinite
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

from organism.codec.limits import MAX_JSON_VALUES, UNCARRIED, came, shown
from organism.codec.shape import LENGTHS, RANGES, Facets, Kind, Limit, Scalar
from organism.config.json_text import MAX_DEPTH as MAX_JSON_DEPTH
from organism.config.json_text import NotJson, read_json

LEAST_INT, MOST_INT = -(2**63), 2**63 - 1
MOST_FLOAT = 1.7976931348623157e308
DATE_PATTERN = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
DATETIME_PATTERN = DATE_PATTERN + r"T([01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+\-][0-9]{2}:[0-9]{2})"
BYTES_PATTERN = "[A-Za-z0-9+/]*={0,2}"  # libxml2 passes over other characters in base64, which the XSD forbids
DECIMAL_PATTERN = r"[+\-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)"
MOST_JSON_INT = 2**64 - 1
JSON_KINDS = frozenset({Kind.JSON, Kind.JSON_OBJECT})
NATIVE = frozenset({Kind.STR, Kind.INT, Kind.FLOAT, Kind.BOOL}) | JSON_KINDS
"""The kinds that JSON has a type for."""
XSD_TRUE = frozenset({"true", "1"})
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_DECIMAL_CHARS = 1_000_000
_MAX_SHOWN_BITS = 200
_MAX_OFFSET = timedelta(hours=14)
_DECIMAL_LIKE = 'a decimal number as text like "12.50" (no exponent)'
_DATETIME_LIKE = 'a date and time with offset like "2026-01-31T12:00:00+00:00"'


class Unfit(ValueError):
    """A value does not fit its shape; the text says what was expected and what came.

    ``steps`` are the keys and indices that lead to the part of the value that does not fit.
    """

    def __init__(self, message: str, steps: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.steps = steps


def uncarried(text: str) -> re.Match[str] | None:
    """The first character of ``text`` that XML 1.0 cannot carry (S11)."""
    return None if text.isprintable() else UNCARRIED.search(text)


def replaced(text: str) -> str:
    """``text`` with U+FFFD for each character that XML cannot carry."""
    return UNCARRIED.sub("\ufffd", text)


# ── value → text ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _str_text(value: object) -> str:
    if not isinstance(value, str):
        raise _wrong(Kind.STR, value)
    return str.__str__(value)


def _int_text(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        if LEAST_INT <= value <= MOST_INT:
            return int.__repr__(value)
        raise _beyond(_big(value))
    if isinstance(value, float) and value.is_integer() and abs(value) > MOST_INT:  # JSON's large numbers
        raise _beyond(repr(value))
    raise _wrong(Kind.INT, value)


def _float_text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(Kind.FLOAT, value)
    return float.__repr__(_finite(value))


def _bool_text(value: object) -> str:
    if value is True:
        return "true"
    if value is False:
        return "false"
    raise _wrong(Kind.BOOL, value)


def _decimal_text(value: object) -> str:
    if not isinstance(value, Decimal):
        raise _wrong(Kind.DECIMAL, value)
    if not value.is_finite():
        raise Unfit(f"expected a finite decimal number, came {value}")
    if abs(value.adjusted()) > _MAX_DECIMAL_CHARS:
        exponent = value.adjusted()
        raise Unfit(f"expected a decimal number of at most {_MAX_DECIMAL_CHARS:,} digits, came exponent {exponent}")
    return format(value, "f")


def _bytes_text(value: object) -> str:
    if not isinstance(value, bytes):
        raise _wrong(Kind.BYTES, value)
    return b2a_base64(value, newline=False).decode()


def _date_text(value: object) -> str:
    if not isinstance(value, date) or isinstance(value, datetime):
        raise _wrong(Kind.DATE, value)
    return date.isoformat(value)


def _datetime_text(value: object) -> str:
    """Offsets that XSD has no form for (seconds in it, beyond 14 hours) are written in UTC: the same instant."""
    if not isinstance(value, datetime):
        raise _wrong(Kind.DATETIME, value)
    offset = value.utcoffset()
    if offset is None:
        raise Unfit(f"expected a date and time with an offset, came {shown(str(value))}; add a tzinfo, for example UTC")
    if offset.total_seconds() % 60 or abs(offset) > _MAX_OFFSET:
        try:
            value = value.astimezone(UTC)
        except OverflowError as error:
            raise Unfit(f"expected a date between the years 1 and 9999 in UTC, came {shown(str(value))}") from error
    return datetime.isoformat(value)


def _json_text(checked: object) -> str:
    """Compact JSON; since the keys are sorted, equal values have one text. What XML cannot carry becomes an escape."""
    text = orjson.dumps(checked).decode()
    return UNCARRIED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


# ── JSON → value ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _checked_by(text_of: Callable[[Any], str]) -> Callable[[Any], Any]:
    """For what JSON has a type for."""

    def same(value: Any) -> Any:
        text_of(value)
        return value

    return same


def _matching(pattern: str, read: Callable[[str], Any], expected: str) -> Callable[[Any], Any]:
    """For what JSON has a text for."""
    compiled = re.compile(pattern)

    def value_of(text: Any) -> Any:
        if not isinstance(text, str) or not compiled.fullmatch(text):
            raise Unfit(f"expected {expected}, came {came(text)}")
        try:
            return read(text)
        except ValueError as error:
            raise Unfit(f"expected a day of the calendar and a time of the day, came {shown(text)}: {error}") from error

    return value_of


def _json_bytes(value: object) -> bytes:
    if not isinstance(value, str):
        raise _wrong(Kind.BYTES, value)
    try:
        octets = a2b_base64(value, strict_mode=True)
    except (Base64Error, ValueError) as error:
        raise Unfit(f"expected base64 text, came {shown(value)}: {error}") from error
    if b2a_base64(octets, newline=False).decode() != value:
        raise Unfit(f"expected base64 text in its one canonical form, came {shown(value)}")
    return octets


class _JsonCopy:
    """Copies a JSON value, and counts what is in it: one that a handler made may be shared or contain itself."""

    def __init__(self) -> None:
        self._count = 0

    def of(self, value: object, steps: tuple[str | int, ...] = ()) -> Any:
        """``value``, of JSON's own types and with sorted keys. Raises ``Unfit``."""
        self._count += 1
        if self._count > MAX_JSON_VALUES:
            raise Unfit(f"expected at most {MAX_JSON_VALUES:,} values in JSON, came more")
        if not isinstance(value, list | dict):
            return _json_scalar(value, steps)
        if len(steps) == MAX_JSON_DEPTH:
            raise Unfit(f"expected JSON of at most {MAX_JSON_DEPTH} levels, came more")
        if isinstance(value, list):
            return [self.of(each, (*steps, at)) for at, each in enumerate(value)]
        pairs = sorted(((_json_key(key, steps), each) for key, each in value.items()), key=itemgetter(0))
        return {key: self.of(each, (*steps, key)) for key, each in pairs}


def _json_scalar(value: object, steps: tuple[str | int, ...]) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _json_str(value, steps)
    if isinstance(value, int):
        if LEAST_INT <= value <= MOST_JSON_INT:
            return int(value)
        raise Unfit(f"expected a whole number of 64 bits, came {_big(value)}; write larger ones as text", steps)
    if isinstance(value, float):
        if isfinite(value):
            return float(value)
        raise Unfit(f"expected a finite number, came {float(value)!r}", steps)
    raise Unfit(f"expected JSON, came {came(value)}", steps)


def _json_key(key: object, steps: tuple[str | int, ...]) -> str:
    if isinstance(key, str):
        return _json_str(key, steps)
    raise Unfit(f"expected text as the key of a JSON object, came {came(key)}", steps)


def _json_str(text: str, steps: tuple[str | int, ...]) -> str:
    if _SURROGATE.search(text):
        raise Unfit("expected whole characters, came half of a surrogate pair", steps)
    return str.__str__(text)


def _json_value(value: object) -> Any:
    return _JsonCopy().of(value)


def _steps(place: str) -> tuple[str, ...]:
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in place.split("/")[1:])


def _json_read(text: str) -> Any:
    try:
        return read_json(text)
    except NotJson as error:
        fault = error.faults[0]
        raise Unfit(fault.message, _steps(fault.pointer)) from error


def _json_object(value: object) -> Any:
    """An object may come as the text of its JSON: models write it so, and earlier versions of some payloads did."""
    found = _json_read(value) if isinstance(value, str) and value.lstrip().startswith("{") else value
    if not isinstance(found, dict):
        raise _wrong(Kind.JSON_OBJECT, value)
    return _json_value(found)


class Lexical(NamedTuple):
    """The forms of a kind.

    ``text`` gives a value's text and raises ``Unfit``; that of text and JSON is not escaped yet, the others need no
    escaping.
    ``value`` reads text that is valid by the XSD; it raises ``ValueError`` where Python's range is narrower.
    ``from_json`` reads a JSON value strictly; it raises ``Unfit``.
    """

    text: Callable[[Any], str]
    value: Callable[[str], Any]
    from_json: Callable[[Any], Any]


def _of_json(checked: Callable[[Any], Any]) -> Lexical:
    return Lexical(lambda value: _json_text(checked(value)), lambda text: checked(_json_read(text)), checked)


LEXICAL: dict[Kind, Lexical] = {
    Kind.STR: Lexical(_str_text, str, _checked_by(_str_text)),
    Kind.INT: Lexical(_int_text, int, _checked_by(_int_text)),
    Kind.FLOAT: Lexical(_float_text, float, lambda value: float(_float_text(value))),
    Kind.BOOL: Lexical(_bool_text, lambda text: text.strip() in XSD_TRUE, _checked_by(_bool_text)),
    Kind.DECIMAL: Lexical(_decimal_text, Decimal, _matching(DECIMAL_PATTERN, Decimal, _DECIMAL_LIKE)),
    Kind.BYTES: Lexical(_bytes_text, a2b_base64, _json_bytes),
    Kind.DATE: Lexical(
        _date_text,
        lambda text: date.fromisoformat(text.strip()),
        _matching(DATE_PATTERN, date.fromisoformat, Kind.DATE.value),
    ),
    Kind.DATETIME: Lexical(
        _datetime_text,
        lambda text: datetime.fromisoformat(text.strip()),
        _matching(DATETIME_PATTERN, datetime.fromisoformat, _DATETIME_LIKE),
    ),
    Kind.JSON: _of_json(_json_value),
    Kind.JSON_OBJECT: _of_json(_json_object),
}


# ── constraints ──────────────────────────────────────────────────────────────────────────────────────────────────────


def checker(scalar: Scalar) -> Callable[[Any], str | None]:
    """A function from a value of the scalar's kind to the reason why its facets refuse it, or None."""
    pattern = scalar.facets.pattern
    if scalar.kind not in (Kind.STR, Kind.BYTES):
        return _bounds(RANGES, scalar.facets)
    counted = length_checker(scalar.facets, "characters" if scalar.kind is Kind.STR else "bytes")
    if pattern is None:
        return lambda value: counted(len(value))

    def check(value: str) -> str | None:
        if not pattern.fits(value):
            return f"expected text of the pattern {pattern.source}, came {shown(value)}"
        return counted(len(value))

    return check


def length_checker(facets: Facets, what: str) -> Callable[[int], str | None]:
    """A function from a length to the reason why the facets refuse it, or None."""
    return _bounds(LENGTHS, facets, what)


def _bounds(limits: Iterable[Limit], facets: Facets, what: str = "") -> Callable[[Any], str | None]:
    given = [(limit.is_broken, limit.of(facets), limit.words) for limit in limits if limit.of(facets) is not None]

    def check(value: Any) -> str | None:
        for is_broken, bound, words in given:
            if is_broken(value, bound):
                return f"expected {words.format(bound, what)}, came {value}"
        return None

    return check


def facet_words(facets: Facets, what: str) -> str:
    """The constraints in words; lengths count ``what``."""
    pattern = [f"of the pattern {facets.pattern.text}"] if facets.pattern else []
    lengths, ranges = (
        [limit.words.format(limit.of(facets), what) for limit in limits if limit.of(facets) is not None]
        for limits in (LENGTHS, RANGES)
    )
    return ", ".join((*lengths, *pattern, *ranges))


def _finite(value: float) -> float:
    try:
        number = float(value)
    except OverflowError as error:
        raise Unfit(
            f"expected a finite number, came {_big(int(value))}, which is too large; declare the field Decimal"
        ) from error
    if not isfinite(number):
        raise Unfit(f"expected a finite number, came {value!r}")
    return number


def _beyond(came: str) -> Unfit:
    return Unfit(f"expected a whole number within ±2⁶³, came {came}; declare the field Decimal for larger ones")


def _big(value: int) -> str:
    return str(value) if value.bit_length() <= _MAX_SHOWN_BITS else f"a number of {value.bit_length()} bits"


def _wrong(kind: Kind, value: object) -> Unfit:
    return Unfit(f"expected {kind.value}, came {came(value)}")


# ── canonical XML as text ─────────────────────────────────────────────────────────────────────────────────────────────


def escaped(text: str) -> str:
    """``text`` as canonical XML writes it between tags."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#xD;")


def opening(name: str, attributes: str = "") -> str:
    """The start tag."""
    return "<" + name + attributes + ">"


def attribute(name: str, value: str) -> str:
    """An attribute, or the declaration of a namespace, as a start tag holds it."""
    value = value.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    value = value.replace("\t", "&#x9;").replace("\n", "&#xA;").replace("\r", "&#xD;")
    return " " + name + '="' + value + '"'


def closing(name: str) -> str:
    """The end tag."""
    return "</" + name + ">"
