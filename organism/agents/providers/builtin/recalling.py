"""Giving back what was said: the sentence of the talk that answers a question, said to whoever asks.

What is said of somebody's sister is no answer to a question about themselves. Of sentences that answer as well, the
newest counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from organism.agents.providers.builtin.asking import Clause
from organism.agents.providers.builtin.facts import FAVOURITE, IDIOMS, ME, Fact, facts_of, meanings_in, owners_in
from organism.agents.providers.builtin.lexicon import POLITE, named
from organism.agents.providers.builtin.persons import said_to
from organism.agents.providers.builtin.ranking import rarities
from organism.agents.providers.builtin.talking import Talk
from organism.agents.providers.builtin.words import Language, Word

ENOUGH: Final = 0.55
"""So much of what a question asks must a sentence say."""
COMPOUND: Final = 0.8
"""How much it counts that a word stands within a longer one."""
STRANGER: Final = 0.25
"""What remains of a sentence's weight if it speaks of somebody else."""
UNSAID: Final = 0.5
"""What remains if it tells nothing that was not asked."""
QUALIFIED: Final = 0.08
MENTIONED: Final = 0.8
"""What remains if it only mentions whom it is asked of."""
IMPERSONAL: Final = 0.85
"""What remains if it does not speak of the user, who asks of themselves."""
ELSEWHERE: Final = 0.85
"""What remains if it does not say where or when, as it is asked."""
OF_KIND: Final = 0.4
UNHEARD: Final = 1.5
LEAST_PART: Final = 4
"""A shorter word stands by chance within many others."""

_NOISE: Final = named("noise")
_WHO: Final = frozenset({"who", "wer"})
_ASKED: Final = (
    (
        named("where"),
        re.compile(r"\b(?:in|at|on|under|near|behind|to|bei|beim|am|im|an|unter|auf|hinter|neben|nach)\s+(?!\d)"),
    ),
    (
        named("when"),
        re.compile(
            r"\d|\b\w+(?:day|tag|woch|abend)s?\b|\b(?:noon|midnight|morning|evening|night|mittag)", re.IGNORECASE
        ),
    ),
)
_BEST: Final = frozenset({"best", "most", "besten", "meisten"})
_KINDS_OF: Final = named("kinds_of")
_OLD: Final = re.compile(
    r"\b(?:used to|formerly|früher|ehemals|no longer|nicht mehr|previously|once was|war einmal|second|zweit\w*|"
    r"least|am wenigsten)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Recalled:
    """A fact that answers a question, and how much of it."""

    fact: Fact
    weight: float


class Memory:
    """What the talk holds, read once."""

    def __init__(self, talk: Talk) -> None:
        self._facts = facts_of(talk)
        self._rarity = rarities([fact.sentence for fact in self._facts])

    def answer(self, question: Clause) -> Recalled | None:
        """The fact that answers the question best; None if none does."""
        wanted = _wanted(question)
        owners = owners_in(question.words)
        forms = frozenset(word.plain for word in question.words)
        best: Recalled | None = None
        for fact in self._facts if wanted else ():
            weight = self._weight(fact, wanted, owners, forms)
            if weight >= ENOUGH and (best is None or weight >= best.weight - 1e-9):
                best = Recalled(fact, weight)
        return best

    def _weight(self, fact: Fact, wanted: Mapping[str, float], owners: frozenset[str], forms: frozenset[str]) -> float:
        """How much of what is wanted the fact says, less where it speaks of others or of more."""
        is_mine = not owners and bool(forms & ME)
        total = said = 0.0
        for meaning, weighs in wanted.items():
            rarity = self._rarity.get(meaning, UNHEARD) * weighs
            total += rarity
            said += rarity * _says(fact, meaning)
        if said == 0:
            return 0.0
        weight = said / total
        missing = owners - fact.owners
        if forms & _WHO and not owners:
            pass  # whose it is, is what was asked
        elif missing - fact.meanings or (fact.owners - owners and (is_mine or not fact.owners & set(wanted))):
            weight *= STRANGER
        elif missing:
            weight *= MENTIONED
        if any(forms & wanted_by and not pattern.search(fact.sentence.text) for wanted_by, pattern in _ASKED):
            weight *= ELSEWHERE
        if is_mine and not fact.is_mine and fact.role == "user":
            weight *= IMPERSONAL
        if not _tells_more(fact, wanted):
            weight *= UNSAID
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
    mine = {word.plain for word in fact.sentence.words} & ME
    german = {form for form in mine if form.startswith(("ich", "mein", "mi", "un", "wir")) and form != "mine"}
    return "de" if german else "en" if mine else language


def _wanted(question: Clause) -> Mapping[str, float]:
    """What a question asks for, and how much each weighs; what only says of what kind the answer is weighs less."""
    found: dict[str, float] = {}
    kind = _kind(question)
    for word in question.words:
        if word.plain not in _NOISE and word.plain not in POLITE:
            weight = OF_KIND if word is kind else 1.0
            found |= {meaning: weight for meaning in meanings_in((word,)) if not meaning.startswith(FAVOURITE)}
    extra = {meaning: 1.0 for pattern, meaning in IDIOMS if pattern.search(question.text)}
    for meaning in _implied(found, extra, question):
        found.pop(meaning, None)
    return found | extra


def _implied(found: Mapping[str, float], extra: Mapping[str, float], question: Clause) -> set[str]:
    """What goes without saying: the address of an e-mail address, the living of who asks for a job."""
    gone = {"home"} if {"mail", "page"} & set(found) else set()
    gone |= {"home", "do"} if "job" in extra else set()
    if "favourite" in extra:
        gone |= {word.meaning for word in question.words if word.plain in _BEST}
    return gone


def _kind(question: Clause) -> Word | None:
    """The word behind ``which``, if more than it says what is asked for: ``car`` of ``which car do I drive``."""
    content = [word for word in question.words if not word.is_silent and word.plain not in _NOISE | _KINDS_OF]
    for before, word in pairwise(question.words):
        if before.plain in _KINDS_OF and not word.is_silent and len(content) > 1:
            return word
    return None


def _says(fact: Fact, meaning: str) -> float:
    """Whether the fact speaks of it: itself, or within a longer word, a short one at the end of it."""
    if meaning in fact.meanings:
        return 1.0
    is_end = len(meaning) == LEAST_PART - 1 and f"{meaning} " in fact.form
    return COMPOUND if is_end or (len(meaning) >= LEAST_PART and meaning in fact.form) else 0.0


def _is_known(word: Word, wanted: Mapping[str, float]) -> bool:
    """Whether a word says what is asked for, or a part of it."""
    return word.meaning in wanted or any(part in word.plain for part in wanted if len(part) >= LEAST_PART)


def _tells_more(fact: Fact, wanted: Mapping[str, float]) -> bool:
    """Whether it says something that the question does not."""
    words = fact.sentence.words
    has_more = any(not word.is_silent and not _is_known(word, wanted) for word in words)
    has_more = has_more or any(word.is_silent and word.is_capital and word.plain != "i" for word in words[1:])
    return has_more or any(sign.isdigit() for sign in fact.sentence.text)


def _qualifiers(fact: Fact, wanted: Mapping[str, float]) -> int:
    """How many words before the verb the question does not have: ``second`` of ``my second favourite sport is``."""
    before = [word for word in fact.subject if not word.is_silent and word.plain not in POLITE | _NOISE]
    strange = [word for word in before if not _is_known(word, wanted)]
    return min(3, len(strange)) + (2 if _OLD.search(fact.sentence.text) else 0)
