"""Sums that are told and not said: ``I have 50 and spend 8, how much is left``, ``5 people share 80``."""

from __future__ import annotations

import re
from typing import Final

from organism.agents.providers.builtin.lexicon import named
from organism.agents.providers.builtin.numbers import Number, numbers_of
from organism.agents.providers.builtin.sum_tree import Sum, number
from organism.agents.providers.builtin.words import Language, plain

TWO: Final = 2

_WORD: Final = re.compile(r"[^\W\d_]+")
_ASKED: Final = named("how_much")
_LEFT: Final = named("left_over")
_SPENT: Final = named("giving_away")
_SHARED: Final = named("sharing")
_EACH: Final = named("each_one")
_PAYING: Final = named("paying")
_PEOPLE: Final = named("sharers")
_AMONG: Final = frozenset({"between", "among", "amongst", "unter", "zwischen"})


def told_sum(clause: str, language: Language | None) -> Sum | None:
    """The sum of two numbers that a clause tells and asks for; it is all that the clause says."""
    forms = [plain(match.group()) for match in _WORD.finditer(clause)]
    said = frozenset(forms)
    if not _asks(forms):
        return None
    found = numbers_of(clause, language)
    if len(found) != TWO:
        return None
    if said & _SHARED and (said & _EACH or said & _AMONG):
        whole, count = _shared(clause, found[0], found[1])
        return _told("/", whole, count, clause)
    if said & _EACH and said & _PAYING:
        return _told("*", found[0], found[1], clause)
    if said & _LEFT and said & _SPENT:
        return _told("-", found[0], found[1], clause)
    return None


def _asks(forms: list[str]) -> bool:
    return any(form in _ASKED for form in forms) or ("how" in forms and "much" in forms) or ("wie" in forms)


def _told(op: str, left: Number, right: Number, clause: str) -> Sum:
    return Sum(op, (number(left.canonical), number(right.canonical)), start=0, end=len(clause))


def _shared(clause: str, first: Number, second: Number) -> tuple[Number, Number]:
    """What is shared, and among how many: these stand before people, or behind ``between``."""
    before = _WORD.findall(clause, first.end, second.start)
    behind = [plain(word) for word in before[:TWO]]
    if behind and behind[0] in _PEOPLE:
        return second, first
    return first, second
