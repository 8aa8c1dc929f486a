"""Summaries: the sentences of a text that matter most, as many as are asked for."""

from __future__ import annotations

import re
from typing import Final

from organism.agents.providers.builtin.lexicon import named
from organism.agents.providers.builtin.numbers import numbers_of
from organism.agents.providers.builtin.ranking import is_order, summary
from organism.agents.providers.builtin.talking import Talk
from organism.agents.providers.builtin.words import Sentence, known, plain, sentences_of

SHARE: Final = 5
"""One sentence in so many is kept if nothing else is asked for."""
LEAST: Final = 3
MOST: Final = 12
LONG_CHARS: Final = 280

_ASKED: Final = named("recap")
_POINTS: Final = re.compile(
    r"\b(?:key|main|most important|wichtigste\w*)\s+(?:points?|facts?|takeaways?|punkte?|aussagen|fakten)\b",
    re.IGNORECASE,
)
_COUNT: Final = re.compile(
    r"(?P<count>[\w-]+)\s+(?:short |kurze\w* )?(?P<unit>sentences?|bullets?|bullet points?|points?|lines?|sätzen?|"
    r"satz|punkte\w*|stichpunkte\w*|zeilen?)\b",
    re.IGNORECASE,
)
_BULLETS: Final = re.compile(
    r"\b(?:bullets?|bullet points?|points|list|stichpunkte\w*|stichworte\w*|liste|punkten)\b", re.IGNORECASE
)
_SPEAKER: Final = re.compile(
    r"^\s*(?:[-*]\s*)?\[?(?:user|assistant|system|tool|human|ai|nutzer|assistent)\]?\s*(?:\([^)]*\))?\s*[:>]\s*",
    re.IGNORECASE | re.MULTILINE,
)
_EMPTY: Final = re.compile(
    r"(?:hi|hello|hey|hallo|guten (?:tag|morgen|abend)|thanks?|thank you|danke\w*|ok(?:ay)?|sure|great|perfect|"
    r"noted|bye|"
    r"tschüss|gern\w*|you're welcome|no problem|kein problem|alles klar|good (?:morning|evening)|super|cool|"
    r"nice)\b.{0,24}",
    re.IGNORECASE,
)


def asks_summary(talk: Talk) -> bool:
    """Whether a summary is asked for: in the message, or in the instructions if the message itself asks nothing."""
    asking = [word for clause in talk.message.clauses if clause.asks for word in clause.words]
    if any(known(word.text)[2] == "summarise" or word.plain in _ASKED for word in asking):
        return True
    if any(_POINTS.search(clause.text) for clause in talk.message.clauses if clause.asks):
        return True
    is_told = any(known(word)[2] == "summarise" for word in plain(talk.system).split())
    return (
        is_told
        and not any(clause.mood == "question" for clause in talk.message.clauses[-1:])
        and len(talk.message.text) > LONG_CHARS
    )


def summed_up(talk: Talk) -> str:
    """The summary: of the material that the message brings, else of the message, else of the talk."""
    text = _text(talk)
    found = _worthy(text)
    if not found:
        return ""
    asking = f"{talk.message.text[:400]} {talk.message.text[-200:]}\n{talk.system[-2000:]}"
    most = _count(asking) or (1 if talk.is_brief else max(LEAST, min(MOST, len(found) // SHARE)))
    kept = summary(found, most)
    return "\n".join(f"- {each}" for each in kept) if _BULLETS.search(talk.message.text[:400]) else " ".join(kept)


def _text(talk: Talk) -> str:
    if len(talk.message.material) > 20:  # noqa: PLR2004 - shorter is nothing to sum up
        return talk.message.material
    told = " ".join(clause.text for clause in talk.message.clauses if not clause.asks)
    is_own = len(told) > LONG_CHARS or not talk.before
    return told if is_own else "\n".join(said.text for said in talk.before)


def _worthy(text: str) -> list[Sentence]:
    """The sentences that tell something: no greetings, no thanks, no orders, who speaks left out."""
    found = sentences_of(_SPEAKER.sub("\n\n", text))
    return [each for each in found if not _EMPTY.fullmatch(each.text.rstrip(".! ")) and not is_order(each.text)]


def _count(text: str) -> int:
    """How many sentences are asked for; 0 if it is not said."""
    match = _COUNT.search(text)
    if match is None:
        return 0
    numbers = numbers_of(
        match.group("count"),
        "de" if plain(match.group("unit")).startswith(("satz", "punkt", "zeile", "stich")) else "en",
    )
    one = plain(match.group("count")) in {"one", "a", "single", "einem", "einen", "ein"}
    return min(MOST * 2, int(numbers[0].value)) if numbers else 1 if one else 0
