r"""Patterns of payloads (S13), each with one text that means the same in an XSD, in JSON Schema and to RE2.

What is taken: characters, escapes, ``.``, classes ``[…]``, ``\d \w \s`` (ASCII) and their opposites, groups, ``|``, and
the quantifiers ``? * + {n} {n,} {n,m}``. A pattern describes the whole value; ``^`` and ``$`` at its ends may stand or
not. It is rewritten in what all three read alike.

Only RE2 matches it here, which takes linear time on any pattern. libxml2 takes exponential time on some, so the schema
that it enforces has no patterns of payloads; the one that is shown has them (docs/adr/0051-patterns.md).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from organism.codec.limits import UNCARRIED
from organism.model.linear import Linear, linear, searchable

MAX_PATTERN_CHARS = 500
_MAX_NESTING = 20
_MAX_COUNT = 1000
"""RE2's own bound."""
_SPECIAL = ".\\?*+{}()|[]^"
_SPECIAL_IN_CLASS = "\\[]^-"
_CONTROLS = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_LETTERS = {escaped[1]: char for char, escaped in _CONTROLS.items()}
_EXAMPLES = "aA1-_. "
_QUANTIFIERS: dict[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}
_NAMED = {
    "d": [(0x30, 0x39)],
    "w": [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)],
    "s": [(0x09, 0x0A), (0x0D, 0x0D), (0x20, 0x20)],
}
_LINE_ENDS = [(0x0A, 0x0A), (0x0D, 0x0D)]
_TOKEN = re.compile(
    r"(?P<open>\((?:\?:)?)|\[(?P<negated>\^?)(?P<inside>(?:\\.|[^\]\\[])*)\]|\\(?P<escaped>.)"
    r"|\{(?P<least>[0-9]{1,9})(?P<comma>,?)(?P<most>[0-9]{0,9})\}|(?P<char>.)",
    re.DOTALL,
)
_RANGE = re.compile(r"\\([dws])|(\\?.)(?:-(?!\Z)(\\?.))?", re.DOTALL)

Ranges = list[tuple[int, int]]


class PatternRefused(ValueError):
    """The pattern is not taken; the text says which part and why."""


class _Part(NamedTuple):
    """A part of a pattern, and a function from a length to a value that fits, of that length if it can grow so far."""

    text: str
    sample: Callable[[int], str]
    is_char: bool = False
    is_choice: bool = False


@dataclass(frozen=True, slots=True)
class Pattern:
    """``text`` (no anchors) goes into an XSD; it describes the whole value."""

    source: str
    text: str
    _linear: Linear = field(compare=False, repr=False)
    _part: _Part = field(compare=False, repr=False)

    @classmethod
    def of(cls, source: str) -> Pattern:
        """Read ``source``; raises ``PatternRefused``, which says what is wrong with which part."""
        if len(source) > MAX_PATTERN_CHARS:
            raise PatternRefused(f"expected at most {MAX_PATTERN_CHARS} characters, came {len(source)}")
        bare = source.removeprefix("^")
        escapes = len(bare[:-1]) - len(bare[:-1].rstrip("\\"))
        part = _Reader(bare[:-1] if bare.endswith("$") and escapes % 2 == 0 else bare).whole()
        try:
            compiled = linear(part.text)
        except ValueError as error:
            raise PatternRefused(f"it is too large: {error}") from error
        return cls(source, part.text, compiled, part)

    @property
    def anchored(self) -> str:
        """The pattern for JSON Schema, which searches."""
        return f"^({self.text})$"

    def fits(self, value: str) -> bool:
        """Whether the whole of ``value`` is described."""
        return self._linear.fullmatch(searchable(value)) is not None

    def example(self, least_chars: int = 0) -> str:
        """A value that fits, of at least ``least_chars`` characters if the pattern can grow so far."""
        return self._part.sample(least_chars)


class _Reader:
    """Recursive descent over the tokens; what XSD, JSON Schema and RE2 do not all know is refused by name."""

    def __init__(self, source: str) -> None:
        self._tokens = list(_TOKEN.finditer(source))
        self._at = 0
        self._nesting = 0

    def whole(self) -> _Part:
        part = self._choice()
        if self._at < len(self._tokens):
            raise PatternRefused("there is a ) with no (")
        return part

    def _peek(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    def _took(self, text: str) -> bool:
        is_next = self._peek() == text
        self._at += is_next
        return is_next

    def _choice(self) -> _Part:
        parts = [self._chain()]
        while self._took("|"):
            parts.append(self._chain())
        return parts[0] if len(parts) == 1 else _choice(parts)

    def _chain(self) -> _Part:
        parts: list[_Part] = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._repeated(self._atom()))
        return parts[0] if len(parts) == 1 else _chain(parts)

    def _repeated(self, part: _Part) -> _Part:
        token = self._peek()
        if token in _QUANTIFIERS:
            least, most = _QUANTIFIERS[token]
        elif token.startswith("{"):
            least, most = _count(self._tokens[self._at])
        else:
            return part
        self._at += 1
        if self._peek()[:1] in ("?", "*", "+", "{"):
            raise PatternRefused("a quantifier stands after a quantifier (lazy and possessive ones are not known)")
        return _repeat(part, least, most)

    def _atom(self) -> _Part:
        token = self._tokens[self._at]
        self._at += 1
        if token["open"]:
            return self._group()
        if token["inside"] is not None:
            return _chars([*_ranges(token["inside"])], negated=bool(token["negated"]))
        if (escaped := token["escaped"]) is not None:
            if escaped.lower() in _NAMED:
                return _chars(_NAMED[escaped.lower()], negated=escaped.isupper())
            return _one(_literal(escaped))
        char = token[0][0]
        if char == ".":
            return _chars(_LINE_ENDS, negated=True)
        if char in "[\\":
            raise PatternRefused("it ends too early" if char == "\\" else "a class [ is not closed (a [ in it is \\[)")
        if char in "*+?{^$":
            raise PatternRefused(
                f"{char!r} stands where a character is expected (write \\{char} for the character itself)"
            )
        return _one(char)

    def _group(self) -> _Part:
        self._nesting += 1
        if self._nesting > _MAX_NESTING:
            raise PatternRefused(f"groups are nested deeper than {_MAX_NESTING}")
        if self._peek() == "?":
            raise PatternRefused("groups that look around, have names or set flags are not known; use ( ) or (?: )")
        part = self._choice()
        if not self._took(")"):
            raise PatternRefused("a ( is not closed")
        self._nesting -= 1
        return part


def _count(token: re.Match[str]) -> tuple[int, int | None]:
    if token["least"] is None:
        raise PatternRefused("expected a count like {2}, {2,} or {2,5} after '{'")
    least = int(token["least"])
    most = int(token["most"]) if token["most"] else None if token["comma"] else least
    if max(least, most or 0) > _MAX_COUNT or (most is not None and most < max(least, 1)):
        raise PatternRefused(f"expected counts from small to large, up to {_MAX_COUNT}, in {token[0]}")
    return least, most


def _choice(parts: list[_Part]) -> _Part:
    def sample(want: int) -> str:
        samples = [part.sample(want) for part in parts]
        return min((each for each in samples if len(each) >= want), key=len, default=max(samples, key=len))

    return _Part("|".join(part.text for part in parts), sample, is_choice=True)


def _chain(parts: list[_Part]) -> _Part:
    def sample(want: int) -> str:
        texts = [part.sample(0) for part in parts]
        for at, part in enumerate(parts):
            lacking = want - sum(map(len, texts))
            if lacking > 0:
                texts[at] = part.sample(len(texts[at]) + lacking)
        return "".join(texts)

    return _Part("".join(f"({part.text})" if part.is_choice else part.text for part in parts), sample)


def _repeat(part: _Part, least: int, most: int | None) -> _Part:
    def sample(want: int) -> str:
        one = part.sample(1 if want else 0)
        times = max(least, -(-want // len(one))) if one else least
        return one * (times if most is None else min(times, most))

    counted = f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"
    sign = next((sign for sign, counts in _QUANTIFIERS.items() if counts == (least, most)), counted)
    return _Part((part.text if part.is_char else f"({part.text})") + sign, sample)


# ── characters ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _one(char: str) -> _Part:
    return _chars([(ord(_checked(char)), ord(char))])


def _chars(ranges: Ranges, *, negated: bool = False) -> _Part:
    """One character out of ``ranges`` or, ``negated``, any other."""
    usual = chain(_EXAMPLES, (chr(low) for low, _ in ranges), map(chr, range(0x21, 0x250)))
    example = next((char for char in usual if any(low <= ord(char) <= high for low, high in ranges) != negated), None)
    if example is None:
        raise PatternRefused("a class in it leaves no usual character")
    if not negated and len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        char = chr(ranges[0][0])
        text = "[$]" if char == "$" else _escaped(char, _SPECIAL)  # XSD knows no \$
    else:
        text = f"[{'^' if negated else ''}{''.join(_range_text(low, high) for low, high in ranges)}]"
    return _Part(text, lambda _want: example, is_char=True)


def _range_text(low: int, high: int) -> str:
    """A range of a class. libxml2 misreads one with an escape at its end, so such an end stands by itself."""
    before = after = ""
    while low < high and chr(low) in (*_SPECIAL_IN_CLASS, *_CONTROLS):
        before += _escaped(chr(low), _SPECIAL_IN_CLASS)
        low += 1
    while low < high and chr(high) in (*_SPECIAL_IN_CLASS, *_CONTROLS):
        after = _escaped(chr(high), _SPECIAL_IN_CLASS) + after
        high -= 1
    if low == high:
        return before + _escaped(chr(low), _SPECIAL_IN_CLASS) + after
    return f"{before}{chr(low)}-{chr(high)}{after}"


def _escaped(char: str, special: str) -> str:
    return _CONTROLS.get(char) or ("\\" + char if char in special else char)


def _ranges(inside: str) -> Iterator[tuple[int, int]]:
    """The ranges of a class, as they stand in it."""
    if not inside:
        raise PatternRefused("a class [] is empty")
    for found in _RANGE.finditer(inside):
        named, low, high = found.groups()
        if named:
            yield from _NAMED[named]
            continue
        first = last = _class_char(low)
        if high:
            last = "" if high[1:] in _NAMED else _class_char(high)
        if last < first:
            raise PatternRefused("a range in a class runs from the smaller to the larger character")
        yield ord(first), ord(last)


def _class_char(text: str) -> str:
    return _literal(text[1:]) if text[1:] else _checked(text)


def _literal(escaped: str) -> str:
    if escaped in _LETTERS:
        return _LETTERS[escaped]
    if escaped.isalnum():
        known = "\\d \\w \\s \\D \\W \\S \\n \\r \\t and escaped punctuation"
        raise PatternRefused(f"\\{escaped} is not known; known are {known}")
    return _checked(escaped)


def _checked(char: str) -> str:
    if UNCARRIED.match(char):
        raise PatternRefused(f"XML cannot carry the character {char!a}")
    return char
