"""Summaries: the sentences of a text that matter most, as many as are asked for."""

from __future__ import annotations

import math
import re
from typing import Final

from organism.agents.providers.builtin.asking import Clause
from organism.agents.providers.builtin.lexicon import named
from organism.agents.providers.builtin.numbers import numbers_of
from organism.agents.providers.builtin.ranking import is_order, summary
from organism.agents.providers.builtin.talking import Talk
from organism.agents.providers.builtin.words import Sentence, known, plain, sentences_of, words_of

SHARE: Final = 0.2
"""This share of the sentences is kept if nothing else is asked for."""
TALK_SHARE: Final = 0.6
"""Of a talk more: each of its sentences may be a fact of its own."""
LEAST: Final = 3
MOST: Final = 12
TALK_MOST: Final = 60
SHORT_CHARS: Final = 20
LONG_CHARS: Final = 280

_ASKED: Final = named("recap")
_DECIDING: Final = named("deciding")
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
    """Whether a summary is asked for: in the message, or in the instructions if the message is a text to sum up."""
    asking = [clause for clause in talk.message.clauses if clause.asks]
    if any(_asks(clause) for clause in asking):
        return True
    is_told = any(known(word.text)[2] == "summarise" for word in words_of(talk.system[-4000:]))
    return is_told and (len(talk.message.text) > LONG_CHARS or _is_talk(talk.message.text))


def summed_up(talk: Talk, most_chars: int | None = None) -> str:
    """The summary: of the material that the message brings, else of the message, else of the talk before it."""
    text, is_talk = _text(talk)
    found = _worthy(text)
    asking = f"{talk.message.text[:400]} {talk.message.text[-200:]}\n{talk.system[-2000:]}"
    share, limit = (TALK_SHARE, TALK_MOST) if is_talk else (SHARE, MOST)
    most = _count(asking) or (1 if talk.is_brief else max(LEAST, min(limit, math.ceil(len(found) * share))))
    is_list = bool(_BULLETS.search(talk.message.text[:400]))
    while found:
        kept = [_ended(each) for each in summary(found, most, _density)]
        told = "\n".join(f"- {each}" for each in kept) if is_list else " ".join(kept)
        if most_chars is None or len(told) <= most_chars or most == 1:
            return told
        most = max(1, min(most - 1, most * most_chars // len(told)))
    return ""


def _asks(clause: Clause) -> bool:
    says = any(known(word.text)[2] == "summarise" or word.plain in _ASKED for word in clause.words)
    return says or _POINTS.search(clause.text) is not None


def _is_talk(text: str) -> bool:
    """Whether the text is what several said in turn."""
    return len(_SPEAKER.findall(text[:20_000])) > 1


def _text(talk: Talk) -> tuple[str, bool]:
    """What is to be summed up, and whether it is a talk."""
    material = talk.message.material
    if len(material) > SHORT_CHARS:
        return material, _is_talk(material)
    own = talk.message.text
    for clause in talk.message.clauses:
        own = own.replace(clause.text, "", 1) if clause.asks and _asks(clause) else own
    if len(own) > LONG_CHARS or not talk.before or _is_talk(own):
        return own, _is_talk(own)
    return "\n\n".join(said.text for said in talk.before if said.role != "tool"), True


def _worthy(text: str) -> list[Sentence]:
    """The sentences that tell something: no greetings, no thanks, no orders, who speaks left out."""
    found = sentences_of(_SPEAKER.sub("\n\n", text))
    return [each for each in found if not _EMPTY.fullmatch(each.text.rstrip(".! ")) and not is_order(each.text)]


def _density(found: Sentence) -> float:
    """Names, numbers, decisions and open questions make a sentence weigh more."""
    names = sum(1 for word in found.words[1:] if word.is_capital and not word.is_silent)
    numbers = sum(sign.isdigit() for sign in found.text)
    decides = any(word.plain in _DECIDING for word in found.words)
    return 1.0 + 0.15 * min(3, names) + 0.1 * min(3, numbers) + 0.3 * decides + 0.2 * found.is_question


def _ended(text: str) -> str:
    """The sentence in one line, with a sign at its end."""
    line = " ".join(text.split()).lstrip("-*• ")
    return line if line.endswith((".", "!", "?", "…", ":")) else f"{line}."


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
