"""How well a tool fits a request: what of its name the request says, what it gives, and what its verb means."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Final

from organism.agents.providers.builtin.asking import Clause
from organism.agents.providers.builtin.evidence import is_end_of_way
from organism.agents.providers.builtin.fields import parts_of
from organism.agents.providers.builtin.finders import all_in
from organism.agents.providers.builtin.lexicon import COMMANDS, POLITE, QUESTION_WORDS, named, rows
from organism.agents.providers.builtin.offers import ACTING, GETTING, VERBS, Offer
from organism.agents.providers.builtin.sources import Source
from organism.agents.providers.builtin.words import Word, known

ENOUGH: Final = 0.6
"""So well must a tool fit a request to be called."""
LIKELY: Final = 0.45
"""So well, if no other tool fits nearly as well, and the talk does not answer the request."""
MARGIN: Final = 0.15

_ALIKE: Final = (
    frozenset({"send", "write", "reply", "post"}),
    frozenset({"create", "store", "update", "book_room", "begin", "write", "note", "take"}),
    frozenset({"store", "switch", "heating", "cool", "play", "increase", "decrease", "update"}),
    frozenset({"switch", "create", "begin", "open_up", "enable", "play", "turn_on"}),
    frozenset({"delete", "cancel", "store_off"}),
    frozenset({"send", "transfer", "pay"}),
    frozenset({"validate", "search", "ping"}),
    frozenset({"buy", "order"}),
    frozenset({"fetch", "book_room", "buy"}),
    frozenset({"begin", "run_race", "switch", "enable", "play"}),
)
"""Acts that are said for each other: ``set a reminder``, ``add an event``."""
_NEEDED: Final = frozenset({"create", "book_room", "buy", "fetch"})
_NEEDS: Final = named("needs")
"""How something is wished for, and what is then done."""
_VAGUE: Final = GETTING | {"create", "store", "update", "send", "write", "tell", "take", "fetch", "validate", "switch"}
"""What is done with all kinds of things."""
_THINGS: Final = frozenset({"device", "item", "thing", "object", "entity"})
"""What may be anything."""
_WHETHER: Final = ("whether", "ob")
_INQUIRING: Final = named("inquiring")
_CALLED: Final = frozenset({"call"})
_MODALS: Final = named("modals")
_RARE: Final = frozenset({"url", "currency", "ip", "host", "path", "key", "uuid"})
"""Kinds of values that say themselves what they are for."""
_SPEAKING: Final = _RARE | {"email", "place", "zone", "phone", "symbol", "date"}
"""Kinds of values that can be told from others."""
TWO: Final = 2
_SURE: Final = 0.75
_ASKED: Final = 0.3
_GIVEN, _ORDERED, _TOLD, _ACT, _UNSAID, _LITERAL = 0.5, 0.4, 0.2, 0.5, 0.1, 0.05
_THERE: Final = re.compile(
    r"\b(?:which|what)\b.*\b(?:are there|do (?:i|we|you) have|exist)\b|\bwelche\b.*\bgibt es\b", re.IGNORECASE
)
_SAID_IN: Final = re.compile(r"\b(?:how do (?:you|i) say|wie sagt man|was heißt)\b.*\b(?:in|auf)\b", re.IGNORECASE)
_HOW_MANY: Final = re.compile(r"\bhow many\b|\bwie ?viele\b", re.IGNORECASE)
_PHRASAL: Final = tuple(
    (meaning, tuple(verb.replace("_", " ").split("+") for verb in verbs.split())) for meaning, verbs in rows("phrasal")
)
"""Verbs of several words: their parts, in order."""
_ATTRIBUTES: Final = frozenset(
    {"status", "info", "detail", "data", "level", "check", "state", "statu", "stat", "summarise", "fact"}
)
"""What names of tools say of a thing that who asks of the thing need not say."""
_PALE: Final = 0.25


class Request:
    """What a clause says of what is to be done, read once for all tools."""

    def __init__(self, clause: Clause, source: Source) -> None:
        self.clause = clause
        self.source = source
        shown = [word for word in clause.words if not source.bare[word.start].isspace()]
        self.words = [word for word in shown if not clause.bare[word.start].isspace()]
        self.forms = frozenset(word.plain for word in self.words)

    @cached_property
    def orders(self) -> list[str]:
        """What is to be done."""
        verb = known(self.clause.verb)[2]
        phrasal = [meaning for meaning, verbs in _PHRASAL if any(_stands(verb, self.clause.form) for verb in verbs)]
        return phrasal or ([verb] if verb else _orders(self.words))

    @cached_property
    def said(self) -> frozenset[str]:
        """What its words mean, and what is as good as said with them."""
        clause = self.clause
        said = {known(clause.verb)[2], *(meaning for word in self.words for meaning in (word.meaning, *word.parts))}
        said |= GETTING if said & GETTING or _THERE.search(clause.bare) else set()
        said |= {"translate"} if _SAID_IN.search(clause.text) else set()
        said |= {"count"} if _HOW_MANY.search(clause.bare) else set()
        return frozenset((*said, *self.orders, *(_CALLED & self.forms and {"phone"})))

    @cached_property
    def acts(self) -> frozenset[str]:
        """What it says is to be done; who wants to be shown something tells what was done: ``show what I saved``."""
        is_shown = bool(self.orders) and self.orders[0] in GETTING | {"tell"}
        return ACTING & (frozenset(self.orders) if is_shown else self.said)

    @cached_property
    def alike(self) -> frozenset[str]:
        """What may be meant by what is to be done."""
        alike = {each for acts in _ALIKE if acts.intersection(self.orders) for each in acts}
        alike |= _NEEDED if any(f" {need} " in self.clause.form for need in _NEEDS) else set()
        return frozenset(alike - self.said)

    @cached_property
    def told(self) -> frozenset[str]:
        """What its words mean that say something of the matter."""
        content = [word for word in self.words if not word.is_silent]
        return frozenset(meaning for word in content for meaning in (word.meaning, *word.parts))

    @cached_property
    def every(self) -> frozenset[str]:
        """What all of its words mean, those in quotes too."""
        content = [word for word in self.clause.words if not word.is_silent]
        return self.told.union(meaning for word in content for meaning in (word.meaning, *word.parts))

    @cached_property
    def inquires(self) -> bool:
        """Whether it asks how things are, and not that something be done: ``is it sent?``, ``what did I save?``."""
        first = next((word.plain for word in self.clause.words if word.plain not in POLITE), "")
        is_indirect = any(f" {word} " in self.clause.form for word in _WHETHER)
        return is_indirect or (self.clause.mood == "question" and first in _INQUIRING)


def fit(offer: Offer, request: Request) -> float:
    """How much speaks for the tool; at least ``ENOUGH`` if it is to be called."""
    said, alike, orders = request.said, request.alike, request.orders
    is_done = bool(offer.names & (request.acts | alike | set(orders))) or bool(_states(offer) & set(orders))
    is_done = is_done and not request.inquires
    if offer.acts and not is_done and not _is_bare(offer, request):
        return 0.0
    if not _is_meant(offer, request) and not takes(offer, request.source):
        return 0.0
    hits = offer.names & (said | alike)
    score = _weight(hits) / _weight(offer.names)
    score += _given(offer, request.source, is_meant=bool(said & (offer.names | offer.about)))
    is_ordered = bool(said.intersection((*orders, *ACTING)) & (hits | offer.about)) and bool(orders)
    is_ordered = is_ordered or bool(hits & alike) or (offer.looks_up and "search" in orders)
    score += _ORDERED if is_ordered else 0.0
    score += min(_ORDERED, _TOLD * len((offer.about - offer.names) & request.told))
    is_asked = (
        request.clause.mood == "question"
        and not offer.acts
        and bool((offer.does - offer.names - _VAGUE) & request.told)
    )
    score += _ASKED if is_asked else 0.0
    is_other_act = bool(orders) and not hits & (ACTING | alike) and orders[0] in ACTING - offer.does
    score -= _GIVEN if is_other_act else 0.0
    return max(score - _unsaid(offer, request), min(score, ENOUGH))


def _states(offer: Offer) -> frozenset[str]:
    """What the values mean that it chooses of: to ``open`` is what is done to a thing that is open or closed."""
    values = [value for field in offer.required for value in field.schema.get("enum", ()) if isinstance(value, str)]
    return frozenset(known(value)[2] for value in values)


def takes(offer: Offer, source: Source) -> bool:
    """Whether the text has what only such a tool takes."""
    return _given(offer, source, is_meant=False) >= ENOUGH


def _unsaid(offer: Offer, request: Request) -> float:
    """What speaks for another tool that fits as well: what of this one's name the request does not say."""
    said = request.said
    less = _UNSAID * (bool(offer.names & request.alike) + bool(offer.things - _THINGS and not offer.things & said))
    less += _UNSAID if offer.verbs - _VAGUE - said else 0.0
    literal = frozenset(known(part)[0] for part in parts_of(offer.spec.name)) - _VAGUE
    return less - (_LITERAL if literal & request.forms else 0.0)


def _is_meant(offer: Offer, request: Request) -> bool:
    """Whether the request says what the tool works on, or a verb that few others have."""
    if offer.names & request.said & (offer.verbs - _VAGUE):
        return True
    if offer.things & _THINGS or not offer.names - _VAGUE:
        return True
    every = request.said | request.every
    about = (offer.things or offer.names) | (offer.about - offer.verbs)
    of_fields = frozenset(meaning for field in offer.required for meaning in field.meanings)
    return bool((about - _VAGUE) & every) or len(of_fields & every) >= TWO


def _is_bare(offer: Offer, request: Request) -> bool:
    """Whether only what the tool is about is named, and values for it: ``volume 40``."""
    content = [word for word in request.words if not (word.is_silent or word.plain in POLITE or word.plain.isdigit())]
    return (
        request.clause.mood != "question"
        and bool(content)
        and all(word.meaning in offer.names for word in content)
        and any(field.kind in ("integer", "number") for field in offer.required)
    )


def _given(offer: Offer, source: Source, *, is_meant: bool) -> float:
    """What it counts that the request has values which only such fields take, as many as the tool needs."""
    needed: list[str] = [field.topic for field in offer.required if field.kind == "string"]
    found = {kind for kind in _SPEAKING.intersection(needed) if len(_values(source, kind)) >= needed.count(kind)}
    if found & _RARE:
        return _SURE
    is_id = "id" in needed or needed == ["other"]
    if is_id and len(all_in(source, "id")) == 1:
        found = found | {"id"}
    if len(source.places) >= TWO and len([field for field in offer.required if is_end_of_way(field, source)]) == TWO:
        found = found | {"place"}
    return _ORDERED if found and is_meant else 0.0


def _stands(parts: Sequence[str], form: str) -> bool:
    """Whether the parts of a verb stand in the form of a clause, one behind another."""
    at = 0
    for part in parts:
        at = form.find(f" {part} ", at)
        if at < 0:
            return False
        at += len(part)
    return True


def _orders(words: Sequence[Word]) -> list[str]:
    """What is to be done, as far as its first words say; a question for something orders nothing."""
    first = next((word.plain for word in words if word.plain not in POLITE), "")
    if first in VERBS:
        return [VERBS[first]]
    if first in QUESTION_WORDS:
        return []
    orders = [word.meaning for word in words[:6] if word.plain in COMMANDS]
    if not orders:
        orders = [word.meaning for word in words if word.plain == first and not word.is_silent][:1]
    asks = any(word.plain in _MODALS for word in words)
    return [*orders, words[-1].meaning] if asks and words and not words[-1].is_silent else orders


def _weight(meanings: frozenset[str]) -> float:
    """What words of a name count: many tools do the same with other things."""
    return sum(
        _ACT if meaning in ACTING | GETTING else _PALE if meaning in _ATTRIBUTES else 1.0 for meaning in meanings
    )


def _values(source: Source, kind: str) -> Sequence[object]:
    if kind in ("place", "zone"):
        return source.places
    if kind == "host":
        return [host for host in all_in(source, kind) if host in source.apart]
    if kind == "key":
        return [key for key in all_in(source, kind) if any(sign in key for sign in "./:_")]
    if kind == "path":
        return [path for path in all_in(source, kind) if path[0] in "/~.\\" or "." in path[1:] or ":" in path]
    if kind == "url":
        return [url for url in all_in(source, kind) if "://" in url or url.startswith("www.")]
    return source.days if kind == "date" else all_in(source, kind)
