"""Makes values fit their schema: texts cut or filled up, numbers moved between their bounds, patterns met."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Final, TypeGuard

from organism.agents.providers.builtin.schemas import Schema
from organism.agents.providers.linear_search import LinearSearch
from organism.codec.pattern_reader import Chain, Chars, Either, Node, PatternRefused, read

MOST_CHARS: Final = 100_000
_FILLING: Final = "…"
_SHAPES: Final[Mapping[str, str]] = {
    "email": "nobody@example.org",
    "idn-email": "nobody@example.org",
    "uri": "https://example.org/",
    "iri": "https://example.org/",
    "uri-reference": "https://example.org/",
    "hostname": "example.org",
    "date": "1970-01-01",
    "date-time": "1970-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "uuid": "00000000-0000-0000-0000-000000000000",
    "ipv4": "0.0.0.0",  # noqa: S104 - a value that says nothing, nothing listens there
    "ipv6": "::",
    "duration": "PT0S",
    "json-pointer": "",
    "regex": "",
}
_LOOKS: Final = MappingProxyType(
    {
        "ipv4": re.compile(r"(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}"),
        "hostname": re.compile(r"(?=.{1,253}$)[A-Za-z0-9](?:[A-Za-z0-9\-.]*[A-Za-z0-9])?"),
        "email": re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+"),
        "idn-email": re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+"),
        "uri": re.compile(r"[a-z][a-z0-9+.\-]*:[^\s<>\"{}|\\^`]+", re.IGNORECASE),
        "iri": re.compile(r"[a-z][a-z0-9+.\-]*:[^\s<>\"{}|\\^`]+", re.IGNORECASE),
        "date": re.compile(r"\d{4}-\d{2}-\d{2}"),
        "date-time": re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z"),
        "time": re.compile(r"\d{2}:\d{2}:\d{2}Z"),
        "uuid": re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"),
    }
)
_MINUTES: Final = re.compile(r"\d{2}:\d{2}")
_UNREAD: Final = frozenset({"ipv6", "duration", "json-pointer", "regex"})
_LIKELY: Final = "aA0 -_."


def fitted_text(text: str, schema: Schema, others: Iterable[str] = ()) -> str:
    """The text as the schema takes it; where it cannot be, one of the others, else one that says nothing."""
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        return _patterned(pattern, (text, *others), schema)
    if schema.get("format") == "time" and _MINUTES.fullmatch(text):
        text = f"{text}:00Z"
    shape = _SHAPES.get(str(schema.get("format")))
    if shape is not None and not _has_shape(text, str(schema["format"])):
        return shape
    text = _cut(text, _bound(schema, "maxLength", MOST_CHARS))
    least = min(_bound(schema, "minLength", 0), MOST_CHARS)
    for other in others if len(text) < least else ():
        text = f"{text} {other}".strip()
        if len(text) >= least:
            text = _cut(text, max(least, _bound(schema, "maxLength", len(text))))
            break
    return text + _FILLING * (least - len(text))


def _has_shape(text: str, name: str) -> bool:
    """Whether the text has the format's shape, as far as that can be told of it."""
    looks = _LOOKS.get(name)
    return looks.fullmatch(text) is not None if looks is not None else bool(text) and name not in _UNREAD


def fitted_number(value: float | Decimal, schema: Schema, *, is_whole: bool) -> int | float:
    """The number within the bounds of the schema, moved as little as can be."""
    step = Decimal(str(schema["multipleOf"])) if _is_number(schema.get("multipleOf")) else Decimal(1 if is_whole else 0)
    least, most = _bounds(schema, step, is_whole=is_whole)
    made = Decimal(str(value))
    made = max(made, least) if least is not None else made
    made = min(made, most) if most is not None else made
    if step > 0 and made % step:
        down = (made / step).to_integral_value(rounding="ROUND_FLOOR") * step
        made = down if least is None or down >= least else down + step
    if is_whole or (made == made.to_integral_value() and abs(made) < 10**15):
        return int(made)
    return float(made)


def _bounds(schema: Schema, step: Decimal, *, is_whole: bool) -> tuple[Decimal | None, Decimal | None]:
    """The least and the most; what is excluded is left by one step, or by very little."""
    least = [Decimal(str(schema["minimum"]))] if _is_number(schema.get("minimum")) else []
    most = [Decimal(str(schema["maximum"]))] if _is_number(schema.get("maximum")) else []
    low, high = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    width = abs(Decimal(str(high)) - Decimal(str(low))) if _is_number(low) and _is_number(high) else Decimal(1)
    away = step if step > 0 else min(Decimal("0.5"), width / 2)
    if _is_number(low):
        least.append(Decimal(math.floor(float(low)) + 1) if is_whole else Decimal(str(low)) + away)
    if _is_number(high):
        most.append(Decimal(math.ceil(float(high)) - 1) if is_whole else Decimal(str(high)) - away)
    return max(least, default=None), min(most, default=None)


def _patterned(pattern: str, texts: Iterable[str], schema: Schema) -> str:
    """The first text, or word of one, that has the pattern; else the shortest that the pattern makes."""
    least, most = _bound(schema, "minLength", 0), _bound(schema, "maxLength", MOST_CHARS)
    try:
        search = LinearSearch(pattern)
        node = read(pattern)
    except PatternRefused:
        return _cut(next(iter(texts), ""), most)
    fitting = (part for text in texts for part in _parts(text) if least <= len(part) <= most and search.finds(part))
    return next(fitting, None) or _sample(node, least)


def _parts(text: str) -> Iterator[str]:
    """The text, its words, and these without the marks around them."""
    for part in (text, *text.split()):
        yield part
        yield part.strip(".,;:!?\"'()")


def _sample(node: Node, least: int) -> str:
    """A short text of the pattern; parts that may repeat do so where more characters are needed."""
    short = _shortest(node)
    if len(short) >= least:
        return short
    for count in range(1, least + 1):
        longer = _shortest(node, count)
        if len(longer) >= least:
            return longer[:MOST_CHARS]
    return short


def _shortest(node: Node, count: int = 0) -> str:
    if isinstance(node, Chars):
        return _char(node)
    if isinstance(node, Chain):
        return "".join(_shortest(part, count) for part in node.parts)
    if isinstance(node, Either):
        return _shortest(node.parts[0], count)
    times = max(node.least, min(count, node.most if node.most is not None else count))
    return _shortest(node.part, 0 if times > 1 else count) * times if times else ""


def _char(chars: Chars) -> str:
    for sign in _LIKELY if chars.negated else "":
        if not any(low <= ord(sign) <= high for low, high in chars.ranges):
            return sign
    return chr(chars.ranges[0][0]) if not chars.negated else "~"


def _cut(text: str, most: int) -> str:
    """At most so many characters, cut between words if that keeps most of them."""
    if len(text) <= most:
        return text
    cut = text[:most]
    at = cut.rfind(" ")
    return cut[:at].rstrip(" ,;:") if at > most // 2 else cut


def _bound(schema: Schema, key: str, otherwise: int) -> int:
    value = schema.get(key)
    return int(value) if _is_number(value) and value >= 0 else otherwise


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
