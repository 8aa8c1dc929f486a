r"""Patterns from a linear subset of regular expressions (S13), with one text that means the same everywhere.

libxml2's matcher is exponential on nested stars, Python's too. So a pattern is taken only if it is *deterministic*:
reading from left to right, the next character alone tells which part of the pattern it belongs to. Then no matcher has
anything to try twice. That is decided on the pattern's Glushkov automaton: its positions, and which may follow which.

What is taken: characters, escapes, ``.``, classes ``[…]``, ``\d \w \s`` (ASCII) and their opposites, groups, ``|``, and
the quantifiers ``? * + {n} {n,} {n,m}``. A pattern describes the whole value; ``^`` and ``$`` at its ends may stand or
not. It is written anew in what XSD, JSON Schema and Python read alike.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import chain, pairwise

from organism.codec.pattern_reader import Chain, Chars, Either, Node, PatternRefused, Repeat, read

_MAX_COPIES = 64
_MAX_POSITIONS = 1000
_SPECIAL = ".\\?*+{}()|[]^"
_SPECIAL_IN_CLASS = "\\[]^-"
_CONTROLS = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_EXAMPLES = "aA1-_. "


@dataclass(frozen=True, slots=True)
class Pattern:
    """A deterministic pattern. ``text`` (no anchors) goes into an XSD; it describes the whole value."""

    source: str
    text: str
    _python: re.Pattern[str] = field(compare=False, repr=False)
    _node: Node = field(compare=False, repr=False)

    @classmethod
    def of(cls, source: str) -> Pattern:
        """Read ``source``; raises ``PatternRefused``, which says what is wrong with which part."""
        node = read(source)
        _Automaton().check(node)
        _sample(node, 0)
        text = _text(node)
        return cls(source, text, re.compile(text), node)

    @property
    def anchored(self) -> str:
        """The pattern for JSON Schema, which searches."""
        return f"^({self.text})$"

    def fits(self, value: str) -> bool:
        """Whether the whole of ``value`` is described."""
        return self._python.fullmatch(value) is not None

    def example(self, least_chars: int = 0) -> str:
        """A value that fits, of at least ``least_chars`` characters if the pattern can grow so far."""
        return _sample(self._node, least_chars)


def _text(node: Node) -> str:
    match node:
        case Chars(ranges, negated):
            return _class_text(ranges, negated=negated)
        case Chain(parts):
            return "".join(f"({_text(part)})" if isinstance(part, Either) else _text(part) for part in parts)
        case Either(parts):
            return "|".join(map(_text, parts))
        case Repeat(part, least, most):
            body = _text(part)
            return (body if isinstance(part, Chars) else f"({body})") + _quantifier(least, most)


def _quantifier(least: int, most: int | None) -> str:
    plain = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((least, most))
    if plain:
        return plain
    if least == most:
        return f"{{{least}}}"
    return f"{{{least},{'' if most is None else most}}}"


def _class_text(ranges: tuple[tuple[int, int], ...], *, negated: bool) -> str:
    if not negated and len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        char = chr(ranges[0][0])
        return "[$]" if char == "$" else _escaped(char, _SPECIAL)  # XSD knows no \$
    return f"[{'^' if negated else ''}{''.join(_range_text(low, high) for low, high in ranges)}]"


def _range_text(low: int, high: int) -> str:
    """A range of a class. libxml2 misreads one with an escape at its end, so such an end stands by itself."""
    before = after = ""
    while low < high and _needs_escape(chr(low)):
        before += _escaped(chr(low), _SPECIAL_IN_CLASS)
        low += 1
    while low < high and _needs_escape(chr(high)):
        after = _escaped(chr(high), _SPECIAL_IN_CLASS) + after
        high -= 1
    if low == high:
        return before + _escaped(chr(low), _SPECIAL_IN_CLASS) + after
    return f"{before}{chr(low)}-{chr(high)}{after}"


def _needs_escape(char: str) -> bool:
    return char in _SPECIAL_IN_CLASS or char in _CONTROLS


def _escaped(char: str, special: str) -> str:
    return _CONTROLS.get(char) or ("\\" + char if char in special else char)


def _sample(node: Node, want: int) -> str:
    match node:
        case Chars():
            return _sample_char(node)
        case Either(parts):
            samples = [_sample(part, want) for part in parts]
            return min((sample for sample in samples if len(sample) >= want), key=len, default=max(samples, key=len))
        case Repeat(part, least, most):
            one = _sample(part, 1 if want else 0)
            times = max(least, -(-want // len(one))) if one else least
            return one * (times if most is None else min(times, most))
        case Chain(parts):
            texts = [_sample(part, 0) for part in parts]
            for at, part in enumerate(parts):
                lacking = want - sum(map(len, texts))
                if lacking > 0:
                    texts[at] = _sample(part, len(texts[at]) + lacking)
            return "".join(texts)


def _sample_char(chars: Chars) -> str:
    for char in chain(_EXAMPLES, (chr(low) for low, _ in chars.ranges), map(chr, range(0x21, 0x250))):
        if any(low <= ord(char) <= high for low, high in chars.ranges) != chars.negated:
            return char
    raise PatternRefused("a class in it leaves no usual character")


@dataclass(frozen=True, slots=True)
class _Ends:
    """How a part of the pattern begins and ends; ``empty``: it may be nothing."""

    empty: bool
    first: frozenset[int]
    last: frozenset[int]


class _Automaton:
    """The Glushkov automaton, built to be judged and thrown away."""

    def __init__(self) -> None:
        self._chars: list[Chars] = []
        self._follow: list[set[int]] = []

    def check(self, node: Node) -> None:
        ends = self._add(node)
        for successors in (ends.first, *self._follow):
            self._refuse_overlap(successors)

    def _refuse_overlap(self, positions: Collection[int]) -> None:
        ranges = sorted((low, high, at) for at in positions for low, high in _positive(self._chars[at]))
        for (_, high, one), (low, _, other) in pairwise(ranges):
            if low <= high:
                raise PatternRefused(
                    f"after the same beginning, {chr(low)!r} may belong to {_text(self._chars[one])} or to another "
                    f"{_text(self._chars[other])}; write it so that the next character decides"
                )

    def _add(self, node: Node) -> _Ends:
        match node:
            case Chars():
                return self._position(node)
            case Chain(parts):
                return self._chain([self._add(part) for part in parts])
            case Either(parts):
                ends = [self._add(part) for part in parts]
                return _Ends(
                    any(end.empty for end in ends),
                    frozenset().union(*(end.first for end in ends)),
                    frozenset().union(*(end.last for end in ends)),
                )
            case Repeat(part, least, most):
                return self._repeat(part, least, most)

    def _position(self, chars: Chars) -> _Ends:
        if len(self._chars) >= _MAX_POSITIONS:
            raise PatternRefused(
                f"it is too large: more than {_MAX_POSITIONS} positions when its counts are written out"
            )
        self._chars.append(chars)
        self._follow.append(set())
        here = frozenset({len(self._chars) - 1})
        return _Ends(empty=False, first=here, last=here)

    def _chain(self, parts: list[_Ends]) -> _Ends:
        so_far = _Ends(empty=True, first=frozenset(), last=frozenset())
        for part in parts:
            for position in so_far.last:
                self._follow[position] |= part.first
            so_far = _Ends(
                so_far.empty and part.empty,
                so_far.first | part.first if so_far.empty else so_far.first,
                so_far.last | part.last if part.empty else part.last,
            )
        return so_far

    def _repeat(self, part: Node, least: int, most: int | None) -> _Ends:
        copies = [self._add(part) for _ in range(min(max(least, 1), _MAX_COPIES))]
        if most is None or most > max(least, 1) or least > _MAX_COPIES:
            self._loop(copies[-1])
        whole = self._chain(copies)
        return _Ends(empty=True, first=whole.first, last=whole.last) if least == 0 else whole

    def _loop(self, body: _Ends) -> None:
        if body.empty:
            raise PatternRefused("a part that may be empty is repeated; repeat what is in it, once")
        for position in body.last:
            if self._follow[position] & body.first:
                raise PatternRefused("a repetition is repeated; one of the two is enough")
            self._follow[position] |= body.first


def _positive(chars: Chars) -> list[tuple[int, int]]:
    """The ranges that ``chars`` takes, the opposite taken out."""
    if not chars.negated:
        return list(chars.ranges)
    edges = [-1, *chain.from_iterable(chars.ranges), 0x110000]
    gaps = zip(edges[::2], edges[1::2], strict=True)
    return [(low + 1, high - 1) for low, high in gaps if low + 1 <= high - 1]
