"""Reads the text of a pattern into its parts; what XSD, JSON Schema and RE2 do not all know is refused by name."""

from __future__ import annotations

from dataclasses import dataclass

from organism.codec.refusal import UNCARRIED

MAX_PATTERN_CHARS = 500
_MAX_NESTING = 20
_MAX_COUNT = 1000
"""As RE2 has it."""
_QUANTIFIERS: dict[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}
_DIGIT = ((0x30, 0x39),)
_WORD = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_SPACE = ((0x09, 0x0A), (0x0D, 0x0D), (0x20, 0x20))
_LINE_ENDS = ((0x0A, 0x0A), (0x0D, 0x0D))
_NAMED = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}


class PatternRefused(ValueError):
    """The pattern is not taken; the text says which part and why."""


@dataclass(frozen=True, slots=True)
class Chars:
    """One character out of ``ranges`` (sorted, apart from each other) or, ``negated``, any other."""

    ranges: tuple[tuple[int, int], ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Chain:
    """One part after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """One of the parts."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """``part``, at least ``least`` and at most ``most`` times (None: no bound)."""

    part: Node
    least: int
    most: int | None


Node = Chars | Chain | Either | Repeat


def read(source: str) -> Node:
    """The parts of ``source``; raises ``PatternRefused``."""
    if len(source) > MAX_PATTERN_CHARS:
        raise PatternRefused(f"expected at most {MAX_PATTERN_CHARS} characters, came {len(source)}")
    return _Reader(_without_anchors(source)).whole()


def _without_anchors(source: str) -> str:
    source = source.removeprefix("^")
    escapes = len(source[:-1]) - len(source[:-1].rstrip("\\"))
    return source[:-1] if source.endswith("$") and escapes % 2 == 0 else source


class _Reader:
    """Recursive descent over the text, one character ahead."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0
        self._nesting = 0

    def whole(self) -> Node:
        node = self._either()
        if self._at < len(self._source):
            raise PatternRefused("there is a ) with no (")
        return node

    def _peek(self) -> str:
        return self._source[self._at : self._at + 1]

    def _next(self) -> str:
        char = self._peek()
        if not char:
            raise PatternRefused("it ends too early")
        self._at += 1
        return char

    def _took(self, text: str) -> bool:
        if not self._source.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def _either(self) -> Node:
        parts = [self._chain()]
        while self._took("|"):
            parts.append(self._chain())
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _chain(self) -> Node:
        parts: list[Node] = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._repeat(self._atom()))
        return parts[0] if len(parts) == 1 else Chain(tuple(parts))

    def _repeat(self, part: Node) -> Node:
        char = self._peek()
        if char in _QUANTIFIERS:
            self._at += 1
            least, most = _QUANTIFIERS[char]
        elif char == "{":
            least, most = self._count()
        else:
            return part
        if self._peek() in ("?", "*", "+", "{") and self._peek():
            raise PatternRefused("a quantifier stands after a quantifier (lazy and possessive ones are not known)")
        return Repeat(part, least, most)

    def _count(self) -> tuple[int, int | None]:
        end = self._source.find("}", self._at)
        low, comma, high = self._source[self._at + 1 : max(end, self._at)].partition(",")
        if not _is_count(low) or (high and not _is_count(high)):
            raise PatternRefused("expected a count like {2}, {2,} or {2,5} after '{'")
        least = int(low)
        most = (int(high) if high else None) if comma else least
        if max(least, most or 0) > _MAX_COUNT or (most is not None and most < max(least, 1)):
            raise PatternRefused(f"expected counts from small to large, up to {_MAX_COUNT}, in {{{low}{comma}{high}}}")
        self._at = end + 1
        return least, most

    def _atom(self) -> Node:
        char = self._next()
        if char == "(":
            return self._group()
        if char == "[":
            return self._class()
        if char == ".":
            return Chars(_LINE_ENDS, negated=True)
        if char == "\\":
            return self._escape()
        if char in "*+?{^$":
            raise PatternRefused(
                f"{char!r} stands where a character is expected (write \\{char} for the character itself)"
            )
        return _one(char)

    def _group(self) -> Node:
        self._nesting += 1
        if self._nesting > _MAX_NESTING:
            raise PatternRefused(f"groups are nested deeper than {_MAX_NESTING}")
        if not self._took("?:") and self._peek() == "?":
            raise PatternRefused("groups that look around, have names or set flags are not known; use ( ) or (?: )")
        node = self._either()
        if not self._took(")"):
            raise PatternRefused("a ( is not closed")
        self._nesting -= 1
        return node

    def _escape(self) -> Chars:
        char = self._next()
        if char.lower() in _NAMED:
            return Chars(_NAMED[char.lower()], negated=char.isupper())
        return _one(_literal(char))

    def _class(self) -> Chars:
        negated = self._took("^")
        ranges: list[tuple[int, int]] = []
        while not self._took("]"):
            ranges.extend(self._range())
        if not ranges:
            raise PatternRefused("a class [] is empty")
        return Chars(_merged(ranges), negated)

    def _range(self) -> tuple[tuple[int, int], ...]:
        low = self._class_char()
        if isinstance(low, tuple):
            return low
        if self._peek() != "-" or self._source.startswith("-]", self._at):
            return ((ord(low), ord(low)),)
        self._at += 1
        high = self._class_char()
        if isinstance(high, tuple) or high < low:
            raise PatternRefused("a range in a class runs from the smaller to the larger character")
        return ((ord(low), ord(high)),)

    def _class_char(self) -> str | tuple[tuple[int, int], ...]:
        char = self._next()
        if char == "[":
            raise PatternRefused("a [ within a class is written \\[")
        if char != "\\":
            return _checked(char)
        escaped = self._next()
        return _NAMED[escaped] if escaped in _NAMED else _literal(escaped)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _literal(char: str) -> str:
    if char in _CONTROLS:
        return _CONTROLS[char]
    if char.isalnum():
        raise PatternRefused(
            f"\\{char} is not known; known are \\d \\w \\s \\D \\W \\S \\n \\r \\t and escaped punctuation"
        )
    return _checked(char)


def _checked(char: str) -> str:
    if UNCARRIED.match(char):
        raise PatternRefused(f"XML cannot carry the character {char!a}")
    return char


def _one(char: str) -> Chars:
    return Chars(((ord(_checked(char)), ord(char)),))


def _merged(ranges: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)
