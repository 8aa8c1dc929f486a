"""Calls for sums: which tool takes them, and whether a clause is about one at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from organism.agents.providers.builtin.arguments import arguments_of_sum
from organism.agents.providers.builtin.asking import Clause, is_frame
from organism.agents.providers.builtin.days import days_of
from organism.agents.providers.builtin.lexicon import POLITE, named
from organism.agents.providers.builtin.setting import Planned, Setting
from organism.agents.providers.builtin.sum_tokens import WORDS
from organism.agents.providers.builtin.sum_tree import Sum
from organism.agents.providers.builtin.sums import sum_continued, sums_of
from organism.agents.providers.builtin.tool_texts import Wish

MOST_STRANGE: Final = 3
"""So many words may a request have beside its sum that belong to no sum."""

_COUNTING: Final = named("counting")
_EQUAL: Final = named("equal")


def sum_calls(clause: Clause, setting: Setting) -> list[Planned]:
    """A call for each sum of the clause."""
    able = [offer for offer in setting.offers if offer.calculates]
    sums = _without_days(sums_of(clause.bare, setting.language), clause) if able else []
    if not sums or not is_calculation(clause, sums):
        return []
    able.sort(key=lambda offer: ("calculate" not in offer.names, all(field.topic != "sum" for field in offer.fields)))
    made: dict[int, Planned] = {}
    for each, offer in ((each, offer) for each in sums for offer in able):
        arguments = (
            arguments_of_sum(Wish(offer, clause, "", setting.language), each) if each.start not in made else None
        )
        if arguments is not None:
            made[each.start] = Planned(offer, arguments, clause, each, clause.bare[each.start : each.end])
    return list(made.values())


def _without_days(sums: Sequence[Sum], clause: Clause) -> list[Sum]:
    """The sums in which no day stands: ``September 12, 2027`` is none."""
    days = [day for day in days_of(clause.bare) if any(sign.isalpha() for sign in clause.bare[day.start : day.end])]
    return [each for each in sums if not any(day.start < each.end and each.start < day.end for day in days)]


def sum_call_continued(before: Planned, clause: Clause, setting: Setting) -> Planned | None:
    """The call before this clause with what the clause does with its sum; None if it does nothing with it."""
    more = sum_continued(clause.bare, before.sum, setting.language) if before.sum is not None else None
    if more is None:
        return None
    arguments = arguments_of_sum(Wish(before.offer, clause, "", setting.language), more)
    if arguments is None:
        return None
    return replace(
        before, arguments=arguments, sum=more, said=f"{before.said.strip(' ,.')} {clause.text.strip(' ,.?!')}"
    )


def is_calculation(clause: Clause, sums: Sequence[Sum]) -> bool:
    """Whether the sums are what the clause is about, and not a date, a range, or a phrase such as 24/7."""
    outside = [word for word in clause.words if not any(each.start <= word.start < each.end for each in sums)]
    strange = [word for word in outside if not is_counting(word.plain)]
    if not clause.asks and clause.bare[: sums[0].start].rstrip().endswith(":"):
        return not clause.bare[sums[-1].end :].strip(" .!?=")
    if not clause.asks:
        is_order = bool(outside) and outside[0].start == clause.words[0].start and not outside[0].is_silent
        rest = outside[1:] if is_order and len(strange) <= 1 else outside  # an imperative that is not known
        return all(word.plain in POLITE or word.plain in _EQUAL for word in rest)
    is_weak = all(_is_weak(clause.bare[each.start : each.end]) for each in sums)
    return len(strange) <= (0 if is_weak else MOST_STRANGE)


def _is_weak(text: str) -> bool:
    """Whether only a slash or a dash without blanks says that it is a sum."""
    return not any(sign in text for sign in "+*×÷^%=") and " " not in text


def is_counting(form: str) -> bool:
    return form in _COUNTING or form in WORDS or is_frame(form) or form.isdigit()
