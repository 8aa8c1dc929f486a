"""The tools that a call offers: what each one can do, as far as its name, its description and its schema tell."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from organism.agents.providers.builtin.asking import Clause
from organism.agents.providers.builtin.fields import Field, parts_of
from organism.agents.providers.builtin.finders import all_in
from organism.agents.providers.builtin.lexicon import COMMANDS, POLITE, QUESTION_WORDS, SILENT
from organism.agents.providers.builtin.schemas import properties_of
from organism.agents.providers.builtin.sources import Source
from organism.agents.providers.builtin.words import Word, known, words_of
from organism.model.tool import ToolSpec

OPERATIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "+": ("add", "addition", "plus", "sum", "+"),
    "-": ("subtract", "subtraction", "minus", "difference", "sub", "-"),
    "*": ("multiply", "multiplication", "times", "product", "mul", "*", "x"),
    "/": ("divide", "division", "quotient", "div", "/"),
    "**": ("power", "pow", "exponent", "^", "**"),
    "mod": ("modulo", "mod", "remainder", "%"),
}
"""What each operation may be called."""
ENOUGH: Final = 0.6
"""So well must a tool fit a request to be called."""

_PALE: Final = frozenset(
    {"fetch", "current", "tool", "run", "do", "service", "api", "function", "the", "a", "by", "for", "tex", "value"}
)
_ACTING: Final = frozenset(
    {"delete", "send", "store", "create", "update", "remind", "book_room", "write", "buy", "pay", "cancel"}
)
"""What is not done unless it is asked for by name."""
_GETTING: Final = frozenset({"read", "fetch", "list", "search"})
"""What is as good as the same to who asks."""
_ALIKE: Final = (
    frozenset({"send", "write"}),
    frozenset({"create", "store", "update", "book_room", "begin"}),
    frozenset({"delete", "cancel"}),
)
"""Acts that are said for each other: ``set a reminder``, ``add an event``."""
_RARE: Final = frozenset({"url", "currency", "ip", "host", "path", "key", "uuid"})
"""Kinds of values that say themselves what they are for."""
_SPEAKING: Final = _RARE | {"email", "place", "zone", "phone", "symbol", "date"}
"""Kinds of values that can be told from others."""
_GIVEN, _ORDERED, _TOLD, _ACT = 0.5, 0.4, 0.2, 0.5
_LOOKS_UP: Final = frozenset({"search", "encyclopedia", "rag", "retriev", "knowledg", "passag"})
_THERE: Final = re.compile(
    r"\b(?:which|what)\b.*\b(?:are there|do (?:i|we|you) have|exist)\b|\bwelche\b.*\bgibt es\b", re.IGNORECASE
)
_SAID_IN: Final = re.compile(r"\b(?:how do (?:you|i) say|wie sagt man|was heißt)\b.*\b(?:in|auf)\b", re.IGNORECASE)
_HOW_MANY: Final = re.compile(r"\bhow many\b|\bwie ?viele\b", re.IGNORECASE)
_TIME: Final = frozenset({"time", "date", "clock", "day"})
_NOW: Final = frozenset({"now", "curren", "today", "aktuell", "heute", "jetzt", "clock"})


@dataclass(frozen=True)
class Offer:
    """One tool."""

    spec: ToolSpec

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        root = self.spec.parameters
        return tuple(
            Field.of(name, schema, root, is_required=is_required) for name, schema, is_required in properties_of(root)
        )

    @cached_property
    def required(self) -> tuple[Field, ...]:
        return tuple(field for field in self.fields if field.is_required)

    @cached_property
    def names(self) -> frozenset[str]:
        """What the words of its name mean."""
        parts = [known(part) for part in parts_of(self.spec.name)]
        meanings = frozenset(meaning for form, _, meaning, _ in parts if form not in SILENT)
        if parts and parts[0][0] == "book":
            meanings = meanings - {"book"} | {"book_room"}
        return meanings - _PALE or meanings or frozenset(meaning for _, _, meaning, _ in parts)

    @cached_property
    def about(self) -> frozenset[str]:
        """What its description is about."""
        return frozenset(word.meaning for word in words_of(self.spec.description[:2000]) if not word.is_silent)

    @cached_property
    def does(self) -> frozenset[str]:
        """What its name and the beginning of its description say that it does."""
        words = [word.meaning for word in words_of(self.spec.description[:200]) if not word.is_silent]
        return self.names | frozenset(words[:2])

    @cached_property
    def calculates(self) -> bool:
        """Whether it takes sums: as text, or as two numbers."""
        if "calculate" not in self.names | self.about and not (self.takes_numbers and self.operations):
            return False
        texts = [field for field in self.fields if field.kind == "string" and "enum" not in field.schema]
        return any(field.topic == "sum" for field in texts) or len(texts) == 1 or self.takes_numbers

    @cached_property
    def operations(self) -> frozenset[str]:
        """The signs of the sums that it is named for."""
        parts = {known(part)[0] for part in parts_of(self.spec.name)}
        return frozenset(sign for sign, words in OPERATIONS.items() if parts.intersection(words))

    @cached_property
    def takes_numbers(self) -> bool:
        """Whether it takes two numbers."""
        return sum(field.kind in ("number", "integer") for field in self.fields) >= 2  # noqa: PLR2004 - two numbers

    @cached_property
    def tells_time(self) -> bool:
        """Whether it tells what day and time it is, if need be of a place."""
        is_named = bool(self.names & _TIME) or bool(self.names & {"now"})
        is_described = bool(self.about & _TIME) and bool((self.about | self._said) & _NOW)
        needs = {field.topic for field in self.required if "default" not in field.schema and "enum" not in field.schema}
        if not is_named or not (is_described or not self.required):
            return False
        return not needs or needs in ({"zone"}, {"place"}, {"other"})

    @cached_property
    def _said(self) -> frozenset[str]:
        parts = frozenset(known(part)[2] for part in parts_of(self.spec.name))
        return parts | frozenset(word.meaning for word in words_of(self.spec.description[:2000]))

    @cached_property
    def looks_up(self) -> bool:
        """Whether it finds what is known of something."""
        is_asked = any(field.topic in ("query", "title") for field in self.fields)
        return is_asked and bool((self.names | self.about) & _LOOKS_UP) and not self.acts

    @cached_property
    def acts(self) -> bool:
        """Whether it changes something."""
        return bool(self.names & _ACTING)

    def fit(self, clause: Clause, source: Source) -> float:
        """How well it fits a request: how much of its name, and of what it is about, the request says or gives."""
        words = [word for word in clause.words if not clause.bare[word.start].isspace()]
        verb = known(clause.verb)[2]
        said = {verb, *(meaning for word in words for meaning in (word.meaning, *word.parts))}
        said |= _GETTING if said & _GETTING or _THERE.search(clause.bare) else set()
        said |= {"translate"} if _SAID_IN.search(clause.text) else set()
        said |= {"count"} if _HOW_MANY.search(clause.bare) else set()
        orders = [verb] if verb else _orders(words)
        said |= {*orders} | {each for acts in _ALIKE if acts.intersection(orders) for each in acts}
        if self.acts and not self.names & ((_ACTING & said) | set(orders)):
            return 0.0
        hits = self.names & said
        score = _weight(hits) / _weight(self.names) + self._given(
            source, is_meant=bool(said & (self.names | self.about))
        )
        is_ordered = bool(said.intersection((*orders, *_ACTING)) & (hits | self.about)) and bool(orders)
        score += _ORDERED if is_ordered or (self.looks_up and "search" in orders) else 0
        told = {word.meaning for word in words if not word.is_silent}
        score += min(_ORDERED, _TOLD * len((self.about - self.names) & told))
        is_other_act = bool(orders) and not hits & _ACTING and orders[0] in _ACTING - self.does
        return score - (_GIVEN if is_other_act else 0.0)

    def takes(self, source: Source) -> bool:
        """Whether the text has what only such a tool takes."""
        return self._given(source, is_meant=False) >= ENOUGH

    def _given(self, source: Source, *, is_meant: bool) -> float:
        """What it counts that the request has values which only such fields take, as many as the tool needs."""
        needed: list[str] = [field.topic for field in self.required if field.kind == "string"]
        found = {kind for kind in _SPEAKING.intersection(needed) if len(_values(source, kind)) >= needed.count(kind)}
        if found & _RARE:
            return ENOUGH
        if needed == ["other"] and len(all_in(source, "id")) == 1:
            found = {"id"}
        return _ORDERED if found and is_meant else 0.0


def _orders(words: Sequence[Word]) -> list[str]:
    """What is to be done, as far as its first words say; a question for something orders nothing."""
    first = next((word.plain for word in words if word.plain not in POLITE), "")
    if first == "book":
        return ["book_room"]
    return [] if first in QUESTION_WORDS else [word.meaning for word in words[:6] if word.plain in COMMANDS]


def _weight(meanings: frozenset[str]) -> float:
    """What words of a name count: many tools do the same with other things."""
    return sum(_ACT if meaning in _ACTING | _GETTING else 1.0 for meaning in meanings)


def _values(source: Source, kind: str) -> Sequence[object]:
    if kind in ("place", "zone"):
        return source.places
    if kind == "url":
        return [url for url in all_in(source, kind) if "://" in url or url.startswith("www.")]
    return source.days if kind == "date" else all_in(source, kind)
