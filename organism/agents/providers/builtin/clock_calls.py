"""Calls for the time or the day, somewhere."""

from __future__ import annotations

from typing import Final

from organism.agents.providers.builtin.arguments import arguments_for
from organism.agents.providers.builtin.asking import Clause
from organism.agents.providers.builtin.clockwork import ClockQuestion, clock_question, is_within
from organism.agents.providers.builtin.lexicon import POLITE, named
from organism.agents.providers.builtin.offers import Offer
from organism.agents.providers.builtin.places import Place, places_of
from organism.agents.providers.builtin.setting import Planned, Setting
from organism.agents.providers.builtin.tool_texts import Wish

SHORT_WORDS: Final = 7
"""So few words may ask without asking: ``Time in Tokyo``."""

_THERE: Final = named("there")
_HERE: Final = frozenset({"here", "hier"})


def clock_calls(clause: Clause, setting: Setting, known: tuple[Place, ...], asked: tuple[Place, ...]) -> list[Planned]:
    """A call for each place that is asked about.

    ``known`` are the places that were spoken of last, which ``there`` means; ``asked`` those that the message asks the
    clock about already, which are meant if no other is named.
    """
    able = [offer for offer in setting.offers if offer.tells_time]
    if not able or not (clause.asks or len(clause.words) <= SHORT_WORDS):
        return []
    question = clock_question(clause, setting.language)
    if question is None:
        return []
    forms = {word.plain for word in clause.words}
    meant = known if forms & _THERE else asked or known
    if not question.places and meant and not forms & _HERE:
        question = ClockQuestion(question.kinds, question.shift, meant)
    return _told_by(able[0], clause, question, setting)


def follow_up_calls(clause: Clause, setting: Setting, before: Clause | None) -> list[Planned]:
    """``And in Berlin?``: the question before it, asked of another place."""
    places = places_of(clause.text, clause.words)
    rest = [word for word in clause.words if not (word.is_silent or word.plain in POLITE or is_within(word, places))]
    able = [offer for offer in setting.offers if offer.tells_time]
    if not places or rest or before is None or not able or not clause.asks:
        return []
    question = clock_question(before, setting.language)
    if question is None:
        return []
    return _told_by(able[0], clause, ClockQuestion(question.kinds, question.shift, tuple(places)), setting)


def _told_by(offer: Offer, clause: Clause, question: ClockQuestion, setting: Setting) -> list[Planned]:
    made = []
    places: tuple[Place | None, ...] = question.places or (None,)
    for place in places:
        arguments = arguments_for(Wish(offer, clause, "", setting.language), place)
        one = ClockQuestion(question.kinds, question.shift, (place,) if place else ())
        if arguments is not None:
            made.append(Planned(offer, arguments, clause, clock=one))
    return made
