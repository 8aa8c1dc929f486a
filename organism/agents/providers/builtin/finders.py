"""Finds the texts of a kind in a source: addresses, names, ids. What looks like one is taken for one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Final

from organism.agents.providers.builtin.asking import quoted
from organism.agents.providers.builtin.days import Day
from organism.agents.providers.builtin.lexicon import ASKING, COMMANDS, POLITE, SILENT, named
from organism.agents.providers.builtin.sources import EMAIL, PHONE, URL, UUID, Source
from organism.agents.providers.builtin.words import known, plain

_HOST: Final = re.compile(
    r"\b(?:[a-z0-9][a-z0-9\-]{0,62}\.){1,5}(?:com|org|net|de|io|example|dev|eu|info|gov|edu|co|uk|ch|at|fr|app|"
    r"ai)\b(?:/[^\s<>\"']*)?"
)
_ID: Final = re.compile(
    r"(?<![\w.@/-])(?=[\w.:-]*\d)(?=[\w.:-]*[A-Za-z])[A-Za-z0-9]+(?:[-_.:][A-Za-z0-9]+)*(?![\w@])"
    r"|(?<![\w.@/-])[a-z0-9]+(?:[-_][a-z0-9]+)+(?![\w@])|#\d+"
)
_MONEY: Final = re.compile(
    r"(?:[$€£¥]|\b(?:USD|EUR|GBP|CHF|JPY)\b)\s?|\s?(?:[$€£¥]|\b(?:USD|EUR|GBP|CHF|dollars?|euros?|pounds?|Franken)\b)",
    re.IGNORECASE,
)
_CURRENCIES: Final = (
    ("EUR", ("€", "eur", "euro", "euros")),
    ("USD", ("$", "usd", "dollar", "dollars")),
    ("GBP", ("£", "gbp", "pound", "pounds", "pfund")),
    ("CHF", ("chf", "franken", "francs")),
    ("JPY", ("¥", "jpy", "yen")),
)
_TITLES: Final = named("forms_of_address")
_NAMING: Final = re.compile(
    r"(?i:\b(?:name is|names? are|named|called|call me|name's|i am|i'm|this is|heiße|heisse|heißt|heisst|name ist|"
    r"ich bin|"
    r"namens|nenn mich|genannt|regards,|grüße,|gruß,|sincerely,|from|by|von|für|for|to|an|with|mit|dear|liebe[r]?|"
    r"hi|hello|hallo|hey|and|und))[\s,:]+"
    r"((?:[A-ZÄÖÜ][\w'\u2019\-]+)(?:\s(?:van|von|de|der|di|da|del|le|la|zu)\b)?(?:\s[A-ZÄÖÜ][\w'\u2019\-]+){0,3})"
)
_PAIR: Final = re.compile(
    r"\b([A-ZÄÖÜ][a-zäöüßéèáí'\u2019\-]+(?:\s(?:van|von|de|der|di|da|del|le|la|zu))?\s[A-ZÄÖÜ][\wäöüß'\u2019\-]+)\b"
)
_FIRM: Final = re.compile(
    r"\b((?:[A-ZÄÖÜ][\w&.\-]*\s){0,3}[A-ZÄÖÜ][\w&\-]*\s(?:Inc|Ltd|LLC|GmbH|AG|SE|KG|Corp|Corporation|Company|Group|"
    r"Bank|University|Labs|Systems)\b\.?)"
    r"|\b(?:at|bei|by|joined|company|firma|works? for|working for|arbeite für|"
    r"employer is)\s((?:[A-ZÄÖÜ][\w&\-]*)(?:\s[A-ZÄÖÜ][\w&\-]*){0,3})"
)


def all_in(source: Source, kind: str) -> list[str]:
    """All of a kind, in their order, each once; looked for once."""
    if kind not in source.kept:
        source.kept[kind] = list(dict.fromkeys(_FINDERS[kind](source)))
    return source.kept[kind]


def _emails(source: Source) -> list[str]:
    return [match.group() for match in EMAIL.finditer(source.text)]


def _urls(source: Source) -> list[str]:
    whole = [match.group().rstrip(".,;:!?") for match in URL.finditer(source.text)]
    rest = EMAIL.sub(" ", URL.sub(" ", source.text))
    return whole or [match.group().rstrip(".,;:!?") for match in _HOST.finditer(rest)]


def _phones(source: Source) -> list[str]:
    return [" ".join(match.group().split()) for match in PHONE.finditer(_without_days(source.text, source.days))]


def _uuids(source: Source) -> list[str]:
    return [match.group() for match in UUID.finditer(source.text)]


def _ids(source: Source) -> list[str]:
    """What looks like the name of a thing among many: ``INV-2031``, ``berlin-info``, ``#42``."""
    rest = EMAIL.sub(" ", URL.sub(" ", _without_days(source.text, source.days)))
    return [match.group() for match in _ID.finditer(rest)]


def _people(source: Source) -> list[str]:
    """Names of people, as far as their looks tell."""
    found = [(match.start(1), match.group(1)) for match in _NAMING.finditer(source.text)]
    found += [(match.start(1), match.group(1)) for match in _PAIR.finditer(source.text)]
    found += [(at, name) for at, name in _titled(source)]
    cleaned = [(at, name) for at, text in sorted(found) if (name := _as_name(source, text))]
    kept = [name for _, name in cleaned]
    return [name for name in kept if not any(name != other and name in other.split() for other in kept)]


def _firms(source: Source) -> list[str]:
    """Names of companies, as far as their looks tell."""
    found = (next(filter(None, match.groups())) for match in _FIRM.finditer(source.text))
    places = {place.name for place in source.places}
    return [name for name in found if name not in places]


def _titled(source: Source) -> list[tuple[int, str]]:
    """Who stands behind ``Dr.`` or ``Frau``."""
    found = []
    for left, right in pairwise(source.words):
        if left.plain in _TITLES and right.is_capital and right.start - left.end <= 2:  # noqa: PLR2004 - a point and a blank
            found.append((right.start, right.text))
    return found


def _as_name(source: Source, text: str) -> str:
    """The name without what only looks like a part of it."""
    words = text.split()
    while words and not _may_be_name(words[0]):
        words = words[1:]
    while words and not _may_be_name(words[-1]):
        words = words[:-1]
    name = re.sub(r"['\u2019]s$", "", " ".join(words))
    places = {place.name for place in source.places}
    return "" if name in places else name


def _currencies(source: Source) -> list[str]:
    forms = {plain(match.group().strip()) for match in _MONEY.finditer(source.text)}
    return [code for code, signs in _CURRENCIES if forms.intersection(signs)]


def _may_be_name(text: str) -> bool:
    form, root, meaning = known(text)
    is_word = form in COMMANDS or form in ASKING or form in POLITE or form in _TITLES or form in SILENT
    return text[:1].isupper() and not is_word and meaning == root


def _without_days(text: str, days: list[Day]) -> str:
    for day in days:
        text = text[: day.start] + " " * (day.end - day.start) + text[day.end :]
    return text


_FINDERS: Final[Mapping[str, Callable[[Source], Iterable[str]]]] = {
    "email": _emails,
    "url": _urls,
    "phone": _phones,
    "uuid": _uuids,
    "id": _ids,
    "person": _people,
    "firm": _firms,
    "currency": _currencies,
    "quote": lambda source: quoted(source.text),
}
