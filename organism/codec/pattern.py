r"""Patterns of payloads (S13), each with one text that means the same in an XSD, in JSON Schema and to RE2.

What is taken: characters, escapes, ``.``, classes ``[…]``, ``\d \w \s`` (ASCII) and their opposites, groups, ``|``, and
the quantifiers ``? * + {n} {n,} {n,m}``. A pattern describes the whole value; ``^`` and ``$`` at its ends may stand or
not. It is written anew in what all three read alike.

Only RE2 matches it here, which takes linear time on any pattern. libxml2 takes exponential time on some, so the schema
that it enforces has no patterns of payloads; the one that is shown has them (docs/adr/0051-patterns.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain

from organism.codec.pattern_reader import Chain, Chars, Either, Node, PatternRefused, Repeat, read
from organism.model.linear import Linear, linear, searchable

_SPECIAL = ".\\?*+{}()|[]^"
_SPECIAL_IN_CLASS = "\\[]^-"
_CONTROLS = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_EXAMPLES = "aA1-_. "


@dataclass(frozen=True, slots=True)
class Pattern:
    """``text`` (no anchors) goes into an XSD; it describes the whole value."""

    source: str
    text: str
    _linear: Linear = field(compare=False, repr=False)
    _node: Node = field(compare=False, repr=False)

    @classmethod
    def of(cls, source: str) -> Pattern:
        """Read ``source``; raises ``PatternRefused``, which says what is wrong with which part."""
        node = read(source)
        text = _text(node)
        try:
            compiled = linear(text)
        except ValueError as error:
            raise PatternRefused(f"it is too large: {error}") from error
        _sample(node, 0)
        return cls(source, text, compiled, node)

    @property
    def anchored(self) -> str:
        """The pattern for JSON Schema, which searches."""
        return f"^({self.text})$"

    def fits(self, value: str) -> bool:
        """Whether the whole of ``value`` is described."""
        return self._linear.fullmatch(searchable(value)) is not None

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
