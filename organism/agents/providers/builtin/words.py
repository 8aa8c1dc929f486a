"""Words and sentences of a text, and which language it is in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from organism.agents.providers.builtin.lexicon import ENGLISH_SIGNS, GERMAN_SIGNS, MEANINGS, SILENT, named

Language = Literal["en", "de"]

MAX_STEM_CHARS: Final = 40

_WORD: Final = re.compile(r"[^\W_]+(?:['\u2019\-][^\W\d_]+)*")
_PLAIN: Final = str.maketrans(
    {"ä": "a", "ö": "o", "ü": "u", "ß": "ss", "é": "e", "è": "e", "à": "a", "ê": "e", "â": "a", "ç": "c", "ñ": "n"}
    | {"í": "i", "ó": "o", "á": "a", "ú": "u", "ô": "o", "î": "i", "û": "u", "ã": "a", "õ": "o", "\u2019": "", "'": ""}
)
_APART: Final[Mapping[str, str]] = {
    **{word: word.replace("ä", "ae") for word in ("ändere", "änder", "ändern", "ändert")},
    **{word: word.replace("ü", "ue") for word in ("kürz", "kürze", "kürzen")},
}
"""Words that would be others without their accents: ``andere``, ``kurz``."""
_ENDINGS: Final = ("ings", "ing", "ern", "est", "ies", "ed", "en", "er", "em", "es", "ly", "e", "s", "n", "t", "y")
_INFLECTIONS: Final = ("s", "es", "ed", "d", "ing", "st", "t", "e", "en", "n", "er")
_LEAST: Final = 3
_LEAST_PART: Final = 4
_POSSESSIVE: Final = re.compile(r"['\u2019]s?$")
_END: Final = re.compile(
    r"(?:[.!?…]+[)\]\"'”“»]*(?=\s+|$))|\n[ \t]*\n|\n(?=\s*(?:[-*•]|\d{1,3}[.)]\s))|[\u3002\uff01\uff1f]"
)
_SHORT_FORMS: Final = named("short_forms")
_FIRM_FORMS: Final = named("firm_forms")
"""They often end a sentence too."""
_LETTERS: Final = re.compile(r"[äöüß]")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text: where it stands, as it is written, plain, its stem, and its meaning (else its stem).

    ``parts`` are the meanings of the words that it is made of: ``weather`` and ``forecast`` of a Wettervorhersage.
    """

    start: int
    end: int
    text: str
    plain: str
    stem: str
    meaning: str
    parts: tuple[str, ...]

    @property
    def is_silent(self) -> bool:
        """Whether it says nothing of the matter."""
        return self.plain in SILENT

    @property
    def is_capital(self) -> bool:
        return self.text[:1].isupper()


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a text, without the space around it; ``start`` is where it begins in that text."""

    text: str
    start: int
    words: tuple[Word, ...]

    @property
    def is_question(self) -> bool:
        return self.text.rstrip("\"'”“») ").endswith("?")

    @property
    def content(self) -> tuple[Word, ...]:
        """The words that say something of the matter."""
        return tuple(word for word in self.words if not word.is_silent)


def plain(text: str) -> str:
    """In small letters, without accents and apostrophes."""
    return text.lower().translate(_PLAIN)


def _by_root() -> dict[str, str]:
    return {stem(form): meaning for form, meaning in MEANINGS.items() if len(stem(form)) > _LEAST_PART}


@lru_cache(maxsize=20_000)
def known(text: str) -> tuple[str, str, str, tuple[str, ...]]:
    """The plain form of a word, its stem, its meaning, and the meanings of its parts if it is made of two words."""
    form = _APART.get(text.lower()) or plain(_POSSESSIVE.sub("", text)[:MAX_STEM_CHARS])
    root = stem(form)
    meaning = MEANINGS.get(form) or MEANINGS.get(form.replace("-", "")) or _inflected(form) or _ROOTS.get(root)
    return form, root, meaning or root, () if meaning else _parts(form)


def _inflected(form: str) -> str | None:
    """The meaning of the word without an ending."""
    roots = (form[: -len(ending)] for ending in _INFLECTIONS if form.endswith(ending))
    found = next((MEANINGS[root] for root in roots if len(root) >= _LEAST_PART and root in MEANINGS), None)
    return found or (MEANINGS.get(f"{form}e") if len(form) >= _LEAST_PART else None)


def _parts(form: str) -> tuple[str, ...]:
    """What the two words mean that a longer one is made of; at least one of them has a meaning here."""
    if "-" in form:
        left, _, right = form.partition("-")
        return tuple(MEANINGS.get(part) or stem(part) for part in (left, right) if len(part) >= _LEAST)
    for at in range(len(form) - _LEAST_PART, _LEAST_PART - 1, -1):
        left, right = form[:at], form[at:]
        glued = left.removesuffix("s")
        first, last = MEANINGS.get(left) or MEANINGS.get(glued) or _ROOTS.get(left), MEANINGS.get(right)
        if first and (last or at >= _LEAST_PART):
            return (first, last or stem(right))
        if last and len(left) >= _LEAST_PART:
            return (stem(glued), last)
    short = (form[:_LEAST], form[_LEAST:])
    meant = tuple(MEANINGS[part] for part in short if part in MEANINGS)
    return meant if len(meant) == len(short) else ()


def stem(form: str) -> str:
    """The word without up to two endings: rough, but alike for the forms of a word in both languages."""
    for _ in range(2):
        for ending in _ENDINGS:
            if form.endswith(ending) and len(form) - len(ending) >= _LEAST:
                form = form[: -len(ending)]
                break
    return form


_ROOTS: Final[Mapping[str, str]] = _by_root()
"""The meanings by the stems of their words: what parts of longer words are known by."""


def words_of(text: str, start: int = 0) -> tuple[Word, ...]:
    """The words of a text; ``start`` is added to where they stand."""
    return tuple(
        Word(match.start() + start, match.end() + start, match.group(), *known(match.group()))
        for match in _WORD.finditer(text)
    )


def sentences_of(text: str, masked: str | None = None) -> list[Sentence]:
    """The sentences of a text; an empty line and a list's sign end one too.

    ``masked`` is the text with other signs, as many, where no sentence shall end.
    """
    found, begin = [], 0
    for match in _END.finditer(text if masked is None else masked):
        if match.group().startswith(".") and _is_short_form(text, match.start()):
            continue
        found.append((begin, match.end()))
        begin = match.end()
    found.append((begin, len(text)))
    return [made for first, last in found if (made := sentence(text[first:last], first)).words]


def sentence(text: str, start: int = 0) -> Sentence:
    """One sentence out of a text that begins at ``start``."""
    left = len(text) - len(text.lstrip())
    cut = text.strip()
    return Sentence(cut, start + left, words_of(cut, start + left))


def _is_short_form(text: str, dot: int) -> bool:
    """Whether the point belongs to an abbreviation, an initial, or an ordinal such as ``3. Mai``."""
    begin = dot
    while begin > 0 and dot - begin < MAX_STEM_CHARS and (text[begin - 1].isalnum() or text[begin - 1] == "."):
        begin -= 1
    before = text[begin:dot]
    after = text[dot + 1 : dot + 3].strip()
    if before.isdigit():
        return len(before) <= 2 and bool(after) and text[dot + 1 : dot + 2] == " " and _goes_on(text, dot)  # noqa: PLR2004 - a day or a month
    form = plain(before).replace(".", "")
    is_initial = len(before) == 1 and before.isupper() and before != "I"
    if form in _FIRM_FORMS:
        return not after[:1].isupper()
    return form in _SHORT_FORMS or is_initial or ("." in before and len(form) <= 3)  # noqa: PLR2004 - z.B, e.g, u.a


_AFTER_ORDINAL: Final = re.compile(
    r"\.\s+(?:jan|feb|mär|mar|apr|mai|may|jun|jul|aug|sep|okt|oct|nov|dez|dec|[a-zäöü]|jahrhundert)", re.IGNORECASE
)


def _goes_on(text: str, dot: int) -> bool:
    match = _AFTER_ORDINAL.match(text, dot)
    return match is not None and (text[match.end() - 1].islower() or len(match.group().strip(". ")) > 1)


def language_of(texts: Iterable[str]) -> Language | None:
    """The language of the texts, newest first: the first one that shows it; None if none does."""
    for text in texts:
        forms = [plain(match.group()) for match in _WORD.finditer(text[:2000])]
        german = sum(form in GERMAN_SIGNS for form in forms if form not in ENGLISH_SIGNS)
        english = sum(form in ENGLISH_SIGNS for form in forms if form not in GERMAN_SIGNS)
        german += len(_LETTERS.findall(text[:2000].lower()))
        if german != english:
            return "de" if german > english else "en"
    return None
