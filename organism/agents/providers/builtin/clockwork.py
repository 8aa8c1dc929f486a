"""Whether a request asks for the time or the day as it is now, somewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from organism.agents.providers.builtin.asking import Clause, is_frame
from organism.agents.providers.builtin.days import WEEKDAYS, shift_of
from organism.agents.providers.builtin.lexicon import named
from organism.agents.providers.builtin.numbers import numbers_of
from organism.agents.providers.builtin.places import Place, places_of
from organism.agents.providers.builtin.words import Language, Word

MOST_STRANGE: Final = 2

_KINDS: Final = tuple((kind, named(kind)) for kind in ("weekday", "date", "time"))
_NEUTRAL: Final = named("clock_frame")
_IMPERSONAL: Final = named("impersonal")


@dataclass(frozen=True, slots=True)
class ClockQuestion:
    """A question of the clock.

    ``kinds`` are what is asked: ``weekday``, ``date``, ``time``; ``shift`` is how many days from now, ``places`` where.
    """

    kinds: tuple[str, ...]
    shift: int
    places: tuple[Place, ...]


def clock_question(clause: Clause, language: Language | None) -> ClockQuestion | None:
    """What the clause asks of the clock; None if it asks something else."""
    places = tuple(places_of(clause.text, clause.words))
    forms = [word.plain for word in clause.words]
    kinds = tuple(kind for kind, words in _KINDS if not words.isdisjoint(forms))
    if not kinds and not _asks_weekday(clause):
        return None
    strange = [word for word in clause.words if not _is_neutral(word.plain) and not is_within(word, places)]
    form = clause.form
    is_impersonal = any(phrase in form for phrase in _IMPERSONAL)
    is_about_now = is_impersonal or bool(places) or bool(set(forms) & _NOW)
    is_somewhere_now = bool(places) and bool(set(forms) & _NOW)
    if len(strange) > (MOST_STRANGE if is_impersonal else int(is_somewhere_now)) or not (
        is_about_now or _is_bare(clause)
    ):
        return None
    return ClockQuestion(_wanted(kinds, set(forms)), shift_of(clause.text, language), places)


_NOW: Final = named("now")
_TIME_WORDS: Final = frozenset(word for _, words in _KINDS for word in words) | frozenset(WEEKDAYS)


def is_within(word: Word, places: Sequence[Place]) -> bool:
    """Whether a word belongs to the name of one of the places."""
    return any(place.start <= word.start < place.end for place in places)


def _is_neutral(form: str) -> bool:
    return is_frame(form) or form in _NEUTRAL or form in _TIME_WORDS or bool(numbers_of(form))


def _asks_weekday(clause: Clause) -> bool:
    """Whether a day is asked about: ``Is it already Tuesday in Tokyo?``."""
    begins = clause.words[0].plain in ("is", "ist", "do", "does", "haben", "hat") if clause.words else False
    has_day = any(word.plain in WEEKDAYS for word in clause.words)
    return clause.mood == "question" and has_day and (" it " in clause.form or begins)


def _is_bare(clause: Clause) -> bool:
    """``The time, please.``: nothing but the time is named."""
    return clause.asks and not any(word.plain in ("when", "wann") for word in clause.words) and len(clause.words) <= 8  # noqa: PLR2004 - a short one


def _wanted(kinds: tuple[str, ...], forms: set[str]) -> tuple[str, ...]:
    """A day asked for with its date is one; ``what time of day`` asks for the time."""
    if "time" in kinds and "weekday" in kinds and not forms & {"weekday", "wochentag", "date", "datum"}:
        return ("weekday", "time") if forms & {"and", "und"} else ("time",)
    return kinds or ("weekday",)
