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
from typing import Any, NamedTuple

from organism.codec.limits import UNCARRIED, came, shown
from organism.codec.shape import LENGTHS, RANGES, Facets, Kind, Limit, Scalar

LEAST_INT, MOST_INT = -(2**63), 2**63 - 1
MOST_FLOAT = 1.7976931348623157e308
DATE_PATTERN = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
DATETIME_PATTERN = DATE_PATTERN + r"T([01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[+\-][0-9]{2}:[0-9]{2})"
BYTES_PATTERN = "[A-Za-z0-9+/]*={0,2}"  # libxml2 passes over other characters in base64, which the XSD forbids
DECIMAL_PATTERN = r"[+\-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)"
NATIVE = frozenset({Kind.STR, Kind.INT, Kind.FLOAT, Kind.BOOL})
"""The kinds that JSON has a type for."""
XSD_TRUE = frozenset({"true", "1"})
_MAX_DECIMAL_CHARS = 1_000_000
_MAX_SHOWN_BITS = 200
_MAX_OFFSET = timedelta(hours=14)
_DECIMAL_LIKE = 'a decimal number as text like "12.50" (no exponent)'
_DATETIME_LIKE = 'a date and time with offset like "2026-01-31T12:00:00+00:00"'


class Unfit(ValueError):
    """A value does not fit its shape; the text says what was expected and what came."""


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
    if isinstance(value, float) and value.is_integer() and abs(value) > MOST_INT:  # JSON's large numbers are read so
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


class Lexical(NamedTuple):
    """The forms of a kind.

    ``text`` gives a value's text and raises ``Unfit``; that of a STR is not escaped yet, the others need no escaping.
    ``value`` reads text that is valid by the XSD; it raises ``ValueError`` where Python's range is narrower.
    ``from_json`` reads a JSON value strictly; it raises ``Unfit``.
    """

    text: Callable[[Any], str]
    value: Callable[[str], Any]
    from_json: Callable[[Any], Any]


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
}


# ── constraints ──────────────────────────────────────────────────────────────────────────────────────────────────────


def checker(scalar: Scalar) -> Callable[[Any], str | None]:
    """A function from a value of the scalar's kind to what its facets have against it; None if nothing."""
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
    """A function from a length to what the facets have against it; None if nothing."""
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
    """The constraints as a person says them; lengths count ``what``."""
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
