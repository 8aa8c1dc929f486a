"""Places in a text and the zones of their time.

The names of the zones come from the time zone database; the table here adds what it does not name: other cities,
countries, and what places are called in German. A country of several zones stands for that of its capital or largest
city.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from organism.agents.providers.builtin.lexicon import named, rows
from organism.agents.providers.builtin.words import Word, plain, words_of

MAX_NAME_WORDS: Final = 4

_AREAS: Final = ("Africa/", "America/", "Antarctica/", "Arctic/", "Asia/", "Atlantic/", "Australia/", "Europe/")
_ISLANDS: Final = ("Indian/", "Pacific/")
_NO_CITIES: Final = named("no_cities")
_ZONE: Final = re.compile(r"\b[A-Z][A-Za-z]+(?:/[A-Z][A-Za-z_+\-]+){1,2}\b|\b(?:UTC|GMT)\s?[+\-−]\s?\d{1,2}\b")
_BEFORE: Final = named("before_places")


@dataclass(frozen=True, slots=True)
class Place:
    """A place where it is named, as it is written there."""

    start: int
    end: int
    name: str
    zone: str


def places_of(text: str, words: tuple[Word, ...] | None = None) -> list[Place]:
    """The places of a text, and the zones that it names themselves.

    A name in small letters counts only behind a word such as ``in``.
    """
    named = [
        Place(match.start(), match.end(), match.group(), zone)
        for match in _ZONE.finditer(text)
        if (zone := _itself(match.group()))
    ]
    words = words_of(text) if words is None else words
    found, at = list[Place](), 0
    while at < len(words):
        place = _place(text, words, at)
        if place is None or any(zone.start <= place.start < zone.end for zone in named):
            at += 1
            continue
        found.append(place)
        while at < len(words) and words[at].start < place.end:
            at += 1
    return sorted((*named, *found), key=lambda place: place.start)


def _itself(name: str) -> str | None:
    if name in _known():
        return name
    offset = re.fullmatch(r"(?:UTC|GMT)\s?([+\-−])\s?(\d{1,2})", name)
    if offset:
        hours = int(offset.group(2))
        sign = "-" if offset.group(1) == "+" else "+"  # the database counts them the other way
        return f"Etc/GMT{sign}{hours}" if hours else "Etc/UTC"
    return None


def _place(text: str, words: tuple[Word, ...], at: int) -> Place | None:
    """The longest name of a place that begins with this word."""
    first = words[at]
    if not first.is_capital and (at == 0 or words[at - 1].plain not in _BEFORE):
        return None
    zones = _zones()
    for length in range(min(MAX_NAME_WORDS, len(words) - at), 0, -1):
        part = words[at : at + length]
        name = " ".join(word.plain.replace("-", " ") for word in part)
        if name in zones and (length > 1 or not first.is_silent or first.text.isupper()):
            return Place(first.start, part[-1].end, text[first.start : part[-1].end], zones[name])
    return None


@cache
def _known() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


@cache
def _zones() -> Mapping[str, str]:
    """By plain name: the zone."""
    known = _known()
    zones: dict[str, str] = {}
    for zone in sorted(known, key=lambda zone: (not zone.startswith(_AREAS), zone)):
        if zone.startswith((*_AREAS, *_ISLANDS)):
            city = plain(zone.rpartition("/")[2].replace("_", " "))
            if city.replace("-", " ") not in _NO_CITIES:
                zones.setdefault(city.replace("-", " "), zone)
    for zone, names in rows("places"):
        zones.update({name.replace("_", " "): zone for name in names.split()})
    return zones
