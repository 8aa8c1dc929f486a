"""What was said, sentence by sentence: what each speaks of, and whose it is.

A sentence that begins with a pronoun speaks of what the one before it spoke of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, starmap
from typing import Final

from organism.agents.providers.builtin.days import days_of, moments_of, years_of
from organism.agents.providers.builtin.lexicon import OWNERS, named, rows
from organism.agents.providers.builtin.places import places_of
from organism.agents.providers.builtin.ranking import is_order
from organism.agents.providers.builtin.talking import Talk
from organism.agents.providers.builtin.words import Sentence, Word, known, sentence, sentences_of

MOST_FACT_CHARS: Final = 2000
LEAST_WORDS: Final = 3
ME: Final = named("me")
FAVOURITE: Final = "lieblings"
VERB: Final = re.compile(
    r"\b(?:is|are|was|were|am|'m|'re|ist|sind|war|waren|bin|heiß\w*|called|named|has|have|hat|habe)\b", re.IGNORECASE
)

IDIOMS: Final = tuple((re.compile(pattern), meaning) for meaning, pattern in rows("idioms"))
"""Turns of speech, and what they mean."""

_YOU: Final = named("you")
_THEY: Final = named("they")
_THINGS: Final = frozenset({"it", "this", "that", "these", "those", "es", "dies", "das", "diese", "dieser", "dieses"})
_CLAUSE: Final = re.compile(
    r"\s*(?:[,;]\s*(?:and|und|but|aber|while|während|whereas)?|\s(?:and|und|but|aber|while|während|whereas))\s+"
    r"(?=(?:my|our|i|i'm|we|the|his|her|their|she|he|it|mein\w*|unser\w*|ich|wir|der|die|das|sein\w*|ihr\w*|sie|er|"
    r"es)\b)",
    re.IGNORECASE,
)
_GENITIVE: Final = re.compile(r"['\u2019]s?$")
_APOSTROPHE: Final = re.compile(r"['\u2019]")
_SPEAKERS: Final = frozenset({"i", "im", "ive", "we", "ich", "wir"})
_WHOSE: Final = named("whose")
_ACCOMPANYING: Final = named("accompanying")
_INSTRUCTING: Final = named("instructing")
_TO_THE_MODEL: Final = frozenset(
    {"you", "your", "du", "dein", "deine", "sie", "never", "always", "nie", "immer", "do", "must"}
)


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that was said. ``meanings`` is what it speaks of, ``owners`` whose it is besides the speaker's.

    ``is_mine`` says that it is of the user; ``form`` are its plain words with a blank around each.
    """

    sentence: Sentence
    role: str
    meanings: frozenset[str]
    owners: frozenset[str]
    is_mine: bool
    form: str

    @property
    def subject(self) -> tuple[Word, ...]:
        """Its words before the verb."""
        verb = VERB.search(self.sentence.text)
        words = self.sentence.words
        limit = self.sentence.start + verb.start() if verb else self.sentence.start
        return tuple(word for word in words if word.start < limit)


def facts_of(talk: Talk) -> list[Fact]:
    """All that was said in the talk, and what its newest message brings along or tells."""
    told = [clause.text for clause in talk.message.clauses if not clause.asks]
    texts = [("system", _grounds(talk.system)), *((said.role, said.text) for said in talk.before)]
    texts += [("material", talk.message.material), ("user", " ".join(told))]
    return [fact for role, text in texts for fact in _facts(text, role)]


def meanings_in(words: Sequence[Word]) -> Iterator[str]:
    """What the words mean that say something; of words made of two, what each of these means."""
    for word in words:
        if word.is_silent:
            continue
        yield word.meaning
        yield from word.parts
        if word.plain.startswith(FAVOURITE) and len(word.plain) > len(FAVOURITE):
            yield "favourite"
            yield known(word.plain.removeprefix(FAVOURITE))[2]


def owners_in(words: Sequence[Word]) -> frozenset[str]:
    """Whose it is: ``sister`` of ``my sister's``, ``ann`` of ``Ann's``; nobody's behind an ``I``."""
    found: set[str] = set()
    speaks = next((at for at, word in enumerate(words) if word.plain in _SPEAKERS), len(words))
    for at, (before, word) in enumerate(pairwise(words), 1):
        is_beside = at > 1 and words[at - 2].plain in _ACCOMPANYING
        if (
            at < speaks
            and not is_beside
            and before.plain in _WHOSE
            and (word.meaning in OWNERS or word.plain in OWNERS)
        ):
            found.add(word.meaning)
        if _is_genitive(before, word):
            found.add(before.meaning)
    return frozenset(found)


def _is_genitive(word: Word, following: Word) -> bool:
    """``Ann's``, and ``Anns`` before a favourite."""
    if not word.is_capital or word.is_silent:
        return False
    is_german = word.plain.endswith("s") and following.is_capital and following.plain.startswith(FAVOURITE)
    return is_german or _GENITIVE.search(word.text) is not None


def _is_named(word: Word, following: Word) -> bool:
    """``my sister Lena``."""
    is_person = word.meaning in OWNERS or word.plain in OWNERS
    return is_person and following.is_capital and following.meaning == following.stem and not following.is_silent


def _grounds(system: str) -> str:
    """Of the instructions, what may be quoted: sentences that tell something and do not instruct."""
    return "\n".join(found.text for found in sentences_of(system) if not _instructs(found))


def _instructs(found: Sentence) -> bool:
    forms = {word.plain for word in found.words}
    return bool(forms & _TO_THE_MODEL) or is_order(found.text) or found.words[0].plain in _INSTRUCTING


def _facts(text: str, role: str) -> Iterator[Fact]:
    before: Fact | None = None
    for found in _statements(text):
        fact = _fact(found, role, before)
        yield fact
        if not _is_of_another(found):
            before = fact


def _statements(text: str) -> Iterator[Sentence]:
    """The sentences that tell something, cut where another one is joined to them."""
    for found in sentences_of(text):
        if found.is_question or len(found.text) > MOST_FACT_CHARS:
            continue
        parts = _CLAUSE.split(found.text)
        is_whole = len(parts) < 2 or not all(  # noqa: PLR2004 - nothing is joined
            VERB.search(part) or len(part.split()) >= LEAST_WORDS for part in parts
        )
        yield from [found] if is_whole else [sentence(part) for part in parts]


def _is_of_another(found: Sentence) -> bool:
    """Whether it begins with a pronoun: then it speaks of what was spoken of before."""
    return found.words[0].plain in _THEY | _THINGS


def _fact(found: Sentence, role: str, before: Fact | None) -> Fact:
    meanings = set(meanings_in(found.words)) | {meaning for pattern, meaning in IDIOMS if pattern.search(found.text)}
    owners = owners_in(found.words)
    forms = {word.plain for word in found.words} | {_APOSTROPHE.split(word.text.lower())[0] for word in found.words}
    if before is not None and _is_of_another(found) and not forms & ME:
        owners = owners or (before.owners if found.words[0].plain in _THEY else frozenset())
        meanings |= set(meanings_in(before.subject))
    form = f" {' '.join(word.plain for word in found.words)} "
    is_mine = bool(forms & (ME if role == "user" else _YOU | ME))
    return Fact(found, role, frozenset(meanings | _kinds(found)), owners, is_mine, form)


def _kinds(found: Sentence) -> set[str]:
    """What a sentence tells without naming it: a place, a day, a time."""
    kinds: set[str] = {"name"} if any(starmap(_is_named, pairwise(found.words))) else set()
    if any(word.is_capital for word in found.words[1:]) and places_of(found.text, sentence(found.text).words):
        kinds |= {"city", "place", "country"}
    if any(sign.isdigit() for sign in found.text):
        kinds |= {"date", "day"} if days_of(found.text) else set()
        kinds |= {"time"} if moments_of(found.text) else set()
        kinds |= {"year"} if years_of(found.text) else set()
    return kinds
