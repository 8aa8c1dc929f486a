"""Finds in a text what a field asks for. Nothing is made up: where the text says nothing, nothing is found."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, TypeVar

from organism.agents.providers.builtin.choosing import choose
from organism.agents.providers.builtin.days import Day, years_of
from organism.agents.providers.builtin.fields import Field
from organism.agents.providers.builtin.finders import all_in
from organism.agents.providers.builtin.lexicon import NEGATIONS, SILENT, named
from organism.agents.providers.builtin.numbers import Number
from organism.agents.providers.builtin.schemas import Schema
from organism.agents.providers.builtin.sources import Labelled, Source
from organism.agents.providers.builtin.sum_tree import expression
from organism.agents.providers.builtin.sums import sums_of
from organism.agents.providers.builtin.words import Word, known, plain

Value = TypeVar("Value")
Texts = Callable[[Source], list[str]]

NEAR_WORDS: Final = 4
MOST_NAME_WORDS: Final = 5
_FROM: Final = named("beginnings")
_TO: Final = named("endings")
_YES: Final = named("yes")
_NO: Final = named("no")


@dataclass
class Taken:
    """The values that other fields have taken already: the next field of the kind takes another one."""

    values: set[tuple[str, str]] = field(default_factory=set)

    def next(self, kind: str, found: Sequence[str]) -> str | None:
        """The first one that is free; if none is, the first one."""
        free = [value for value in found if (kind, value) not in self.values]
        chosen = free[0] if free else found[0] if found else None
        if chosen is not None:
            self.values.add((kind, chosen))
        return chosen


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
        found = [_held(wanted, each.value) for each in source.numbers]
        return [value for value in found if value is not None]
    label = _labelled(wanted, source, lambda value: value)
    if label is not None and wanted.topic in ("other", "keywords"):
        parts = [part.strip(" .") for part in re.split(r"[,;]|\band\b|\bund\b", label)]
        return [part for part in parts if part]
    reader = _BY_TOPIC.get(wanted.topic)
    return list(reader(source)) if reader is not None else []


# ── numbers and truth ────────────────────────────────────────────────────────────────────────────────────────────────


def number(wanted: Field, source: Source, taken: Taken) -> int | float | None:
    """The number that is called so, stands beside words of the field, or is the only one of its kind."""
    found = _labelled(wanted, source, lambda value: _as_number(wanted, Source(value, source.language)))
    if found is not None:
        taken.values.add(("number", str(found)))
        return found
    near = _near(wanted, source)
    if near is not None:
        taken.values.add(("number", str(near)))
        return near
    values = [value for value in _numbers_like(wanted, source) if value is not None]
    chosen = taken.next("number", [str(value) for value in values])
    return next((value for value in values if str(value) == chosen), None)


def _as_number(wanted: Field, source: Source) -> int | float | None:
    return next((value for each in source.numbers if (value := _held(wanted, each.value)) is not None), None)


def _held(wanted: Field, value: Decimal) -> int | float | None:
    """The number as the schema takes it; None if it does not."""
    schema = wanted.schema
    if wanted.kind == "integer" and value != value.to_integral_value():
        return None
    made = int(value) if value == value.to_integral_value() and abs(value) < 10**15 else float(value)
    return made if _is_within(made, schema) else None


def _is_within(value: float, schema: Schema) -> bool:
    """Whether a number lies between the bounds of the schema."""
    low, high = schema.get("minimum", value), schema.get("maximum", value)
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    return bool(low <= value <= high and (above is None or value > above) and (below is None or value < below))


def _near(wanted: Field, source: Source) -> int | float | None:
    """The number with the most of the field's words around it; those behind it count first: ``3 apples``."""
    best, chosen = 0.0, None
    words, like = source.words, _like(wanted, source)
    for each in source.numbers:
        value = _held(wanted, each.value)
        if value is None:
            continue
        at = bisect_left(words, each.start, key=lambda word: word.start)
        after = bisect_left(words, each.end, key=lambda word: word.start)
        behind, before = words[after : after + NEAR_WORDS], words[max(0, at - NEAR_WORDS) : at]
        score = (
            _nearness(wanted, before[::-1]) + _nearness(wanted, behind[:1]) * 1.1 + _nearness(wanted, behind[1:]) * 0.3
        )
        score *= 3 if each in like else 1
        if score > best:
            best, chosen = score, value
    return chosen


def _nearness(wanted: Field, words: Sequence[Word]) -> float:
    return sum(1.0 / (at + 1) for at, word in enumerate(words) if _is_alike(word, wanted.meanings))


def _is_alike(word: Word, meanings: frozenset[str]) -> bool:
    if word.meaning in meanings or word.stem in meanings:
        return True
    return len(word.plain) > 6 and any(len(each) > 3 and (each in word.plain) for each in meanings)  # noqa: PLR2004 - parts of long words


def _numbers_like(wanted: Field, source: Source) -> list[int | float | None]:
    """The numbers of the field's kind, in their order; if there are none, all."""
    if wanted.meanings & {"year", "jahr"}:
        return [_held(wanted, Decimal(year)) for year, _ in years_of(source.text)]
    return [_held(wanted, each.value) for each in _like(wanted, source) or source.numbers]


def _like(wanted: Field, source: Source) -> list[Number]:
    """The numbers that look like money, shares or ages, if the field asks for such."""
    meanings = wanted.meanings
    after = {each: source.text[each.end : each.end + 14].lstrip().lower() for each in source.numbers}
    before = {each: source.text[max(0, each.start - 4) : each.start].rstrip().lower() for each in source.numbers}
    signs: tuple[str, ...] = ()
    if meanings & {
        "price",
        "amount",
        "total",
        "sum",
        "betrag",
        "fee",
        "salary",
        "budget",
        "revenu",
        "invoic",
        "balanc",
    }:
        signs = ("€", "$", "£", "eur", "usd", "dollar", "euro", "gbp", "chf", "pound")
    elif meanings & {"percent", "percentag", "share", "rate", "discoun", "prozen", "rabat", "tax"}:
        signs = ("%", "percent", "prozent", "per cent")
    elif "age" in meanings:
        signs = ("year", "jahre", "yo", "-year")
    like = [
        each for each in source.numbers if signs and (after[each].startswith(signs) or before[each].endswith(signs))
    ]
    if "age" in meanings and not like:
        like = [each for each in source.numbers if before[each].endswith((" am", "'m", "bin", "ist", "aged", "is"))]
    return like


def _truth(wanted: Field, source: Source) -> bool | None:
    """Whether the text says so: a label with yes or no, or the field's words with no ``not`` close before them."""
    said = _labelled(wanted, source, _as_truth)
    if said is not None:
        return said
    meanings = wanted.meanings - {"is", "has", "should", "can", "wan", "need"}
    for sentence in source.sentences:
        at = next((at for at, word in enumerate(sentence.words) if _is_alike(word, meanings)), None)
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
    reader = _BY_TOPIC.get(wanted.topic)
    if reader is None:
        return _labelled(wanted, source, lambda value: value)
    in_label = _labelled(wanted, source, lambda value: _first(wanted, reader(Source(value, source.language)), value))
    if in_label is not None:
        taken.values.add((wanted.topic, in_label))
        return in_label
    found = _directed(wanted, source, reader(source))
    return taken.next(wanted.topic, found)


def _first(wanted: Field, found: list[str], value: str) -> str | None:
    """The first one; of an id, if it does not look like one, the word itself."""
    if not found and wanted.topic in ("id", "person", "place") and len(value.split()) <= MOST_NAME_WORDS:
        word = value if wanted.topic != "id" else value.split(maxsplit=1)[0] if value.split() else ""
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
        cues = ("from", "von", "ab", "since", "seit") if forms & _FROM else ("to", "nach", "until", "bis", "till", "an")
        ordered = found if forms & _FROM else found[::-1]
        return sorted(ordered, key=lambda value: not _is_behind(source, value, cues))
    return sorted(found, key=lambda value: not _is_named(source, value, wanted.meanings))


def _is_named(source: Source, value: str, meanings: frozenset[str]) -> bool:
    at = source.text.find(value)
    before = [word for word in source.words if at > 0 and word.end <= at][-2:]
    return any(_is_alike(word, meanings) for word in before)


def _is_behind(source: Source, value: str, cues: tuple[str, ...]) -> bool:
    at = source.text.find(value)
    before = [word.plain for word in source.words if at > 0 and word.end <= at][-2:]
    return any(word in cues for word in before)


def _labelled(wanted: Field, source: Source, reader: Callable[[str], Value | None]) -> Value | None:
    """What the best fitting label calls so. A label fits if it says most of the field's name and little else."""
    best: float = 0.5
    value: Value | None = None
    for each in source.labelled:
        score = _label_score(wanted, each)
        if score > best:
            read = reader(each.value)
            if read is not None:
                best, value = score, read
    return value


def _label_score(wanted: Field, each: Labelled) -> float:
    label = {word.meaning for word in each.label if not word.is_silent or word.plain in wanted.forms}
    if not label:
        return 0.0
    same = sum(1 for word in each.label if _is_alike(word, wanted.meanings))
    same = min(same, len(wanted.meanings))
    return same / len(wanted.meanings) * 0.7 + same / len(label) * 0.4 if same else 0.0


def _zones(source: Source) -> list[str]:
    return list(dict.fromkeys(place.zone for place in source.places))


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
    forms = [word.plain for word in source.words]
    return [name for form in forms for name, words in _LANGUAGES.items() if form in words]


_LANGUAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "English": ("english", "englisch", "englische"),
    "German": ("german", "deutsch", "deutsche"),
    "French": ("french", "franzosisch"),
    "Spanish": ("spanish", "spanisch"),
    "Italian": ("italian", "italienisch"),
    "Portuguese": ("portuguese", "portugiesisch"),
    "Dutch": ("dutch", "niederlandisch"),
    "Polish": ("polish", "polnisch"),
    "Turkish": ("turkish", "turkisch"),
    "Russian": ("russian", "russisch"),
    "Japanese": ("japanese", "japanisch"),
    "Chinese": ("chinese", "chinesisch"),
    "Latin": ("latin", "latein"),
}


_BY_TOPIC: Final[Mapping[str, Texts]] = {
    "email": lambda source: all_in(source, "email"),
    "url": lambda source: all_in(source, "url"),
    "phone": lambda source: all_in(source, "phone"),
    "uuid": lambda source: all_in(source, "uuid"),
    "date": _dates,
    "datetime": _datetimes,
    "time": lambda source: [moment.iso[:5] for moment in source.moments],
    "zone": _zones,
    "place": lambda source: [place.name for place in source.places if "/" not in place.name],
    "person": lambda source: all_in(source, "person"),
    "firm": lambda source: all_in(source, "firm"),
    "sum": _sums,
    "currency": lambda source: all_in(source, "currency"),
    "language": _languages,
    "id": lambda source: all_in(source, "id"),
}
