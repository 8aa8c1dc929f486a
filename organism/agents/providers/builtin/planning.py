"""Which tools are called for what a message asks, with which arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from organism.agents.providers.builtin.arguments import arguments_for, arguments_of_sum
from organism.agents.providers.builtin.asking import Asked, Clause, is_frame
from organism.agents.providers.builtin.clockwork import ClockQuestion, clock_question, is_within
from organism.agents.providers.builtin.lexicon import POLITE, named
from organism.agents.providers.builtin.matter import names_in
from organism.agents.providers.builtin.offers import ENOUGH, Offer
from organism.agents.providers.builtin.places import Place, places_of
from organism.agents.providers.builtin.sources import Source
from organism.agents.providers.builtin.sum_tree import Sum
from organism.agents.providers.builtin.sums import sums_of
from organism.agents.providers.builtin.tool_texts import Wish
from organism.agents.providers.builtin.words import Language

MOST_CALLS: Final = 16

_TOOL_WORDS: Final = named("tool_words")
_COUNTING: Final = named("counting")


_EQUAL: Final = frozenset(
    {"equal", "equals", "is", "gleich", "ist", "makes", "ergibt", "macht", "result", "the", "das", "die", "der"}
)
_OF_A_THING: Final = named("of_a_thing")


@dataclass(frozen=True, slots=True)
class Planned:
    """A call to make, and why: for which clause, which sum in it, or which question of the clock."""

    offer: Offer
    arguments: dict[str, Any]
    clause: Clause
    sum: Sum | None = None
    clock: ClockQuestion | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """What a plan rests on besides the message: ``earlier`` is the message before it, ``system`` the instructions.

    ``is_known`` tells whether the talk itself answers a question.
    """

    offers: Sequence[Offer]
    language: Language | None
    system: str
    earlier: Asked | None
    is_known: Callable[[Clause], bool]


def plan(message: Asked, setting: Setting) -> list[Planned]:
    """The calls, at most ``MOST_CALLS``, none twice."""
    banned = _banned(message, setting.offers)
    offers = [offer for offer in setting.offers if offer.spec.name not in banned]
    made: list[Planned] = []
    before: Clause | None = _last_asked(setting.earlier)
    for clause in message.clauses if offers else ():
        found = [] if clause.is_negated else _for_clause(clause, offers, message, setting, before)
        made += [
            each
            for each in found
            if all(each.arguments != one.arguments or each.offer is not one.offer for one in made)
        ]
        before = clause if clause.asks else before
    return made[:MOST_CALLS]


def _last_asked(earlier: Asked | None) -> Clause | None:
    asking = [clause for clause in earlier.clauses if clause.asks] if earlier else []
    return asking[-1] if asking else None


def _banned(message: Asked, offers: Sequence[Offer]) -> set[str]:
    """The tools that the message says not to use: by name, by what they do, or all of them."""
    banned: set[str] = set()
    for clause in message.clauses:
        if not clause.is_negated:
            continue
        forms = {word.plain for word in clause.words}
        said = {word.meaning for word in clause.words if not word.is_silent}
        if forms & _TOOL_WORDS:
            return {offer.spec.name for offer in offers}
        banned |= {
            offer.spec.name for offer in offers if said & offer.names or ("calculate" in said and offer.calculates)
        }
    return banned


def _for_clause(
    clause: Clause, offers: Sequence[Offer], message: Asked, setting: Setting, before: Clause | None
) -> list[Planned]:
    found = _sums(clause, offers, setting)
    if found:
        return found
    found = _clock(clause, offers, setting) or _follow_up(clause, offers, setting, before)
    if found:
        return found
    if not clause.asks and not _orders(clause, offers):
        return []
    return _fitting(clause, offers, message, setting) or _looked_up(clause, offers, message, setting)


def _orders(clause: Clause, offers: Sequence[Offer]) -> bool:
    """Whether it begins with what one of the tools does: ``download …``."""
    first = next((word for word in clause.words if word.plain not in POLITE), None)
    return (
        first is not None
        and not first.is_silent
        and any(first.meaning in offer.names | offer.about for offer in offers)
    )


def _sums(clause: Clause, offers: Sequence[Offer], setting: Setting) -> list[Planned]:
    able = [offer for offer in offers if offer.calculates]
    sums = sums_of(clause.bare, setting.language) if able else []
    if not sums or not is_calculation(clause, sums):
        return []
    able.sort(key=lambda offer: ("calculate" not in offer.names, all(field.topic != "sum" for field in offer.fields)))
    wishes = [(each, Wish(offer, clause, "", setting.language)) for each in sums for offer in able]
    made: dict[int, Planned] = {}
    for each, wish in wishes:
        arguments = arguments_of_sum(wish, each) if each.start not in made else None
        if arguments is not None:
            made[each.start] = Planned(wish.offer, arguments, clause, sum=each)
    return list(made.values())


def is_calculation(clause: Clause, sums: Sequence[Sum]) -> bool:
    """Whether the sums are what the clause is about, and not a date, a range, or a phrase such as 24/7."""
    outside = [word for word in clause.words if not any(each.start <= word.start < each.end for each in sums)]
    strange = [word for word in outside if not _is_counting(word.plain)]
    if not clause.asks:
        return all(word.plain in POLITE or word.plain in _EQUAL for word in outside)
    is_weak = all(_is_weak(clause.bare[each.start : each.end]) for each in sums)
    return len(strange) <= (0 if is_weak else 3)


def _is_weak(text: str) -> bool:
    """Whether only a slash or a dash without blanks says that it is a sum."""
    return not any(sign in text for sign in "+*×÷^%=") and " " not in text


def _is_counting(form: str) -> bool:
    return form in _COUNTING or is_frame(form) or form.isdigit()


def _clock(clause: Clause, offers: Sequence[Offer], setting: Setting) -> list[Planned]:
    able = [offer for offer in offers if offer.tells_time]
    question = clock_question(clause, setting.language) if able and (clause.asks or len(clause.words) <= 5) else None  # noqa: PLR2004 - "Time in Tokyo"
    return [] if question is None else _told_by(able[0], clause, question, setting)


def _told_by(offer: Offer, clause: Clause, question: ClockQuestion, setting: Setting) -> list[Planned]:
    made = []
    places: tuple[Place | None, ...] = question.places or (None,)
    for place in places:
        arguments = arguments_for(Wish(offer, clause, "", setting.language), place)
        one = ClockQuestion(question.kinds, question.shift, (place,) if place else ())
        if arguments is not None:
            made.append(Planned(offer, arguments, clause, clock=one))
    return made


def _follow_up(clause: Clause, offers: Sequence[Offer], setting: Setting, before: Clause | None) -> list[Planned]:
    """``And in Berlin?``: the question before it, asked of another place."""
    places = places_of(clause.text)
    rest = [word for word in clause.words if not (word.is_silent or word.plain in POLITE or is_within(word, places))]
    able = [offer for offer in offers if offer.tells_time]
    if not places or rest or before is None or not able or not clause.asks:
        return []
    question = clock_question(before, setting.language)
    if question is None:
        return []
    return _told_by(able[0], clause, ClockQuestion(question.kinds, question.shift, tuple(places)), setting)


def _fitting(clause: Clause, offers: Sequence[Offer], message: Asked, setting: Setting) -> list[Planned]:
    source = Source(clause.text, setting.language)
    ranked = sorted(offers, key=lambda offer: -offer.fit(clause, source))
    for offer in ranked:
        if offer.fit(clause, source) < ENOUGH:
            return []
        if (offer.calculates and not offer.takes_numbers) or (offer.tells_time and not offer.required):
            continue
        wide = f"{message.text}\n{setting.system}"
        is_of_place = sum(field.topic in ("place", "zone") for field in offer.fields) == 1
        places: tuple[Place | None, ...] = tuple(source.places) if is_of_place and source.places else (None,)
        made = [
            Planned(offer, arguments, clause)
            for place in places
            if (arguments := arguments_for(Wish(offer, clause, wide, setting.language, message.material), place))
            is not None
        ]
        if made:
            return made
    return []


def _looked_up(clause: Clause, offers: Sequence[Offer], message: Asked, setting: Setting) -> list[Planned]:
    """A question of the world that the talk does not answer."""
    able = [offer for offer in offers if offer.looks_up]
    forms = {word.plain for word in clause.words}
    is_personal = bool(
        forms & {"my", "i", "me", "you", "your", "mein", "meine", "mir", "mich", "ich", "du", "dein", "deine"}
    )
    content = [word for word in clause.words if not _is_counting(word.plain)]
    if not able or clause.mood != "question" or is_personal or not content or setting.is_known(clause):
        return []
    able.sort(key=lambda offer: ("summarise" not in offer.names | offer.about, len(offer.required)))
    wide = f"{message.text}\n{setting.system}"
    is_of_a_thing = bool(names_in(clause)) or any(clause.form.startswith(f" {begin} ") for begin in _OF_A_THING)
    for offer in able:
        is_fitting = is_of_a_thing or not offer.names & {"encyclopedia"}
        arguments = arguments_for(Wish(offer, clause, wide, setting.language)) if is_fitting else None
        if arguments is not None:
            return [Planned(offer, arguments, clause)]
    return []
