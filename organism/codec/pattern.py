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

from organism.codec.limits import UNCARRIED
from organism.model.linear import Linear, linear, searchable

_SPECIAL = ".\\?*+{}()|[]^"
_SPECIAL_IN_CLASS = "\\[]^-"
_CONTROLS = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_EXAMPLES = "aA1-_. "
_LETTERS = {escaped[1]: char for char, escaped in _CONTROLS.items()}
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
        node = _read(source)
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


# ── reading: what XSD, JSON Schema and RE2 do not all know is refused by name ─────────────────────────────────────────


def _read(source: str) -> Node:
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
    if char in _LETTERS:
        return _LETTERS[char]
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
