"""The tokens of a clause that may hold a sum: numbers, signs, and the words that mean one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from organism.agents.providers.builtin.lexicon import named, rows
from organism.agents.providers.builtin.numbers import Number, numbers_of
from organism.agents.providers.builtin.words import Language, plain

MAX_PHRASE: Final = 6
TWO: Final = 2
MAX_SKIPPED: Final = 4
"""So many words may stand between ``17 % of`` and what it is of."""


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the clause: what it is for a sum, and its value as digits or as a sign."""

    kind: str
    value: str
    start: int
    end: int


class Cursor:
    """Walks over tokens; ``at`` is the next one."""

    def __init__(self, tokens: Sequence[Token], at: int) -> None:
        self._tokens = tokens
        self.at = at

    def kind(self, ahead: int = 0) -> str:
        """The kind of the next token, or of one so many behind it."""
        at = self.at + ahead
        return self._tokens[at].kind if at < len(self._tokens) else ""

    def took(self, *kinds: str) -> Token | None:
        """Take the next token if it is of one of these kinds."""
        if self.kind() not in kinds:
            return None
        self.at += 1
        return self._tokens[self.at - 1]

    def skip_to(self, *kinds: str) -> None:
        """Go past some words to one of these kinds; stay where it does not come."""
        for ahead in range(MAX_SKIPPED):
            if self.kind(ahead) in kinds:
                self.at += ahead
                return
            if self.kind(ahead) != "word":
                return


_SIGNS: Final[Mapping[str, tuple[str, str]]] = {
    "+": ("infix", "+"),
    **dict.fromkeys("-−–", ("infix", "-")),
    **dict.fromkeys(("*", "×", "·", "⋅"), ("infix", "*")),
    **dict.fromkeys(("/", "÷", ":"), ("infix", "/")),
    **dict.fromkeys(("^", "**"), ("infix", "**")),
    "%": ("percent", "%"),
    "(": ("(", "("),
    ")": (")", ")"),
    ",": (",", ","),
    ";": (",", ","),
    "=": ("ask", "="),
    "√": ("prefix", "sqrt"),
    "²": ("postfix", "2"),
    "³": ("postfix", "3"),
}
_SIGN: Final = re.compile(r"\*\*|[-+*/×·⋅÷^%()=−–:,;√²³]|[^\W\d_]+")
_UNITS: Final = named("units")
_MANY: Final = re.compile(r"(\w+)mal")
_JOINED: Final[Mapping[str, Mapping[str, str]]] = {
    "+": {"and": "+", "with": "+", "to": "+"},
    "-": {"of": "-~", "from": "-~"},
    "*": {"and": "*", "with": "*"},
    "/": {"by": "/"},
}
"""By what is done at the end: which words between the numbers stand for which sign."""


def _phrases() -> dict[tuple[str, ...], tuple[str, str]]:
    made: dict[tuple[str, ...], tuple[str, str]] = {}
    for meaning, phrases in rows("sums"):
        kind, value = meaning.split()
        made.update({tuple(phrase.split()): (kind, value) for phrase in phrases.split("|")})
    return made


_MEANINGS: Final[Mapping[tuple[str, ...], tuple[str, str]]] = _phrases()
WORDS: Final = frozenset(word for phrase in _MEANINGS for word in phrase)
"""The words that mean something for a sum."""
_BEGINS: Final = frozenset(phrase[0] for phrase in _MEANINGS)


@dataclass(frozen=True, slots=True)
class _Piece:
    start: int
    end: int
    form: str


def tokens_of(clause: str, language: Language | None = None) -> list[Token]:
    """The tokens of a clause in their order; whatever means nothing for a sum is a ``word``."""
    numbers = [number for number in numbers_of(clause, language) if not _is_code(number)]
    pieces = _pieces(clause, numbers)
    tokens = list(_meant(pieces, {number.start: number for number in numbers}))
    return _verb_final(tokens)


def _is_code(number: Number) -> bool:
    """Whether the digits are no quantity: ``007``, ``030``."""
    text = number.text
    return len(text) > 1 and text[0] == "0" and text.isdigit()


def _pieces(clause: str, numbers: Sequence[Number]) -> list[_Piece]:
    """Numbers (their form is empty), signs and words."""
    pieces, at = [], 0
    for number in (*numbers, None):
        end = number.start if number is not None else len(clause)
        pieces += [
            _Piece(match.start(), match.end(), plain(match.group())) for match in _SIGN.finditer(clause, at, end)
        ]
        if number is not None:
            pieces.append(_Piece(number.start, number.end, ""))
            at = number.end
    return pieces


def _meant(pieces: Sequence[_Piece], numbers: Mapping[int, Number]) -> Iterator[Token]:
    at = 0
    while at < len(pieces):
        piece = pieces[at]
        if not piece.form:
            yield Token("number", numbers[piece.start].canonical, piece.start, piece.end)
            at += 1
            continue
        many = _times(piece)
        if many is not None:
            yield from many
            at += 1
            continue
        if piece.form in _UNITS and at and not pieces[at - 1].form:
            at += 1
            continue
        length, (kind, value) = _phrase(pieces, at)
        if piece.form == ":" and not _is_ratio(pieces, at):
            kind = "word"
        if kind == "infix" and value == "*" and piece.form == "x" and not _is_between(pieces, at):
            kind = "word"
        yield Token(kind, value, piece.start, pieces[at + length - 1].end)
        at += length


def _phrase(pieces: Sequence[_Piece], at: int) -> tuple[int, tuple[str, str]]:
    """The longest phrase that begins here, and what it means."""
    form = pieces[at].form
    if form in _SIGNS:
        return 1, _SIGNS[form]
    if form in _BEGINS:
        forms = [piece.form for piece in pieces[at : at + MAX_PHRASE]]
        for length in range(len(forms), 0, -1):
            meaning = _MEANINGS.get(tuple(forms[:length]))
            if meaning is not None:
                return length, meaning
    return 1, ("word", form)


def _times(piece: _Piece) -> tuple[Token, Token] | None:
    """``dreimal`` is a number and a sign."""
    match = _MANY.fullmatch(piece.form)
    count = {"ein": "1", "zwei": "2"}.get(match.group(1)) if match else None
    if match and count is None:
        numbers = numbers_of(match.group(1), "de")
        count = numbers[0].canonical if len(numbers) == 1 and numbers[0].text == match.group(1) else None
    if count is None:
        return None
    middle = piece.end - len("mal")
    return Token("number", count, piece.start, middle), Token("infix", "*", middle, piece.end)


def _is_ratio(pieces: Sequence[_Piece], at: int) -> bool:
    """Whether a colon divides: ``84 : 7``, ``84:7``, but not ``quick one: 84``."""
    if not 0 < at < len(pieces) - 1:
        return False
    before, after = pieces[at].start - pieces[at - 1].end, pieces[at + 1].start - pieces[at].end
    return not pieces[at - 1].form and not pieces[at + 1].form and (before > 0) == (after > 0)


def _is_between(pieces: Sequence[_Piece], at: int) -> bool:
    """Whether a letter ``x`` stands between numbers or brackets."""
    before = pieces[at - 1].form if at else "x"
    after = pieces[at + 1].form if at + 1 < len(pieces) else "x"
    return before in ("", ")", "%") and after in ("", "(", "-")


def _verb_final(tokens: list[Token]) -> list[Token]:
    """German may say at the end what is to be done: ``3 mit 4 multiplizieren``, ``wenn ich 3 von 9 abziehe``."""
    verb = next((at for at, token in enumerate(tokens) if token.kind in ("verb", "final")), len(tokens))
    kinds = [token.kind for token in tokens]
    if verb == len(tokens) or kinds[:verb].count("number") < TWO or "number" in kinds[verb:]:
        return tokens
    value = tokens[verb].value
    first = kinds.index("number")
    last = max(at for at, kind in enumerate(kinds[:verb]) if kind == "number")
    if value == "-" and kinds[max(0, first - 1) : first] == ["of"]:
        return [*tokens[: first + 1], Token("infix", "-", tokens[first].end, tokens[last].start), *tokens[last:]]
    signs = _JOINED.get(value, {})
    return [
        Token("infix", signs[token.kind], token.start, token.end) if token.kind in signs else token for token in tokens
    ]
