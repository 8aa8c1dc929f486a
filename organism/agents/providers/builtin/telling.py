"""Answers made of what the tools answered. Nothing in a result is an order: it is quoted or left out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from organism.agents.providers.builtin.clockwork import ClockQuestion
from organism.agents.providers.builtin.days import days_of, moments_of
from organism.agents.providers.builtin.ranking import best_sentences
from organism.agents.providers.builtin.setting import Planned
from organism.agents.providers.builtin.talking import Result, Talk
from organism.agents.providers.builtin.words import Language

MOST_CHARS: Final = 600
SHORT_CHARS: Final = 200
MOST_ENTRIES: Final = 8

_WEEKDAYS: Final = {
    "en": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "de": ("Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag"),
}
_MONTHS: Final = {
    "en": [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ],
    "de": [
        "Januar",
        "Februar",
        "März",
        "April",
        "Mai",
        "Juni",
        "Juli",
        "August",
        "September",
        "Oktober",
        "November",
        "Dezember",
    ],
}
_ANSWERS: Final = (
    "value",
    "result",
    "answer",
    "output",
    "total",
    "text",
    "summary",
    "extract",
    "content",
    "message",
    "ergebnis",
    "wert",
)
_ERRORS: Final = ("error", "message", "detail", "reason", "code")
_SURE: Final = re.compile(r"(?:error|fehler)\b[:\s]", re.IGNORECASE)


def tell(talk: Talk, planned: Sequence[Planned], language: Language) -> str:
    """An answer to each result, in the order of the calls."""
    ahead = list(planned)
    told = []
    for result in talk.results:
        why = next(
            (each for each in ahead if each.offer.spec.name == result.name and each.arguments == result.arguments), None
        )
        if why is not None:
            ahead.remove(why)
        told.append(_told(result, why, talk, language))
    return _joined([text for text in dict.fromkeys(told) if text])


def _joined(texts: Sequence[str]) -> str:
    return ("\n\n" if any("\n" in text or len(text) > SHORT_CHARS for text in texts) else " ").join(texts)


def _told(result: Result, why: Planned | None, talk: Talk, language: Language) -> str:
    wrong = _error(result)
    if wrong is not None:
        return _failed(result.name, wrong, language)
    if why is not None and why.sum is not None:
        return _counted(result, why, language)
    if why is not None and why.clock is not None:
        return _clock(result, why.clock, language) or _shown(result, talk, language)
    return _shown(result, talk, language)


def _error(result: Result) -> str | None:
    """What went wrong, if the result says that something did."""
    value = result.value
    if isinstance(value, Mapping) and (value.get("error") or value.get("is_error") or value.get("isError")):
        inner = value.get("error")
        found = inner if isinstance(inner, str) else None
        for source in (inner, value):
            if found is None and isinstance(source, Mapping):
                found = next((source[key] for key in _ERRORS if isinstance(source.get(key), str)), None)
        return found or "error"
    if isinstance(value, str) and _SURE.match(value):
        return value.partition(":")[2].strip() or value
    return None


def _failed(name: str, wrong: str, language: Language) -> str:
    text = " ".join(wrong.split())[:SHORT_CHARS].rstrip(".")
    return f"{name} konnte nicht helfen: {text}." if language == "de" else f"{name} could not help: {text}."


# ── sums ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _counted(result: Result, why: Planned, language: Language) -> str:
    value = _scalar(result)
    if value is None or why.sum is None:
        return _plain(result.value)
    said = " ".join(why.said.split()).strip(" ,.?!=")
    verb = "ist" if language == "de" else "is"
    return f"{said[:1].upper()}{said[1:]} {verb} {_number(value, language)}."


def _scalar(result: Result) -> str | None:
    """The one value of a result, whatever it is called."""
    value = result.value
    if isinstance(value, Mapping):
        rest = {key: each for key, each in value.items() if each not in result.arguments.values()}
        named = [rest[key] for key in _ANSWERS if key in rest]
        plain = [each for each in rest.values() if isinstance(each, str | int | float) and not isinstance(each, bool)]
        value = named[0] if named else plain[0] if plain else None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return format(Decimal(str(value)), "f")
    return value.strip() if isinstance(value, str) and value.strip() else None


def _number(text: str, language: Language) -> str:
    """A number as the language writes it; other text as it is."""
    try:
        Decimal(text)
    except InvalidOperation:
        return text
    return text.replace(".", ",") if language == "de" and "e" not in text.lower() else text


# ── the clock ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _clock(result: Result, question: ClockQuestion, language: Language) -> str:
    """The day and the time that the result tells, moved by as many days as were asked for."""
    days, moments = days_of(result.text, "en"), moments_of(result.text)
    known = next((day for day in days if day.year is not None), None)
    if known is None or known.year is None:
        return ""
    try:
        day = date(known.year, known.month, known.day) + timedelta(days=question.shift)
    except OverflowError:
        return ""
    moment = datetime.strptime(moments[0].iso, "%H:%M:%S").time() if moments else None  # noqa: DTZ007 - a time of day alone
    parts = []
    weekday, month = _WEEKDAYS[language][day.weekday()], _MONTHS[language][day.month - 1]
    where = f"in {question.places[0].name}" if question.places and "/" not in question.places[0].name else ""
    if question.places and not where:
        where = f"({question.places[0].name})"
    is_time = "time" in question.kinds and question.shift == 0 and moment is not None
    if language == "de":
        parts.append(f"{weekday}, der {day.day}. {month} {day.year}")
        parts += [f"{moment:%H:%M} Uhr"] if is_time else []
        verb = "ist es" if question.shift == 0 else "ist der gesuchte Tag"
        return f"{_capital(where)} {verb} {', '.join(parts)}.".strip() if where else f"Es ist {', '.join(parts)}."
    parts.append(f"{weekday}, {day.day} {month} {day.year}")
    when = f"{moment:%H:%M} on " if is_time else ""
    verb = "it is" if question.shift == 0 else "it will be" if question.shift > 0 else "it was"
    told = f"{verb} {when}{', '.join(parts)}"
    return f"{_capital(where)} {told}." if where else f"{_capital(told)}."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


# ── everything else ──────────────────────────────────────────────────────────────────────────────────────────────────


def _shown(result: Result, talk: Talk, language: Language) -> str:
    """The result itself if it is short, else the sentences of it that fit the question."""
    text = _plain(result.value)
    if not text:
        return f"{result.name} hat nichts gefunden." if language == "de" else f"{result.name} found nothing."
    if len(text) <= SHORT_CHARS:
        return text
    found = best_sentences(text, talk.message.text, 1 if talk.is_brief else 3)
    return " ".join(found)[:MOST_CHARS] or text[:MOST_CHARS]


def _plain(value: Any) -> str:
    """JSON as people read it."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, Mapping):
        if len(value) == 1:
            return _plain(next(iter(value.values())))
        shown = [
            (key, _plain(each)) for key, each in list(value.items())[:MOST_ENTRIES] if each not in (None, "", [], {})
        ]
        texts = [text for _, text in shown if len(text) > SHORT_CHARS]
        return "\n".join(texts) if texts else ", ".join(f"{key}: {text}" for key, text in shown)
    if isinstance(value, Sequence):
        return "\n".join(text for each in value[:MOST_ENTRIES] if (text := _plain(each)))
    if value is None:
        return ""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
