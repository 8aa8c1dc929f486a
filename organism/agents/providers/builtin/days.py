"""Days and times of day in a text: written ones as ISO 8601, and those that are told from today."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Final

from organism.agents.providers.builtin.numbers import numbers_of
from organism.agents.providers.builtin.words import Language, plain

MONTHS: Final[Mapping[str, int]] = {
    name: number
    for number, names in enumerate(
        (
            "january januar jan janner",
            "february februar feb",
            "march marz mar mrz",
            "april apr",
            "may mai",
            "june juni jun",
            "july juli jul",
            "august aug",
            "september sep sept",
            "october oktober oct okt",
            "november nov",
            "december dezember dec dez",
        ),
        1,
    )
    for name in names.split()
}
WEEKDAYS: Final[Mapping[str, int]] = {
    name: number
    for number, names in enumerate(
        (
            "monday montag",
            "tuesday dienstag",
            "wednesday mittwoch",
            "thursday donnerstag",
            "friday freitag",
            "saturday samstag sonnabend",
            "sunday sonntag",
        )
    )
    for name in names.split()
}
_MONTH: Final = "|".join(sorted((name.replace("marz", "m(?:ä|a)rz") for name in MONTHS), key=len, reverse=True))
_FORMS: Final = (
    re.compile(r"(?<![\d.-])(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})(?![\d-])"),
    re.compile(r"(?<![\d.])(?P<day>\d{1,2})\.\s?(?P<month>\d{1,2})\.\s?(?P<year>\d{4})(?!\d)"),
    re.compile(r"(?<![\d/])(?P<first>\d{1,2})/(?P<second>\d{1,2})/(?P<year>\d{4})(?![\d/])"),
    re.compile(
        rf"(?<!\d)(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:of\s+)?(?P<name>{_MONTH})\b\.?,?(?:\s+(?P<year>\d{{4}}))?",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b(?P<name>{_MONTH})\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)(?:,?\s+(?P<year>\d{{4}}))?",
        re.IGNORECASE,
    ),
)
_YEAR: Final = re.compile(r"(?<![\d.,])(?:1[5-9]|20|21)\d\d(?![\d.,]\d|\d)")
_CLOCK: Final = re.compile(
    r"(?<![\d:.,])(?:(?P<h1>[01]?\d|2[0-4])[:.](?P<m1>[0-5]\d)(?::(?P<s1>[0-5]\d))?\s?(?P<p1>[ap]\.?m\b\.?|Uhr)?"
    r"|(?P<h2>[01]?\d|2[0-4])\s?(?P<p2>[ap]\.?m\b\.?|Uhr(?:\s(?P<m2>[0-5]\d))?|o['\u2019]clock))",
    re.IGNORECASE,
)
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_NOON: Final[Mapping[str, str]] = {"noon": "12:00", "midday": "12:00", "midnight": "00:00", "mitternacht": "00:00"}
_UNITS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("day", "days", "tag", "tage", "tagen"), 1),
    **dict.fromkeys(("week", "weeks", "woche", "wochen"), 7),
    **dict.fromkeys(("fortnight", "fortnights"), 14),
}
_NEAR: Final = (
    ("day after tomorrow", 2),
    ("day before yesterday", -2),
    ("ubermorgen", 2),
    ("vorgestern", -2),
    ("tomorrow", 1),
    ("yesterday", -1),
    ("gestern", -1),
    ("morgen", 1),
    ("next week", 7),
    ("last week", -7),
    ("a week from now", 7),
    ("a week from today", 7),
    ("nachste woche", 7),
    ("letzte woche", -7),
)
_COUNTED: Final = re.compile(
    r"(?:(?P<ahead>\bin|\bafter|\bnach)\s+)?(?:(?P<vor>\bvor)\s+)?(?P<count>[\w\-]+(?:\s[\w\-]+)?)\s+"
    r"(?P<unit>days?|weeks?|fortnights?|tage?n?|wochen?)\b(?:'s time)?(?P<ago>\s+(?:ago|before|earlier|zuvor|fruher))?"
    r"(?P<hence>\s+(?:from (?:now|today)|later|hence|spater|ab heute))?"
)


@dataclass(frozen=True, slots=True)
class Day:
    """A day, where it stands. ``year`` is None where the text names none."""

    start: int
    end: int
    year: int | None
    month: int
    day: int

    @property
    def iso(self) -> str | None:
        """As ``2026-05-03``; None without a year."""
        return None if self.year is None else f"{self.year:04}-{self.month:02}-{self.day:02}"


@dataclass(frozen=True, slots=True)
class Moment:
    """A time of day, where it stands, as ``14:30:00``."""

    start: int
    end: int
    iso: str


def days_of(text: str, language: Language | None = None) -> list[Day]:
    """The days of a text in their order; what names no day that there is, is none."""
    found = sorted(_written(text, language), key=lambda day: (day.start, -day.end))
    kept: list[Day] = []
    for day in found:
        if not kept or day.start >= kept[-1].end:
            kept.append(day)
    return kept


def _written(text: str, language: Language | None) -> Iterator[Day]:
    for form in _FORMS:
        for match in form.finditer(text):
            parts = match.groupdict()
            year = int(parts["year"]) if parts.get("year") else None
            if parts.get("name"):
                month, day = MONTHS[plain(parts["name"])], int(parts["day"])
            elif parts.get("first"):
                first, second = int(parts["first"]), int(parts["second"])
                is_day_first = language == "de" or first > 12  # noqa: PLR2004 - months
                month, day = (second, first) if is_day_first else (first, second)
            else:
                month, day = int(parts["month"]), int(parts["day"])
            if _is_day(year, month, day):
                yield Day(match.start(), match.end(), year, month, day)


def _is_day(year: int | None, month: int, day: int) -> bool:
    try:
        return bool(date(year or 2000, month, day))
    except ValueError:
        return False


def is_time_word(text: str) -> bool:
    """Whether the first word is a month or a day of the week."""
    form = plain(text.split(maxsplit=1)[0]) if text.split() else ""
    return form in MONTHS or form in WEEKDAYS


def years_of(text: str) -> list[tuple[int, int]]:
    """The years that stand alone, each with where it begins."""
    return [(int(match.group()), match.start()) for match in _YEAR.finditer(text)]


def moments_of(text: str) -> list[Moment]:
    """The times of day of a text."""
    found = []
    for match in _CLOCK.finditer(text):
        parts = match.groupdict()
        hour = int(parts["h1"] or parts["h2"]) % 24
        half = (parts["p1"] or parts["p2"] or "").lower().replace(".", "")
        if parts["h1"] and "." in match.group() and not half:
            continue  # 2.30 is a number unless a word says otherwise
        if half == "pm" and hour < 12:  # noqa: PLR2004 - noon
            hour += 12
        elif half == "am" and hour == 12:  # noqa: PLR2004 - midnight
            hour = 0
        minute, second = parts["m1"] or parts["m2"] or "00", parts["s1"] or "00"
        found.append(Moment(match.start(), match.end(), f"{hour:02}:{minute}:{second}"))
    spoken = ((match, _NOON.get(plain(match.group()))) for match in _LETTERS.finditer(text))
    found += [Moment(match.start(), match.end(), f"{noon}:00") for match, noon in spoken if noon is not None]
    return sorted(found, key=lambda moment: moment.start)


def shift_of(text: str, language: Language | None = None) -> int:
    """How many days from today the text speaks of: 1 for tomorrow, -14 for two weeks ago, 0 for today."""
    form = plain(text)
    for match in _COUNTED.finditer(form):
        numbers = numbers_of(match.group("count"), language)
        last = match.group("count").split()[-1]
        count = (
            int(numbers[-1].value) if numbers else 1 if last in {"a", "one", "einem", "einer", "eine", "ein"} else None
        )
        is_back = bool(match.group("ago") or match.group("vor"))
        is_said = is_back or match.group("ahead") or match.group("hence")
        if count is not None and is_said and abs(count) < 100_000:  # noqa: PLR2004 - no calendar goes further
            return (-1 if is_back else 1) * count * _UNITS[match.group("unit")]
    padded = f" {' '.join(re.findall(r'[a-z]+', form))} "
    for phrase, shift in _NEAR:
        if f" {phrase} " in padded:
            return shift
    return 0
