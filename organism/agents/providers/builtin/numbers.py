"""Numbers in a text: in digits, as English and German write them, and in words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final

from organism.agents.providers.builtin.words import Language, plain

MAX_DIGITS: Final = 100
SHORTEST: Final = 5
LONGEST: Final = 60
"""No German number below a million has more letters; those of fewer stand in the tables."""

_GROUPED: Final = r"\d{1,3}(?:[.,'\u2019\u00a0\u202f\u2009_ ]\d{3})+(?!\d)(?:[.,]\d+)?"
DIGITS: Final = re.compile(rf"(?:{_GROUPED}|\d+(?:[.,]\d+)?|(?<![\w.])[.]\d+)")
_SPACES: Final = re.compile(r"['\u2019\u00a0\u202f\u2009_ ]")
_UNITS: Final[Mapping[str, int]] = {
    **{
        word: value
        for value, word in enumerate(
            ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
        )
    },
    **{
        word: value
        for value, word in enumerate(
            ["eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"], 11
        )
    },
    **{
        word: value
        for value, word in enumerate(
            ["null", "eins", "zwei", "drei", "vier", "funf", "sechs", "sieben", "acht", "neun", "zehn"]
        )
    },
    **dict.fromkeys(("zwo",), 2),
    **{
        word: value
        for value, word in enumerate(
            ["elf", "zwolf", "dreizehn", "vierzehn", "funfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn"], 11
        )
    },
}
_TENS: Final[Mapping[str, int]] = {
    **{
        word: value * 10
        for value, word in enumerate(["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"], 2)
    },
    **{
        word: value * 10
        for value, word in enumerate(
            ["zwanzig", "dreissig", "vierzig", "funfzig", "sechzig", "siebzig", "achtzig", "neunzig"], 2
        )
    },
    "fourty": 40,
    "fuffzig": 50,
}
_SCALES: Final[Mapping[str, int]] = {
    "dozen": 12,
    "dutzend": 12,
    "hundred": 100,
    "hundert": 100,
    "thousand": 1000,
    "tausend": 1000,
    "k": 1000,
    "tsd": 1000,
    **dict.fromkeys(("million", "millions", "millionen", "mio", "mn"), 10**6),
    **dict.fromkeys(("billion", "billions", "milliarde", "milliarden", "mrd", "bn"), 10**9),
    **dict.fromkeys(("trillion", "trillions", "billionen"), 10**12),
}
_TWENTY: Final = 20
_GERMAN_ONES: Final[Mapping[str, int]] = {
    **{word: value for word, value in _UNITS.items() if value < _TWENTY},
    "ein": 1,
    "eine": 1,
    "einen": 1,
    "einer": 1,
}
_POINTS: Final = frozenset({"point", "komma", "dot", "punkt"})
_ARTICLES: Final = frozenset({"a", "an", "ein", "eine", "einem", "einen", "einer"})
_ENGLISH_ONLY: Final = frozenset({"a", "an"})
_TOKEN: Final = re.compile(r"[^\W\d_]+|\d")


@dataclass(frozen=True, slots=True)
class Number:
    """A number, where it stands and how it is written."""

    start: int
    end: int
    value: Decimal
    text: str

    @property
    def canonical(self) -> str:
        """Digits with a point, and no more of them than needed."""
        return written(self.value)


def written(value: Decimal) -> str:
    """The number in plain digits."""
    text = format(value, "f")
    return (text.rstrip("0").rstrip(".") or "0") if "." in text else text


def from_digits(text: str, language: Language | None = None) -> Decimal | None:
    """The number that the digits mean: signs that group them go, the sign of the fraction becomes a point.

    Where one sign before three digits could be either (2,340 and 2.340), the language decides; without one, a comma
    groups and a point does not.
    """
    text = _SPACES.sub("", text)
    if len(text) > MAX_DIGITS:
        return None
    points, commas = text.count("."), text.count(",")
    if points and commas:
        last = max(text.rfind("."), text.rfind(","))
        whole, fraction = text[:last], text[last + 1 :]
        return Decimal(f"{whole.replace('.', '').replace(',', '')}.{fraction}")
    sign = "." if points else ","
    if points + commas > 1:
        return Decimal(text.replace(sign, ""))
    if points + commas == 1:
        whole, _, fraction = text.partition(sign)
        groups = "." if language == "de" else ","
        is_group = len(fraction) == 3 and sign == groups and 1 <= len(whole) <= 3 and whole != "0"  # noqa: PLR2004 - a group of digits
        return Decimal(f"{whole}{fraction}" if is_group else f"{whole or '0'}.{fraction}")
    return Decimal(text)


def numbers_of(text: str, language: Language | None = None) -> list[Number]:
    """The numbers of the text in their order, none within a word such as ``A4``."""
    found = sorted((*_in_digits(text, language), *_in_words(text, language)), key=lambda number: number.start)
    kept: list[Number] = []
    for number in found:
        if not kept or number.start >= kept[-1].end:
            kept.append(number)
    return kept


_SCALE_AFTER: Final = re.compile(
    r"\s?(?:(k|[Tt]sd|[Mm]io|[Mm]rd|bn|mn)\b\.?|\s?(hundred|thousand|million|billion|trillion|hundert|tausend|"
    r"millionen|"
    r"milliarden?|billionen)s?\b)",
    re.IGNORECASE,
)


def _in_digits(text: str, language: Language | None) -> Iterator[Number]:
    for match in DIGITS.finditer(text):
        before = text[match.start() - 1 : match.start()]
        if before.isalpha() or before == "_" or text[match.end() : match.end() + 1] == "_":
            continue
        digits, end = match.group(), match.end()
        value = from_digits(digits, language)
        if value is None:
            continue
        scale = _SCALE_AFTER.match(text, end)
        if scale:
            value *= _SCALES[plain(scale.group(1) or scale.group(2))]
            end = scale.end()
        elif text[end : end + 1].isalpha() and not _is_unit(text, end):
            continue
        yield Number(match.start(), end, value, text[match.start() : end])


def _is_unit(text: str, at: int) -> bool:
    """Whether short letters stand right behind the digits, as in ``5kg``, ``3x`` or ``21st``."""
    end = at
    while end < len(text) and end - at <= 4 and text[end].isalpha():  # noqa: PLR2004 - no unit is longer
        end += 1
    return end - at <= 3  # noqa: PLR2004 - as above


@dataclass(frozen=True, slots=True)
class _Token:
    start: int
    end: int
    form: str


def _in_words(text: str, language: Language | None) -> Iterator[Number]:
    tokens = [_Token(match.start(), match.end(), plain(match.group())) for match in _TOKEN.finditer(text)]
    at = 0
    while at < len(tokens):
        value, after = _spoken(tokens, at, text, language)
        if value is None:
            at += 1
            continue
        start, end = tokens[at].start, tokens[after - 1].end
        yield Number(start, end, value, text[start:end])
        at = after


def _spoken(tokens: Sequence[_Token], at: int, text: str, language: Language | None) -> tuple[Decimal | None, int]:
    """The number in words that begins at this token, and the token behind it."""
    whole, after = _whole(tokens, at, text, language)
    if whole is None:
        return None, at
    value = Decimal(whole)
    if after + 1 < len(tokens) and tokens[after].form in _POINTS:
        digits = ""
        behind = after + 1
        while behind < len(tokens) and len(digits) < MAX_DIGITS and (unit := _digit(tokens[behind].form)) is not None:
            digits += str(unit)
            behind += 1
        if digits:
            value, after = Decimal(f"{whole}.{digits}"), behind
            if after < len(tokens) and tokens[after].form in _SCALES:
                value, after = value * _SCALES[tokens[after].form], after + 1
    return value, after


def _digit(form: str) -> int | None:
    value = _UNITS.get(form)
    return value if value is not None and value <= 9 else None  # noqa: PLR2004 - one digit


def _whole(tokens: Sequence[_Token], at: int, text: str, language: Language | None) -> tuple[int | None, int]:
    """A whole number in words: sums below a hundred, multiplied by the scales that follow."""
    total, part, begin = 0, None, at
    while at < len(tokens):
        form = tokens[at].form
        value = _simple(form)
        if value is None and part is None and total == 0 and _is_article(tokens, at, language):
            value = 1
        if value is not None and (part is None or _fits_behind(part, value)):
            if at > begin and not _is_joined(text, tokens[at - 1], tokens[at]):
                break
            part = (part or 0) + value
        elif form in _SCALES and len(form) > 1 and at > begin and part is not None:
            scale = _SCALES[form]
            if scale <= 100:  # noqa: PLR2004 - a hundred, a dozen
                part *= scale
            else:
                total, part = total + part * scale, None
        elif form in _SCALES and at == begin and form not in ("k", "mn", "bn", "mio", "mrd", "tsd"):
            part = _SCALES[form]
        elif form in ("and", "und") and _goes_on(tokens, at, total, part):
            pass
        else:
            break
        at += 1
    if at == begin:
        return None, begin
    return total + (part or 0), at


def _is_article(tokens: Sequence[_Token], at: int, language: Language | None) -> bool:
    """Whether an article counts: before a scale or a dozen."""
    if tokens[at].form not in _ARTICLES or (language == "de" and tokens[at].form in _ENGLISH_ONLY):
        return False
    following = tokens[at + 1].form if at + 1 < len(tokens) else ""
    return following in _SCALES and len(following) > 3  # noqa: PLR2004 - no short form


def _fits_behind(part: int, value: int) -> bool:
    """Whether a value may be added: ``twenty`` + ``one``, ``one hundred`` + ``five``, ``a`` + ``dozen``."""
    below = part % 100
    return (below == 0 and part >= 100 and value < 100) or (below >= 20 and below % 10 == 0 and 0 < value < 10)  # noqa: PLR2004 - how tens and ones are said


def _goes_on(tokens: Sequence[_Token], at: int, total: int, part: int | None) -> bool:
    """Whether ``and`` stands within a number, as in ``one hundred and five``."""
    following = _simple(tokens[at + 1].form) if at + 1 < len(tokens) else None
    behind = part if part is not None else total
    return following is not None and behind >= 100 and behind % 100 == 0 and following < 100  # noqa: PLR2004 - a hundred


def _is_joined(text: str, left: _Token, right: _Token) -> bool:
    between = text[left.end : right.start]
    return between.strip() in ("", "-", "–")


@lru_cache(maxsize=4096)
def _simple(form: str) -> int | None:
    """A number in one word: English up to ninety, German as long as it is."""
    if form in _UNITS:
        return _UNITS[form]
    if form in _TENS:
        return _TENS[form]
    return _german(form) if SHORTEST < len(form) <= LONGEST else None


def _german(form: str) -> int | None:
    """``zweitausenddreihundertvierzig``; None if the word is no number."""
    for scale_word, scale in (("tausend", 1000), ("hundert", 100)):
        left, found, right = form.partition(scale_word)
        if not found:
            continue
        factor = 1 if not left else _german_part(left)
        rest = 0 if not right else _german_part(right.removeprefix("und"))
        if factor is None or rest is None or (not left and not right):
            return None
        return factor * scale + rest
    return _german_part(form)


def _german_part(form: str) -> int | None:
    if form in _GERMAN_ONES:
        return _GERMAN_ONES[form]
    if form in _TENS:
        return _TENS[form]
    if "hundert" in form or "tausend" in form:
        return _german(form)
    ones, found, tens = form.partition("und")
    if found and ones in _GERMAN_ONES and tens in _TENS and _GERMAN_ONES[ones] <= 9:  # noqa: PLR2004 - one digit
        return _TENS[tens] + _GERMAN_ONES[ones]
    return None
