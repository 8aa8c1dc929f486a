"""Which tools are called for what a message asks, with which arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from organism.agents.providers.builtin.asking import Asked, Clause, part_of
from organism.agents.providers.builtin.clock_calls import clock_calls, follow_up_calls
from organism.agents.providers.builtin.lexicon import ASKING, COMMANDS, POLITE, named
from organism.agents.providers.builtin.offers import Offer
from organism.agents.providers.builtin.other_calls import fitting_calls, is_ordered, lookup_calls
from organism.agents.providers.builtin.places import Place, places_of
from organism.agents.providers.builtin.setting import Planned, Setting
from organism.agents.providers.builtin.sum_calls import sum_call_continued, sum_calls

MOST_CALLS: Final = 16

_SUBORDINATE: Final = named("subordinate")
_TOOL_WORDS: Final = named("tool_words")


MOST_JOINTS: Final = 4
_JOINT: Final = re.compile(r"\s+(?:and|und|plus|sowie|as well as|along with|together with|&)\s+|[,;]\s+", re.IGNORECASE)
_COMMA: Final = re.compile(r"[,;–—]\s+|\s+-\s+")
_LEAD: Final = re.compile(r"[^:,\n]{1,40}:\s+")


def plan(message: Asked, setting: Setting) -> list[Planned]:
    """The calls, at most ``MOST_CALLS``, none twice."""
    banned = _banned(message, setting.offers)
    allowed = replace(setting, offers=[offer for offer in setting.offers if offer.spec.name not in banned])
    planner = _Planner(message, allowed)
    for clause in message.clauses if allowed.offers else ():
        planner.take(clause)
    return planner.made[:MOST_CALLS]


class _Planner:
    """Goes through the clauses of a message; what was asked before, and where, may be meant again."""

    def __init__(self, message: Asked, setting: Setting) -> None:
        self.made: list[Planned] = []
        self._message = message
        self._setting = setting
        earlier = setting.earlier.clauses if setting.earlier is not None else ()
        self._before = next((clause for clause in reversed(earlier) if clause.asks), None)
        self._places: tuple[Place, ...] = ()
        for clause in earlier:
            self._see(clause)

    def take(self, clause: Clause) -> None:
        """Plan for the next clause."""
        if not clause.is_negated:
            self._add(self._for(clause), clause)
        self._see(clause)
        self._before = clause if clause.asks else self._before

    def _see(self, clause: Clause) -> None:
        self._places = tuple(places_of(clause.text, clause.words)) or self._places

    def _add(self, found: Sequence[Planned], clause: Clause) -> None:
        if not found and self.made and self.made[-1].clause is self._before:
            longer = sum_call_continued(self.made[-1], clause, self._setting)
            self.made = [*self.made[:-1], longer] if longer is not None else self.made
        for each in found:
            if not any(each.offer is one.offer and each.arguments == one.arguments for one in self.made):
                self.made.append(each)

    def _for_both(self, halves: tuple[Clause, Clause], asked: tuple[Place, ...]) -> Sequence[Planned]:
        """The calls for a sum and for the time, where one half asks for each."""
        for one, other in (halves, halves[::-1]):
            sums, clocks = sum_calls(one, self._setting), clock_calls(other, self._setting, self._places, asked)
            if sums and clocks:
                return [*sums, *clocks]
        return ()

    def _for(self, clause: Clause) -> Sequence[Planned]:
        setting = self._setting
        if self.made and self.made[-1].clause is self._before and sum_call_continued(self.made[-1], clause, setting):
            return ()
        asked = next((one.clock.places for one in self.made if one.clock is not None and one.clock.places), ())
        both = [part for halves in _halves(clause) if (part := self._for_both(halves, asked))]
        if both:
            return both[0]
        found = sum_calls(clause, setting) or clock_calls(clause, setting, self._places, asked)
        found = found or follow_up_calls(clause, setting, self._before)
        is_side = clause.words[0].plain in _SUBORDINATE and clause is not self._message.clauses[-1]
        is_unsure = clause.words[0].plain in _SUBORDINATE
        ordered = None if found or clause.asks or is_unsure else next(_ordered_parts(clause), None)
        if ordered is not None:
            return self._for(ordered)
        if found or is_side or not (clause.asks or is_ordered(clause, setting)):
            return found
        return fitting_calls(clause, self._message, setting) or lookup_calls(clause, self._message, setting)


def _ordered_parts(clause: Clause) -> Iterator[Clause]:
    """What is ordered behind something told: ``Looks good, merge it``; looked for behind its first few commas."""
    for match in islice(_COMMA.finditer(clause.text), MOST_JOINTS):
        part = part_of(clause, match.end(), len(clause.text))
        words = [word.plain for word in part.words if word.plain not in POLITE]
        if words and words[0] in COMMANDS and words[0] not in ASKING:
            yield part


def _halves(clause: Clause) -> Iterator[tuple[Clause, Clause]]:
    """The clause parted where it names two things: ``the time in Rome and 3 * 4``; only at its first few joints."""
    if not any(sign.isdigit() for sign in clause.bare):
        return
    begin = _LEAD.match(clause.text)
    start = begin.end() if begin else 0
    for match in islice(_JOINT.finditer(clause.text, start), MOST_JOINTS):
        yield part_of(clause, start, match.start()), part_of(clause, match.end(), len(clause.text))


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
