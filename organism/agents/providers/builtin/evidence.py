"""Finds in a text what a field asks for. Nothing is made up: where the text says nothing, nothing is found."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from organism.agents.providers.builtin.choosing import choose
from organism.agents.providers.builtin.days import Day, is_time_word, years_of
from organism.agents.providers.builtin.fields import Field
from organism.agents.providers.builtin.finders import all_in
from organism.agents.providers.builtin.labelling import Taken, is_alike, labelled
from organism.agents.providers.builtin.lexicon import NEGATIONS, SILENT, named
from organism.agents.providers.builtin.quantities import number, numbers
from organism.agents.providers.builtin.sources import Source
from organism.agents.providers.builtin.sum_tree import expression
from organism.agents.providers.builtin.sums import sums_of
from organism.agents.providers.builtin.words import known, plain

Value = TypeVar("Value")
Texts = Callable[[Source], list[str]]

NEAR_WORDS: Final = 4
MOST_NAME_WORDS: Final = 5
_SOMEWHERE: Final = re.compile(
    r"\b(?:in|at|to|near|nach|bei|aus|of|for|für)\s+((?:[A-ZÄÖÜ][\wäöüß'\-]+)(?:\s[A-ZÄÖÜ][\wäöüß'\-]+){0,2})"
)
_FROM: Final = named("beginnings")
_TO: Final = named("endings")
ENDS: Final = _FROM | _TO
"""What fields are called that ask where something begins or ends."""
_YES: Final = named("yes")
_NO: Final = named("no")


def find(wanted: Field, source: Source, taken: Taken) -> Any | None:
    """The value of a field, or None if the text says none. Objects and lists are put together elsewhere."""
    if "const" in wanted.schema:
        return wanted.schema["const"]
    if "enum" in wanted.schema:
        return choose(wanted, source, needs_evidence=True)
    if wanted.kind == "boolean":
        return _truth(wanted, source)
    if wanted.kind in ("integer", "number"):
        return number(wanted, source, taken)
    if wanted.kind == "string":
        return text(wanted, source, taken)
    return None


def all_of(wanted: Field, source: Source) -> list[Any]:
    """Every value of the text that such a field takes."""
    if wanted.kind in ("integer", "number"):
        return list(numbers(wanted, source))
    label = labelled(wanted, source, lambda value: value)
    if label is not None and wanted.topic in ("other", "keywords"):
        parts = [part.strip(" .") for part in re.split(r"[,;]|\band\b|\bund\b", label)]
        return [part for part in parts if part]
    reader = _BY_TOPIC.get(wanted.topic)
    return list(reader(source)) if reader is not None else []


def _truth(wanted: Field, source: Source) -> bool | None:
    """Whether the text says so: a label with yes or no, or the field's words with no ``not`` close before them."""
    said = labelled(wanted, source, _as_truth)
    if said is not None:
        return said
    meanings = wanted.meanings - {"is", "has", "should", "can", "wan", "need"}
    for sentence in source.sentences:
        at = next((at for at, word in enumerate(sentence.words) if is_alike(word, meanings)), None)
        if at is not None:
            around = sentence.words[max(0, at - 5) : at + 4]
            return not any(word.plain in NEGATIONS for word in around)
    return None


def _as_truth(value: str) -> bool | None:
    form = plain(value).strip(" .!")
    return True if form in _YES else False if form in _NO else None


# ── texts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def text(wanted: Field, source: Source, taken: Taken) -> str | None:
    """The text that the field asks for."""
    reader = _places if is_end_of_way(wanted, source) else _BY_TOPIC.get(wanted.topic)
    if reader is None:
        return labelled(wanted, source, lambda value: value)
    in_label = labelled(wanted, source, lambda value: _first(wanted, reader(Source(value, source.language)), value))
    if in_label is not None:
        taken.values.add((wanted.topic, in_label))
        return in_label
    found = _directed(wanted, source, reader(source))
    return taken.next(wanted.topic, found)


def is_end_of_way(wanted: Field, source: Source) -> bool:
    """Whether it asks where something begins or ends, and the text names places."""
    return wanted.topic == "other" and bool(ENDS.intersection(wanted.forms)) and len(source.places) > 1


def _first(wanted: Field, found: list[str], value: str) -> str | None:
    """The first one; of an id, if it does not look like one, the word itself."""
    is_name = wanted.topic in ("person", "place")
    if is_name and not value[:1].isupper():
        return found[0] if found else None
    if not found and (is_name or wanted.topic in ("id", "key", "symbol")) and len(value.split()) <= MOST_NAME_WORDS:
        word = (
            value
            if wanted.topic not in ("id", "key", "symbol")
            else value.split(maxsplit=1)[0]
            if value.split()
            else ""
        )
        return None if known(word.strip(" .,;!?"))[0] in SILENT else word.strip(",;") or None
    return found[0] if found else None


def _directed(wanted: Field, source: Source, found: list[str]) -> list[str]:
    """First what stands behind a word of the field (``index berlin-info``), or behind ``from`` or ``to`` if it asks so.

    Without such a word, what is from comes first in a text, and what is to comes last.
    """
    forms = set(wanted.forms)
    if len(found) < 2:  # noqa: PLR2004 - of one there is nothing to choose
        return found
    if forms & (_FROM | _TO):
        cues = (
            ("from", "von", "ab", "since", "seit")
            if forms & _FROM
            else ("to", "nach", "until", "bis", "till", "an", "in", "into")
        )
        ordered = found if forms & _FROM else found[::-1]
        return sorted(ordered, key=lambda value: not _is_behind(source, value, cues))
    return sorted(found, key=lambda value: not _is_named(source, value, wanted.meanings))


def _is_named(source: Source, value: str, meanings: frozenset[str]) -> bool:
    at = source.text.find(value)
    before = [word for word in source.words if at > 0 and word.end <= at][-2:]
    return any(is_alike(word, meanings) for word in before)


def _is_behind(source: Source, value: str, cues: tuple[str, ...]) -> bool:
    at = source.text.find(value)
    before = [word.plain for word in source.words if at > 0 and word.end <= at][-2:]
    return any(word in cues for word in before)


def _zones(source: Source) -> list[str]:
    return list(dict.fromkeys(place.zone for place in source.places))


def _places(source: Source) -> list[str]:
    """The names of places; if none is known, the capital words behind ``in`` or ``nach``."""
    known_ones = [place.name for place in source.places if "/" not in place.name]
    return known_ones or [
        match.group(1) for match in _SOMEWHERE.finditer(source.text) if not is_time_word(match.group(1))
    ]


def _dates(source: Source) -> list[str]:
    years = [year for year, _ in years_of(source.text)]
    return [iso for day in source.days if (iso := _dated(day, years))]


def _dated(day: Day, years: Sequence[int]) -> str | None:
    """The day as ISO; where it names no year, but the text speaks of one year alone, in that year."""
    if day.iso is not None:
        return day.iso
    return Day(day.start, day.end, years[0], day.month, day.day).iso if len(set(years)) == 1 else None


def _datetimes(source: Source) -> list[str]:
    moments = [moment.iso for moment in source.moments] or ["00:00:00"]
    dates = _dates(source)
    return [f"{day}T{moments[min(at, len(moments) - 1)]}Z" for at, day in enumerate(dates)]


def _sums(source: Source) -> list[str]:
    return [expression(found) for found in sums_of(source.text, source.language)]


def _languages(source: Source) -> list[str]:
    return [word.meaning.title() for word in source.words if word.meaning in _LANGUAGES]


_LANGUAGES: Final = frozenset(
    {"english", "german", "french", "spanish", "italian", "portuguese", "dutch", "polish", "turkish", "russian"}
    | {"japanese", "chinese", "latin"}
)
"""The languages, by the names of their meanings."""


def _all_of_kind(kind: str, source: Source) -> list[str]:
    return all_in(source, kind)


_BY_TOPIC: Final[Mapping[str, Texts]] = {
    **{
        kind: partial(_all_of_kind, kind)
        for kind in ("email", "url", "phone", "uuid", "ip", "host", "path", "symbol", "key")
    },
    "date": _dates,
    "datetime": _datetimes,
    "time": lambda source: [moment.iso[:5] for moment in source.moments],
    "zone": _zones,
    "place": _places,
    "person": lambda source: all_in(source, "person"),
    "firm": lambda source: all_in(source, "firm"),
    "sum": _sums,
    "currency": lambda source: all_in(source, "currency"),
    "language": _languages,
    "id": lambda source: all_in(source, "id"),
}
