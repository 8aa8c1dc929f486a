"""Calls of tools that a request fits, and of tools that look up what the talk does not answer."""

from __future__ import annotations

from typing import Final

from organism.agents.providers.builtin.arguments import arguments_for
from organism.agents.providers.builtin.asking import Asked, Clause, clause_of
from organism.agents.providers.builtin.facts import VERB
from organism.agents.providers.builtin.fits import ENOUGH, LIKELY, MARGIN, Request, fit, takes
from organism.agents.providers.builtin.lexicon import POLITE, named
from organism.agents.providers.builtin.matter import KNOW_ABOUT, names_in
from organism.agents.providers.builtin.offers import Offer
from organism.agents.providers.builtin.places import Place
from organism.agents.providers.builtin.setting import Planned, Setting
from organism.agents.providers.builtin.sources import Source
from organism.agents.providers.builtin.sum_calls import is_counting
from organism.agents.providers.builtin.tool_texts import Wish
from organism.agents.providers.builtin.words import Word

_OF_A_THING: Final = named("of_a_thing")
_PERSONAL: Final = named("personal")
_TELLING: Final = named("telling")
_WISHES: Final = named("wishes")
_NEEDS: Final = named("needs")
_OBJECTS: Final = named("objects")
_TIMES: Final = named("passing") | named("before_places")
_YES_OR_NO: Final = named("yes_or_no")
MOST_BEFORE: Final = 200
_WHO: Final = named("asking_back")
_SPEAKERS: Final = frozenset({"i", "ich"})


def is_ordered(clause: Clause, setting: Setting) -> bool:
    """Whether the clause begins with what one of the tools does, or gives it what it takes and tells nothing of it."""
    first = next((word for word in clause.words if word.plain not in POLITE), None)
    if any(f" {need} " in clause.form for need in _NEEDS):
        return True
    if _is_imperative(clause, clause.words[0]) or (first is not None and _is_imperative(clause, first)):
        return True
    if first is None or first.is_silent:
        return False
    source = Source(clause.text, setting.language)
    tells = VERB.search(clause.text) is not None
    return any(
        first.meaning in offer.names | offer.about or (not tells and takes(offer, source)) for offer in setting.offers
    )


def _is_imperative(clause: Clause, first: Word) -> bool:
    """Whether the clause begins as a command does, by a verb that need not be known: ``heat the kitchen``."""
    at = clause.words.index(first)
    following = clause.words[at + 1].plain if at + 1 < len(clause.words) else ""
    return following in _OBJECTS and first.plain not in _TIMES and VERB.search(clause.text) is None


def _ranked(request: Request, setting: Setting) -> list[Offer]:
    """The tools that fit, the best first; one that fits less only if it is far ahead of all others."""
    scored = sorted(((fit(offer, request), offer) for offer in setting.offers), key=lambda each: -each[0])
    enough = [offer for score, offer in scored if score >= ENOUGH]
    if enough or not scored or not request.clause.asks:
        return enough
    (best, offer), second = scored[0], scored[1][0] if len(scored) > 1 else 0.0
    is_likely = best >= LIKELY and best - second >= MARGIN and not setting.is_known(request.clause)
    return [offer] if is_likely else []


def fitting_calls(clause: Clause, message: Asked, setting: Setting) -> list[Planned]:
    """Calls of the tool that fits best and has all that it needs."""
    source = Source(clause.text, setting.language)
    for offer in _ranked(Request(clause, source), setting):
        if offer.calculates or offer.tells_time:
            continue  # they are called for sums and for the time alone
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


def _of_before(clause: Clause, message: Asked) -> tuple[Clause, list[Word]] | None:
    """The clause with the name that was said right before it: ``never heard of Emmy Noether, who is that?``."""
    before = message.text.partition(clause.text)[0][-MOST_BEFORE:]
    told = clause_of(before)
    names = names_in(told)
    named = clause_of(f"{clause.words[0].text} {clause.words[1].text} {names[-1]}?") if names else None
    return (named, list(named.words)) if named is not None else None


def lookup_calls(clause: Clause, message: Asked, setting: Setting) -> list[Planned]:
    """A question of the world that the talk does not answer."""
    able = [offer for offer in setting.offers if offer.looks_up]
    is_wished = any(f" {wish} " in clause.form for wish in _WISHES)
    is_told = (
        is_wished
        or KNOW_ABOUT.search(clause.text) is not None
        or any(word.meaning in _TELLING for word in clause.words)
    )
    forms = {word.plain for word in clause.words} - (_SPEAKERS if is_told else frozenset())
    is_personal = bool(forms & _PERSONAL) or (clause.mood != "question" and not is_told)
    content = [word for word in clause.words if not is_counting(word.plain)]
    if not content and any(f" {asked} " in clause.form for asked in _WHO):
        clause, content = _of_before(clause, message) or (clause, content)
    if not able or not clause.asks or is_personal or not content or setting.is_known(clause):
        return []
    able.sort(key=lambda offer: ("summarise" not in offer.names | offer.about, len(offer.required)))
    wide = f"{message.text}\n{setting.system}"
    is_of_a_thing = bool(names_in(clause)) or any(clause.form.startswith(f" {begin} ") for begin in _OF_A_THING)
    is_yes_or_no = clause.mood == "question" and clause.words[0].plain in _YES_OR_NO and not is_told
    for offer in able:
        is_fitting = (is_of_a_thing and not is_yes_or_no) or not offer.names & {"encyclopedia"}
        arguments = arguments_for(Wish(offer, clause, wide, setting.language)) if is_fitting else None
        if arguments is not None:
            return [Planned(offer, arguments, clause)]
    return []
