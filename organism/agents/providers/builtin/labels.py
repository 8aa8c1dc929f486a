"""What speaks for a label: the words that texts of its kind have, in both languages, as stems or plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from organism.agents.providers.builtin.lexicon import named, rows
from organism.agents.providers.builtin.words import known

NEUTRAL: Final = named("undecided")
"""What is chosen where nothing speaks for anything."""
SURE: Final = ("very_low", "low", "medium", "high", "very_high")


OPPOSITES: Final[Mapping[str, str]] = {
    known(one)[2]: known(other)[2]
    for pair in (("low", "high"), ("niedrig", "hoch"), ("positive", "negative"), ("positiv", "negativ"))
    for one, other in (pair, pair[::-1])
}
"""What a denied word of one label speaks for: ``not urgent``."""


def _speaking() -> dict[str, frozenset[str]]:
    made: dict[str, frozenset[str]] = {}
    for labels, words in rows("labels"):
        meanings = frozenset(known(word)[2] for word in words.split()) | frozenset(words.split())
        for label in labels.split():
            made[known(label)[2]] = made.get(known(label)[2], frozenset()) | meanings
    return made


SPEAKING: Final[Mapping[str, frozenset[str]]] = _speaking()
"""By the meaning of a label's word: what speaks for it."""
