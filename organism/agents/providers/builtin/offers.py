"""The tools that a call offers: what each one can do, as far as its name, its description and its schema tell."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from organism.agents.providers.builtin.asking import Clause
from organism.agents.providers.builtin.fields import Field, parts_of
from organism.agents.providers.builtin.finders import all_in
from organism.agents.providers.builtin.lexicon import COMMANDS
from organism.agents.providers.builtin.schemas import properties_of
from organism.agents.providers.builtin.sources import Source
from organism.agents.providers.builtin.words import known, words_of
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
    {"fetch", "current", "tool", "run", "do", "service", "api", "function", "the", "a", "by", "for"}
)
_ACTING: Final = frozenset(
    {"delete", "send", "store", "create", "update", "remind", "book_room", "write", "buy", "pay", "cancel"}
)
"""What is not done unless it is asked for by name."""
_GETTING: Final = frozenset({"read", "fetch", "list", "search"})
"""What is as good as the same to who asks."""
_LOOKS_UP: Final = frozenset({"search", "encyclopedia", "rag", "retriev", "knowledg", "passag"})
_THERE: Final = re.compile(
    r"\b(?:which|what)\b.*\b(?:are there|do (?:i|we|you) have|exist)\b|\bwelche\b.*\bgibt es\b", re.IGNORECASE
)
_SAID_IN: Final = re.compile(r"\b(?:how do (?:you|i) say|wie sagt man|was heißt)\b.*\b(?:in|auf)\b", re.IGNORECASE)
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
        meanings = frozenset(known(part)[2] for part in parts_of(self.spec.name))
        return meanings - _PALE or meanings

    @cached_property
    def about(self) -> frozenset[str]:
        """What its description is about."""
        return frozenset(word.meaning for word in words_of(self.spec.description[:2000]) if not word.is_silent)

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
        """How well it fits a request: how much of its name, and of what it is about, the request says."""
        said = {meaning for word in clause.words for meaning in (word.meaning, *word.parts)}
        said |= _GETTING if said & _GETTING or _THERE.search(clause.text) else set()
        said |= {"translate"} if _SAID_IN.search(clause.text) else set()
        acting = self.names & _ACTING
        if acting and not acting & said:
            return 0.0
        hits = self.names & said
        score = len(hits) / len(self.names)
        orders = [word.meaning for word in clause.words[:6] if word.plain in COMMANDS]
        score += 0.4 if any(order in hits or order in self.about for order in orders) else 0
        score += min(
            0.6, 0.2 * len((self.about - self.names) & {word.meaning for word in clause.words if not word.is_silent})
        )
        score += (
            0.4 if any(self._is_given(field, source) for field in self.required) and (hits or self.about & said) else 0
        )
        is_other_act = bool(orders) and orders[0] in _ACTING - self.names - self.about
        return score - (0.5 if is_other_act else 0.0)

    @staticmethod
    def _is_given(field: Field, source: Source) -> bool:
        """Whether the request has a value that only such a field takes."""
        given = {
            "url": all_in(source, "url"),
            "email": all_in(source, "email"),
            "place": source.places,
            "zone": source.places,
            "phone": all_in(source, "phone"),
        }
        return bool(given.get(field.topic))
