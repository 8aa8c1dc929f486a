"""Giving back what was said: the sentence of the talk that answers a question, said to whoever asks.

Each sentence is known by what its words mean, and by whose it is: what is said of somebody's sister is no answer to a
question about themselves. Of sentences that answer as well, the newest counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from organism.agents.providers.builtin.asking import Clause
from organism.agents.providers.builtin.days import days_of, moments_of, years_of
from organism.agents.providers.builtin.lexicon import OWNERS, POLITE, named
from organism.agents.providers.builtin.persons import said_to
from organism.agents.providers.builtin.places import places_of
from organism.agents.providers.builtin.ranking import is_order, rarities
from organism.agents.providers.builtin.talking import Talk
from organism.agents.providers.builtin.words import Language, Sentence, Word, known, sentence, sentences_of

ENOUGH: Final = 0.55
"""So much of what a question asks must a sentence say."""
MOST_FACT_CHARS: Final = 500
COMPOUND: Final = 0.8
STRANGER: Final = 0.25
"""What remains of a sentence's weight if it speaks of somebody else."""
QUALIFIED: Final = 0.08
LEAST_WORDS: Final = 3
LEAST_PART: Final = 4
"""A shorter word stands by chance within many others."""

_ME: Final = named("me")
_YOU: Final = named("you")
_THEY: Final = named("they")
_NOISE: Final = named("noise")
_PHRASES: Final = (
    (re.compile(r"\bfor a living\b|\bearn my (?:living|money)\b|\bvon beruf\b|\bberuflich\b", re.IGNORECASE), "job"),
    (re.compile(r"\bwho am i\b|\bwer bin ich\b", re.IGNORECASE), "name"),
    (re.compile(r"\bwhere\b.*\bfrom\b|\bwoher\b", re.IGNORECASE), "origin"),
    (
        re.compile(
            r"\b(?:am|'m|come|comes|came|originally|is|are)\s+from\b|\b(?:komme|kommt|kommst|stamme|stammt|bin|"
            r"ist)\s+(?:\w+\s+){0,2}aus\b",
            re.IGNORECASE,
        ),
        "origin",
    ),
    (
        re.compile(
            r"\bhow old\b|\bwie alt\b|\b(?:i am|i'm|ich bin)\s+\d{1,3}\b(?!\s*(?:%|cm|kg|m\b|minutes|minuten|hours|"
            r"stunden))",
            re.IGNORECASE,
        ),
        "age",
    ),
    (
        re.compile(
            r"\b(?:i am|i'm|ich bin|this is|call me|nenn mich)\s+(?:der |"
            r"die )?[A-ZÄÖÜ][a-zäöüß]+(?:\s[A-ZÄÖÜ][a-zäöüß]+)?(?=\s*(?:[.,!]|$|and\b|und\b))"
        ),
        "name",
    ),
    (re.compile(r"@[\w-]+\.\w"), "mail"),
    (re.compile(r"[$€£]|\b(?:euro|dollar)s?\b", re.IGNORECASE), "price"),
    (
        re.compile(
            r"\b(?:most of all|more than anything|best of all|am liebsten|am besten|like best|like most|best-loved|"
            r"can't get enough|number one|nummer eins)\b",
            re.IGNORECASE,
        ),
        "favourite",
    ),
)
_OLD: Final = re.compile(
    r"\b(?:used to|formerly|früher|ehemals|no longer|nicht mehr|previously|once was|war einmal|second|zweit\w*|"
    r"least|am wenigsten)\b",
    re.IGNORECASE,
)
_CLAUSE: Final = re.compile(
    r"\s*(?:[,;]\s*(?:and|und|but|aber|while|während|whereas)?|\s(?:and|und|but|aber|while|während|whereas))\s+"
    r"(?=(?:my|our|i|i'm|we|the|his|her|their|she|he|it|mein\w*|unser\w*|ich|wir|der|die|das|sein\w*|ihr\w*|sie|er|"
    r"es)\b)",
    re.IGNORECASE,
)
_VERB: Final = re.compile(
    r"\b(?:is|are|was|were|am|'m|'re|ist|sind|war|waren|bin|heiß\w*|called|named|has|have|hat|habe)\b", re.IGNORECASE
)
_FAVOURITE: Final = "lieblings"


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that was said. ``meanings`` is what it speaks of, ``owners`` whose it is besides the speaker's."""

    sentence: Sentence
    role: str
    order: int
    meanings: frozenset[str]
    owners: frozenset[str]
    is_mine: bool
    form: str


@dataclass(frozen=True, slots=True)
class Recalled:
    """A fact that answers a question, and how much of it."""

    fact: Fact
    weight: float


class Memory:
    """What the talk holds, read once."""

    def __init__(self, talk: Talk) -> None:
        self._facts = list(_facts(talk))
        self._rarity = rarities([fact.sentence for fact in self._facts])
        for fact in self._facts:
            for meaning in fact.meanings:
                self._rarity.setdefault(meaning, 1.0) if isinstance(self._rarity, dict) else None

    def answer(self, question: Clause) -> Recalled | None:
        """The fact that answers the question best; None if none does."""
        wanted = _wanted(question)
        if not wanted:
            return None
        owners = _owners(question.words)
        is_mine = any(word.plain in _ME for word in question.words)
        best: Recalled | None = None
        for fact in self._facts:
            weight = self._weight(fact, wanted, owners, is_mine=is_mine)
            if weight >= ENOUGH and (best is None or weight >= best.weight - 1e-9):
                best = Recalled(fact, weight)
        return best

    def _weight(self, fact: Fact, wanted: frozenset[str], owners: frozenset[str], *, is_mine: bool) -> float:
        total = said = 0.0
        for meaning in wanted:
            rarity = self._rarity.get(meaning, 1.5)
            total += rarity
            said += rarity * _says(fact, meaning)
        if said == 0 or not total:
            return 0.0
        weight = said / total
        if (owners or fact.owners) and owners != fact.owners:
            weight *= STRANGER if owners - fact.owners or (is_mine and fact.owners) or not fact.owners & wanted else 1
        if is_mine and not fact.is_mine and fact.role == "user":
            weight *= 0.5
        if not _tells_more(fact, wanted):
            weight *= 0.5
        return weight - QUALIFIED * _qualifiers(fact, wanted)


def told(recalled: Recalled, language: Language) -> str:
    """The fact as an answer."""
    fact = recalled.fact
    return said_to(fact.sentence.text, _language(fact, language)) if fact.role == "user" else fact.sentence.text


def acknowledged(clauses: Sequence[Clause], language: Language) -> str:
    """What somebody told, said back to them."""
    texts = [said_to(clause.text.rstrip(" ,;"), language) for clause in clauses]
    return " ".join(text if text.endswith((".", "!", "?")) else f"{text}." for text in texts)


def _language(fact: Fact, language: Language) -> Language:
    """A sentence is turned in its own language."""
    forms = {word.plain for word in fact.sentence.words}
    if forms & {"ich", "mein", "meine", "mir", "mich", "meinem", "meinen", "meiner", "unser", "unsere", "wir"}:
        return "de"
    return "en" if forms & {"i", "my", "im", "me", "our", "we"} else language


def _facts(talk: Talk) -> Iterator[Fact]:
    order = 0
    for said in talk.before:
        owners: frozenset[str] = frozenset()
        for found in _statements(said.text):
            order += 1
            fact = _fact(found, said.role, order, owners)
            owners = fact.owners
            yield fact
    for text in (
        _grounds(talk.system),
        talk.message.material,
        *(clause.text for clause in talk.message.clauses if not clause.asks),
    ):
        for found in _statements(text):
            order += 1
            yield _fact(
                found,
                "user" if text != talk.message.material and text is not talk.system else "material",
                order,
                frozenset(),
            )


def _grounds(system: str) -> str:
    """Of the instructions, what may be quoted: sentences that tell something and do not instruct."""
    return "\n".join(found.text for found in sentences_of(system) if not _instructs(found))


def _instructs(found: Sentence) -> bool:
    forms = {word.plain for word in found.words}
    first = found.words[0].plain if found.words else ""
    return (
        bool(forms & {"you", "your", "du", "dein", "deine", "sie", "never", "always", "nie", "immer", "do", "must"})
        or is_order(found.text)
        or first in _INSTRUCTING
    )


_INSTRUCTING: Final = named("instructing")


def _statements(text: str) -> Iterator[Sentence]:
    """The sentences that tell something, cut where another one is joined to them."""
    for found in sentences_of(text):
        if found.is_question or len(found.text) > MOST_FACT_CHARS * 4:
            continue
        parts = _CLAUSE.split(found.text)
        whole = (
            [sentence(part) for part in parts]
            if len(parts) > 1 and all(_VERB.search(part) or len(part.split()) >= LEAST_WORDS for part in parts)
            else [found]
        )
        yield from whole


def _fact(found: Sentence, role: str, order: int, before: frozenset[str]) -> Fact:
    meanings = set(_meanings(found.words)) | {meaning for pattern, meaning in _PHRASES if pattern.search(found.text)}
    owners = _owners(found.words)
    forms = {word.plain for word in found.words}
    if not owners and before and forms & _THEY and not forms & _ME:
        owners = before
        meanings |= before
    meanings |= _kinds(found)
    form = f" {' '.join(word.plain for word in found.words)} "
    return Fact(
        found, role, order, frozenset(meanings), owners, bool(forms & (_ME if role == "user" else _YOU | _ME)), form
    )


def _meanings(words: Sequence[Word]) -> Iterator[str]:
    for word in words:
        if word.is_silent:
            continue
        yield word.meaning
        if word.plain.startswith(_FAVOURITE) and len(word.plain) > len(_FAVOURITE):
            yield "favourite"
            yield known(word.plain.removeprefix(_FAVOURITE))[2]


def _kinds(found: Sentence) -> set[str]:
    """What a sentence tells without naming it: a place, a day, a time."""
    kinds: set[str] = set()
    if any(word.is_capital for word in found.words[1:]) and places_of(found.text, sentence(found.text).words):
        kinds |= {"city", "place", "country"}
    if any(sign.isdigit() for sign in found.text):
        kinds |= {"date", "day"} if days_of(found.text) else set()
        kinds |= {"time"} if moments_of(found.text) else set()
        kinds |= {"year"} if years_of(found.text) else set()
    return kinds


def _owners(words: Sequence[Word]) -> frozenset[str]:
    """Whose it is: ``sister`` of ``my sister's``, ``ann`` of ``Ann's``."""
    found = {word.meaning for word in words if word.meaning in OWNERS or word.plain in OWNERS}
    for word, following in pairwise(words):
        if (word.is_capital and not word.is_silent and re.search(r"['\u2019]s?$", word.text)) or (
            word.is_capital
            and word.plain.endswith("s")
            and following.is_capital
            and following.plain.startswith(_FAVOURITE)
        ):
            found.add(word.meaning)
    return frozenset(found)


def _wanted(question: Clause) -> frozenset[str]:
    """What a question asks for."""
    found = {
        meaning
        for word in question.words
        if word.plain not in _NOISE and word.plain not in POLITE
        for meaning in _meanings((word,))
        if not meaning.startswith(_FAVOURITE)
    }
    extra = {meaning for pattern, meaning in _PHRASES if pattern.search(question.text)}
    if "job" in extra:
        found -= {"home", "do"}
    return frozenset(found | extra)


def _says(fact: Fact, meaning: str) -> float:
    """Whether the fact speaks of it: itself, or within a longer word."""
    if meaning in fact.meanings:
        return 1.0
    return COMPOUND if len(meaning) >= LEAST_PART and meaning in fact.form else 0.0


def _tells_more(fact: Fact, wanted: frozenset[str]) -> bool:
    """Whether it says something that the question does not."""
    return any(
        word.meaning not in wanted
        and not word.is_silent
        and not any(meaning in word.plain for meaning in wanted if len(meaning) >= LEAST_PART)
        for word in fact.sentence.words
    ) or bool(re.search(r"\d", fact.sentence.text))


def _qualifiers(fact: Fact, wanted: frozenset[str]) -> int:
    """How many words before the verb the question does not have: ``second`` of ``my second favourite sport is``."""
    verb = _VERB.search(fact.sentence.text)
    limit = fact.sentence.words[0].start + verb.start() if verb and fact.sentence.words else 0
    before = [
        word for word in fact.sentence.words if word.start < limit and not word.is_silent and word.plain not in POLITE
    ]
    strange = [
        word
        for word in before
        if word.meaning not in wanted
        and not any(meaning in word.plain for meaning in wanted if len(meaning) >= LEAST_PART)
    ]
    return min(3, len(strange)) + (2 if _OLD.search(fact.sentence.text) else 0)
