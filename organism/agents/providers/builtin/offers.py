"""The tools that a call offers: what each one can do, as far as its name, its description and its schema tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from organism.agents.providers.builtin.fields import Field, parts_of
from organism.agents.providers.builtin.lexicon import SILENT
from organism.agents.providers.builtin.schemas import properties_of
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
_PALE: Final = frozenset(
    {"fetch", "current", "tool", "run", "do", "service", "api", "function", "the", "a", "by", "for", "tex", "value"}
)
ACTING: Final = frozenset(
    {"delete", "send", "store", "create", "update", "remind", "book_room", "write", "buy", "pay", "cancel"}
    | {"transfer", "restart", "move", "rename", "unlock", "phone", "refund", "deploy", "merge", "approve", "reject"}
    | {"lock", "invite", "assign", "print", "reset"}
)
"""What is not done unless it is asked for by name."""
GETTING: Final = frozenset({"read", "fetch", "list", "search"})
"""What is as good as the same to who asks."""
VERBS: Final[Mapping[str, str]] = {"book": "book_room", "buch": "book_room", "call": "phone"}
"""What words mean that are verbs where they come first."""
_LOOKS_UP: Final = frozenset({"search", "encyclopedia", "rag", "retriev", "knowledg", "passag"})
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
        begins = next((word.plain for word in words_of(self.spec.description[:40])), "")
        if parts and parts[0][0] == "order" and begins in ("order", "orders", "bestellt"):
            meanings = meanings - {"order"} | {"buy"}
        if parts and parts[0][0] in VERBS:
            meanings = meanings - {parts[0][2]} | {VERBS[parts[0][0]]}
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
        return bool(self.names & ACTING)

    @cached_property
    def verbs(self) -> frozenset[str]:
        """What of its name is done."""
        return self.names & (ACTING | GETTING | {known(next(iter(parts_of(self.spec.name)), ""))[2], "switch"})

    @cached_property
    def things(self) -> frozenset[str]:
        """What of its name it is done with."""
        return self.names - self.verbs
