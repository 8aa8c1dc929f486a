"""Takes texts apart: words, language, sentences, sums, places."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from importlib.resources import files
from itertools import chain
from typing import Any, Final

from organism.agents.conversation import unfenced
from organism.agents.providers.messages import text_of
from organism.agents.providers.offline import words
from organism.model.arithmetic import is_arithmetic
from organism.model.completion import ChatMessage

PART_CHARS: Final = 4
_SENTENCE_END: Final = re.compile(r"(?<=[.!?…])\s+(?=[\"„“(]?[A-ZÄÖÜ\d])|\n+")
_NUMBER: Final = r"\d+(?:[.,_]\d+)*"
_SUM: Final = re.compile(rf"(?:(?:{_NUMBER}|%\s*of\b|[-+*/^%()×÷−]|\bsqrt\b)\s*)+")


def plain(message: ChatMessage) -> str:
    """The text of a message, without the fence around text of others."""
    text = text_of(message.get("content"))
    return fence.text if (fence := unfenced(text.strip())) else text


def parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def words_of(text: str) -> list[str]:
    return re.findall(r"[\w']+", text.lower())


def matter(text: str) -> set[str]:
    """The words that say what a text is about."""
    return {word for word in words_of(text) if word not in words.SILENT and len(word) > 1}


def likeness(word: str, other: str) -> float:
    """1 for the same word, less where one begins like the other or is a part of it: ``sport``, ``Lieblingssport``."""
    if word == other or min(len(word), len(other)) < PART_CHARS:
        return float(word == other)
    return 0.9 if word.startswith(other) or other.startswith(word) else 0.8 if word in other or other in word else 0


def language_of(texts: Iterable[str]) -> str:
    """``en`` or ``de``: that of the first text that shows one."""
    for said in map(words_of, texts):
        german, english = (sum(word in words.LANGUAGES[name] for word in said) for name in ("de", "en"))
        if german != english:
            return "de" if german > english else "en"
    return "en"


def sentences_of(text: str) -> list[str]:
    return [found for each in _SENTENCE_END.split(text) if (found := each.strip(" \t-*"))]


def best_sentence(question: str, texts: Iterable[str]) -> str:
    """The newest sentence that says most of what is asked, and at least half of it; empty where none does."""
    asked, best, found = matter(question[:500]), 0.5, ""
    for sentence in chain.from_iterable(map(sentences_of, texts)):
        known = matter(sentence)
        share = sum(any(likeness(word, other) for other in known) for word in asked) / max(1, len(asked))
        if share >= best and known - asked and not sentence.endswith("?"):
            best, found = share, sentence
    return found


def key_sentences(text: str, most: int) -> list[str]:
    """The sentences whose words are the most frequent ones of the text, in its order; the first counts more."""
    sentences = list(dict.fromkeys(sentences_of(text)))
    count = Counter(word for sentence in sentences for word in matter(sentence))
    weights = [sum(count[word] - 1 for word in found) / (len(found) + 3) for found in map(matter, sentences)]
    best = sorted(range(len(sentences)), key=lambda at: weights[at] + (at == 0) / 2, reverse=True)
    return [sentences[at] for at in sorted(best[:most])]


def sums_of(text: str, language: str) -> list[str]:
    """The sums that a clause asks for, as expressions that the calculator takes."""
    written, found = text[:500], list[str]()
    for spoken, sign in words.SPOKEN.items():
        written = re.sub(spoken, sign, written, flags=re.IGNORECASE)
    for run in _SUM.finditer(written):
        is_asked = all(word in words.ASKS_SUM or word[0].isdigit() for word in words_of(written[: run.start()]))
        expression = re.sub(_NUMBER, lambda number: _plain_number(number.group(), language), run.group())
        expression = re.sub(r"\s+", " ", expression).lstrip(" +*/%").rstrip(" +-*/")
        if is_asked and re.search(r"\d.*[-+*/^×÷−%].*\d|sqrt", expression) and is_arithmetic(expression):
            found.append(expression)
    return found


def _plain_number(text: str, language: str) -> str:
    """A number as computers write it: separators of thousands go, and a decimal comma becomes a point."""
    thousands = "." if language == "de" else ","
    is_grouped = re.fullmatch(rf"\d{{1,3}}(?:\{thousands}\d{{3}})+(?:[.,]\d+)?", text)
    return (text.replace(thousands, "") if is_grouped else text).replace(",", ".")


def zones_of(text: str) -> list[str]:
    """The time zones of the places that the text names, in its order."""
    found, parts = list[str](), re.findall(r"\w+", text)
    for at, part in enumerate(parts):
        is_place = part[0].isupper() or parts[at - 1].lower() in ("in", "at", "for", "für")
        places = (" ".join(parts[at : at + length]).lower() for length in (3, 2, 1) if is_place)
        found += [_places()[place] for place in places if place in _places()][:1]
    return list(dict.fromkeys(found))


@lru_cache(maxsize=1)
def _places() -> dict[str, str]:
    """All time zones by the place that their name ends with."""
    names = files("tzdata").joinpath("zones").read_text("utf-8").split()
    return {name.rpartition("/")[2].replace("_", " ").lower(): name for name in names} | words.ZONES
