"""A text as a source of values: what of each kind is in it, looked for once and only if asked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from organism.agents.providers.builtin.days import Day, Moment, days_of, moments_of
from organism.agents.providers.builtin.lexicon import NEGATIONS
from organism.agents.providers.builtin.numbers import Number, numbers_of
from organism.agents.providers.builtin.places import Place, places_of
from organism.agents.providers.builtin.words import (
    Language,
    Sentence,
    Word,
    sentences_of,
    words_of,
)

MAX_VALUE_CHARS: Final = 400
NEGATION_REACH: Final = 4
"""So many words behind a ``not`` are denied, less one."""

EMAIL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._%+\-]{0,63}@[A-Za-z0-9][A-Za-z0-9.\-]{0,250}\.[A-Za-z]{2,24}\b")
URL: Final = re.compile(r"\b(?:https?|ftp)://[^\s<>\"'“”`)\]]+|\bwww\.[^\s<>\"'“”`)\]]+", re.IGNORECASE)
PHONE: Final = re.compile(
    r"(?<![\w./-])(?:\+|00?)\d[\d\s()/\-]{4,20}\d(?![\w/])|(?<![\w./-])\d{3}[-\s]\d{3,4}[-\s]?\d{0,4}(?![\w/])"
)
UUID: Final = re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")
_TOKEN: Final = re.compile(r"\S+")
_AROUND: Final = ".,;:!?()[]\"'“”„`/"
_DOTTED: Final = re.compile(r"[a-z0-9]\.[a-z]{2}")
_CODE: Final = re.compile(r"(?<![\w.])[A-Za-z]{1,8}[-_]?\d+(?:[-_.]\w+)*|(?<![\w.])\d+(?:[-_][A-Za-z]\w*)+")
_LABELLED: Final = re.compile(
    r"^[ \t>*\-]*(?:\d{1,3}[.)]\s*)?([^\n:=|]{1,48}?)[ \t*]*(?:=|:(?!\d|//))[ \t]*(\S[^\n]*)$", re.MULTILINE
)
_INLINE: Final = re.compile(
    r"\b(?P<label>[^\W\d_][\w\-]{0,40}(?: [^\W_][\w\-]{0,40}){0,4}?)\s{0,4}"
    r"(?::(?!\d|//)|=|\b(?:is|are|was|were|ist|sind|war|lautet|lauten|heisst|heißt|equals|named|called)\b:?)\s+"
    r"(?P<value>[^\n;!?]{1,200})"
)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A value with what it is called: ``Name: Dan``, ``the order number is 4711``."""

    label: tuple[Word, ...]
    value: str
    start: int


class Source:
    """A text to take values from. ``language`` is that of the talk; an item is one line of a list."""

    def __init__(self, text: str, language: Language | None = None, *, is_item: bool = False) -> None:
        self.text = text
        self.language = language
        self.is_item = is_item
        self.kept: dict[str, list[str]] = {}
        """What was looked for already, by kind."""

    @cached_property
    def words(self) -> tuple[Word, ...]:
        return words_of(self.text)

    @cached_property
    def sentences(self) -> list[Sentence]:
        return sentences_of(self.text)

    @cached_property
    def bare(self) -> str:
        """The text with blanks for addresses, paths and keys, whose words mean nothing."""
        return _TOKEN.sub(lambda match: _hidden(match.group()), self.text)

    @cached_property
    def apart(self) -> str:
        """The text without its links."""
        return URL.sub(" ", self.text)

    @cached_property
    def meanings(self) -> frozenset[str]:
        """What its words mean that say something."""
        return frozenset(word.meaning for word in self.words if not word.is_silent)

    @cached_property
    def speaking(self) -> frozenset[str]:
        """Its words as labels know them, those of addresses left out: plain, and by meaning."""
        words = [word for word in self.words if not self.bare[word.start].isspace()]
        return frozenset(form for word in words for form in (word.plain, *(() if word.is_silent else (word.meaning,))))

    @cached_property
    def denied(self) -> frozenset[str]:
        """Of those, the ones that stand only close behind a ``not``."""
        denied, said, since = set[str](), set[str](), NEGATION_REACH
        end = 0
        for word in self.words:
            is_apart = any(sign in ",.;:!?\n" for sign in self.text[end : word.start])
            since, end = 0 if word.plain in NEGATIONS else NEGATION_REACH if is_apart else since + 1, word.end
            (denied if 0 < since < NEGATION_REACH else said).update((word.plain, word.meaning))
        return frozenset(denied - said)

    @cached_property
    def padded(self) -> str:
        """Its plain words, with a blank around each."""
        return f" {' '.join(part for word in self.words for part in word.plain.split('-'))} "

    @cached_property
    def pairs(self) -> frozenset[str]:
        """The pairs of letters in its words."""
        forms = {word.plain for word in self.words}
        return frozenset(form[at : at + 2] for form in forms for at in range(len(form) - 1))

    @cached_property
    def days(self) -> list[Day]:
        return days_of(self.text, self.language)

    @cached_property
    def moments(self) -> list[Moment]:
        return moments_of(self.text)

    @cached_property
    def places(self) -> list[Place]:
        return places_of(self.text, self.words)

    @cached_property
    def numbers(self) -> list[Number]:
        """Its numbers, but for those of days, times of day, telephones and ids."""
        taken = [(day.start, day.end) for day in self.days if day.year is not None or day.end - day.start > 2]  # noqa: PLR2004 - more than a number
        taken += [(moment.start, moment.end) for moment in self.moments]
        for pattern in (EMAIL, URL, PHONE, UUID, _CODE):
            taken += [match.span() for match in pattern.finditer(self.text)]
        return _outside(numbers_of(self.text, self.language), sorted(taken))

    @cached_property
    def labelled(self) -> list[Labelled]:
        """Values that are called by a name: lines first, then sentences."""
        lines = [
            Labelled(words_of(match.group(1)), _value(match.group(2)), match.start(2))
            for match in _LABELLED.finditer(self.text)
        ]
        inline = [
            Labelled(words_of(match.group("label")), _value(match.group("value")), match.start("value"))
            for sentence in self.sentences
            for match in _INLINE.finditer(sentence.text)
        ]
        return lines + inline


def _hidden(token: str) -> str:
    """Blanks for a word with signs in it that join no words of a language."""
    inner = token.strip(_AROUND)
    is_joined = any(sign in inner for sign in "/@_\\") or _DOTTED.search(inner) is not None
    return " " * len(token) if is_joined else token


def _outside(numbers: list[Number], taken: list[tuple[int, int]]) -> list[Number]:
    """The numbers that begin in none of the spans; both come in order."""
    kept, at, reach = list[Number](), 0, -1
    for number in numbers:
        while at < len(taken) and taken[at][0] <= number.start:
            reach = max(reach, taken[at][1])
            at += 1
        if number.start >= reach:
            kept.append(number)
    return kept


def _value(text: str) -> str:
    """A value without quotes, marks and the point of its sentence."""
    cut = text.strip()[:MAX_VALUE_CHARS].strip(" \t*|")
    if len(cut) > 1 and cut[0] == cut[-1] and cut[0] in "\"'`":
        return cut[1:-1].strip()
    return cut[:-1].rstrip() if cut.endswith((".", ",")) and not cut.endswith("..") else cut
