"""Finding a pattern in a text in time linear in the text, whatever the pattern is.

Python's own matcher is exponential on some patterns, and a script's patterns are looked for in texts of other people.
Here all ways through the pattern are walked at once, one character after the other: its positions are the bits of a
number, and a step is an `or` of the positions that may follow (Glushkov's automaton).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Final

from organism.codec.pattern_reader import Chain, Chars, Either, Node, PatternRefused, Repeat, read

MAX_POSITIONS: Final = 500
MAX_KNOWN: Final = 2048
"""For so many characters it is kept which positions take them."""


@dataclass(frozen=True, slots=True)
class _Span:
    """A part of the pattern: the positions that it may begin and end with, and whether it may be empty."""

    first: int
    last: int
    is_empty: bool


_NOTHING: Final = _Span(0, 0, is_empty=True)


class LinearSearch:
    r"""A pattern to look for. ``^`` at its beginning and ``$`` at its end bind it to those of the text.

    It is written as the patterns of payloads are, but need not be deterministic: characters, ``.``, classes,
    ``\d \w \s`` (ASCII), groups, ``|``, and ``? * + {n,m}``.
    """

    def __init__(self, source: str) -> None:
        """Read the pattern; raises ``PatternRefused``, which says what is wrong with which part."""
        node = read(source)
        self._begins = source.startswith("^")
        self._ends = _ends(source)
        self._chars: list[Chars] = []
        self._follow: list[int] = []
        self._span = self._build(node)
        self._taking: dict[str, int] = {}

    def finds(self, text: str) -> bool:
        """Whether the pattern is anywhere in the text."""
        if self._span.is_empty and not (self._begins and self._ends):
            return True
        standing = 0
        for at, char in enumerate(text):
            ahead = self._span.first if at == 0 or not self._begins else 0
            standing = (self._after(standing) | ahead) & self._positions(char)
            if standing & self._span.last and not self._ends:
                return True
        return bool(standing & self._span.last) or (self._span.is_empty and not text)

    def _after(self, standing: int) -> int:
        ahead = 0
        while standing:
            lowest = standing & -standing
            ahead |= self._follow[lowest.bit_length() - 1]
            standing ^= lowest
        return ahead

    def _positions(self, char: str) -> int:
        """The positions that take this character."""
        found = self._taking.get(char)
        if found is None:
            taken = (1 << at for at, chars in enumerate(self._chars) if _takes(chars, ord(char)))
            found = reduce(or_, taken, 0)
            if len(self._taking) < MAX_KNOWN:
                self._taking[char] = found
        return found

    def _build(self, node: Node) -> _Span:
        if isinstance(node, Chars):
            return self._position(node)
        if isinstance(node, Chain):
            return reduce(self._then, (self._build(part) for part in node.parts), _NOTHING)
        if isinstance(node, Either):
            return reduce(_either, [self._build(part) for part in node.parts])
        return self._repeat(node)

    def _position(self, chars: Chars) -> _Span:
        if len(self._chars) >= MAX_POSITIONS:
            raise PatternRefused(f"it has more than {MAX_POSITIONS} characters, counted as often as they are repeated")
        self._chars.append(chars)
        self._follow.append(0)
        bit = 1 << (len(self._chars) - 1)
        return _Span(bit, bit, is_empty=False)

    def _then(self, left: _Span, right: _Span) -> _Span:
        self._join(left.last, right.first)
        return _Span(
            left.first | (right.first if left.is_empty else 0),
            right.last | (left.last if right.is_empty else 0),
            left.is_empty and right.is_empty,
        )

    def _repeat(self, node: Repeat) -> _Span:
        if not _has_chars(node.part):
            return _NOTHING
        needed = reduce(self._then, (self._build(node.part) for _ in range(node.least)), _NOTHING)
        if node.most is None:
            again = self._build(node.part)
            self._join(again.last, again.first)
            return self._then(needed, _Span(again.first, again.last, is_empty=True))
        rest = _NOTHING
        for _ in range(node.most - node.least):  # the innermost last: each one may only follow the one before it
            one = self._then(self._build(node.part), rest)
            rest = _Span(one.first, one.last, is_empty=True)
        return self._then(needed, rest)

    def _join(self, ends: int, firsts: int) -> None:
        for at in range(len(self._follow)):
            if ends >> at & 1:
                self._follow[at] |= firsts


def _either(left: _Span, right: _Span) -> _Span:
    return _Span(left.first | right.first, left.last | right.last, left.is_empty or right.is_empty)


def _has_chars(node: Node) -> bool:
    if isinstance(node, Chars):
        return True
    return _has_chars(node.part) if isinstance(node, Repeat) else any(map(_has_chars, node.parts))


def _takes(chars: Chars, code: int) -> bool:
    return any(low <= code <= high for low, high in chars.ranges) is not chars.negated


def _ends(source: str) -> bool:
    escapes = len(source[:-1]) - len(source[:-1].rstrip("\\"))
    return source.endswith("$") and escapes % 2 == 0
