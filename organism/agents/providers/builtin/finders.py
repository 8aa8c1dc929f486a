"""Finds the texts of a kind in a source: addresses, names, ids. What looks like one is taken for one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Final

from organism.agents.providers.builtin.asking import quoted
from organism.agents.providers.builtin.days import Day
from organism.agents.providers.builtin.lexicon import ASKING, COMMANDS, MEANINGS, POLITE, SILENT, named, rows
from organism.agents.providers.builtin.sources import EMAIL, PHONE, URL, UUID, Source
from organism.agents.providers.builtin.words import Word, known, plain

_HOST: Final = re.compile(
    r"\b(?:[a-z0-9][a-z0-9\-]{0,62}\.){1,5}(?:com|org|net|de|io|example|dev|eu|info|gov|edu|co|uk|ch|at|fr|app|"
    r"ai)\b(?:/[^\s<>\"']*)?"
)
_ID: Final = re.compile(
    r"(?<![\w.@/-])(?=[\w.:-]*\d)(?=[\w.:-]*[A-Za-z])[A-Za-z0-9]+(?:[-_.:][A-Za-z0-9]+)*(?![\w@])"
    r"|(?<![\w.@/-])[a-z0-9]+(?:[-_][a-z0-9]+)+(?![\w@])|#\d+"
)
_IP: Final = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.]*\d)")
_PATH: Final = re.compile(
    r"(?<![\w./\\\-])(?:(?:[A-Za-z]:|[~.]{0,2})?[/\\]?[\w.\-]{0,200}(?:[/\\][\w.\-]{1,200}){1,40}|[\w\-]{1,200}\.[a-z][a-z0-9]{1,4}\b)"
)
_SYMBOL: Final = re.compile(r"(?<![\w.&-])[A-Z]{2,6}(?:\.[A-Z]{1,2})?(?![\w&-])")
_KEY: Final = re.compile(r"(?<![\w./:\-])(?=[\w.:/-]*[A-Za-z])[A-Za-z0-9]+(?:[._:/\-][A-Za-z0-9]+)+(?![\w/])")
_CURRENCIES: Final = {sign: code for code, signs in rows("currencies") for sign in signs.split()}
_MONEY: Final = re.compile(r"[$€£¥₹]|[^\W\d_]+")
_PARTICLES: Final = frozenset({"van", "von", "de", "der", "di", "da", "del", "le", "la", "zu"})
_TITLES: Final = named("forms_of_address")
_NAMING: Final = re.compile(
    r"(?i:\b(?:name is|names? are|named|called|call me|name's|i am|i'm|this is|heiße|heisse|heißt|heisst|name ist|"
    r"ich bin|"
    r"namens|nenn mich|genannt|regards,|grüße,|gruß,|sincerely,|from|by|von|für|for|to|an|with|mit|dear|liebe[r]?|"
    r"hi|hello|hallo|hey|and|und))[\s,:]+"
    r"((?:[A-ZÄÖÜ][\w'\u2019\-]+)(?:\s(?:van|von|de|der|di|da|del|le|la|zu)\b)?(?:\s[A-ZÄÖÜ][\w'\u2019\-]+){0,3})"
)
_FIRM: Final = re.compile(
    r"\b((?:[A-ZÄÖÜ][\w&.\-]*\s){0,3}[A-ZÄÖÜ][\w&\-]*\s(?:Inc|Ltd|LLC|GmbH|AG|SE|KG|Corp|Corporation|Company|Group|"
    r"Bank|University|Labs|Systems)\b\.?)"
    r"|\b(?:at|bei|joined|company|firma|works? for|working for|arbeite für|"
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


def _ips(source: Source) -> list[str]:
    return [match.group() for match in _IP.finditer(source.text)]


def _hosts(source: Source) -> list[str]:
    return [match.group().partition("/")[0] for match in _HOST.finditer(EMAIL.sub(" ", source.text))]


def _paths(source: Source) -> list[str]:
    rest = EMAIL.sub(" ", URL.sub(" ", source.text))
    return [match.group().rstrip(".,;:!?") for match in _PATH.finditer(rest)]


def _symbols(source: Source) -> list[str]:
    return [match.group() for match in _SYMBOL.finditer(source.text)]


def _keys(source: Source) -> list[str]:
    """What looks like a key: words that signs or digits join without a blank."""
    rest = _HOST.sub(" ", EMAIL.sub(" ", URL.sub(" ", source.text)))
    return [match.group() for match in _KEY.finditer(rest)]


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
    found += _runs(source)
    found += [(at, name) for at, name in _titled(source)]
    cleaned = [(at, name) for at, text in sorted(found) if (name := _as_name(source, text))]
    kept = [name for _, name in cleaned] or (_first_name(source) if source.is_item else [])
    return [name for name in kept if not any(name != other and name in other.split() for other in kept)]


def _first_name(source: Source) -> list[str]:
    """Of an item of a list: the capital word that it begins with."""
    first = next(iter(source.words), None)
    return [first.text] if first is not None and _may_be_name(first.text) else []


def _firms(source: Source) -> list[str]:
    """Names of companies, as far as their looks tell."""
    found = (next(filter(None, match.groups())) for match in _FIRM.finditer(source.text))
    places = {place.name for place in source.places}
    return [name for name in found if name not in places]


def _runs(source: Source) -> list[tuple[int, str]]:
    """Two or more capital words in a row that may be names: ``Maria Weber``, ``Anna van Dam``."""
    runs: list[list[Word]] = []
    end = -1
    for word in source.words:
        is_joined = bool(runs) and source.text[end : word.start] == " "
        if is_joined and runs[-1] and (_may_be_name(word.text) or word.text in _PARTICLES):
            runs[-1].append(word)
        else:
            runs.append([word] if _may_be_name(word.text) else [])
        end = word.end
    long = [run for run in runs if len([word for word in run if word.text not in _PARTICLES]) > 1]
    return [(run[0].start, source.text[run[0].start : run[-1].end]) for run in long]


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
    firms = {firm.rstrip(".") for firm in all_in(source, "firm")}
    return "" if name in places or name.rstrip(".") in firms else name


def _currencies(source: Source) -> list[str]:
    forms = (plain(match.group()) for match in _MONEY.finditer(source.text))
    return [_CURRENCIES[form] for form in forms if form in _CURRENCIES]


def _may_be_name(text: str) -> bool:
    form = known(text)[0]
    is_word = (
        form in MEANINGS or form in COMMANDS or form in ASKING or form in POLITE or form in _TITLES or form in SILENT
    )
    return text[:1].isupper() and not is_word


def _without_days(text: str, days: list[Day]) -> str:
    for day in days:
        text = text[: day.start] + " " * (day.end - day.start) + text[day.end :]
    return text


_FINDERS: Final[Mapping[str, Callable[[Source], Iterable[str]]]] = {
    "email": _emails,
    "url": _urls,
    "phone": _phones,
    "uuid": _uuids,
    "ip": _ips,
    "host": _hosts,
    "path": _paths,
    "symbol": _symbols,
    "key": _keys,
    "id": _ids,
    "person": _people,
    "firm": _firms,
    "currency": _currencies,
    "quote": lambda source: quoted(source.text),
}
