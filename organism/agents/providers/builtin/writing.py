"""Texts for fields that ask for some: sentences of the source that fit the field, titles, key words."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Final

from organism.agents.providers.builtin.fields import Field
from organism.agents.providers.builtin.lexicon import COMMANDS, POLITE
from organism.agents.providers.builtin.ranking import is_order, rarities, summary
from organism.agents.providers.builtin.sources import Source
from organism.agents.providers.builtin.words import Sentence, known

TITLE_WORDS: Final = 8
LEAST_WORDS: Final = 3
SUMMARY_SENTENCES: Final = 3
MOST_KEYWORDS: Final = 6
MOST_SEVERAL: Final = 5

_WRITTEN: Final = frozenset({"text", "summary", "title", "keywords", "query", "other"})
_ASKED: Final = frozenset({"text", "summary", "title", "keywords", "query"})
_CLOSING: Final = 0.3


class Pen:
    """Writes from one source; a sentence is given to one field before it is given to another.

    ``most_chars`` bounds each text.
    """

    def __init__(self, source: Source, most_chars: int | None = None) -> None:
        self._source = source
        self._most = most_chars
        self._used: set[int] = set()

    def written(self, field: Field) -> str | None:
        """The text for a field; None if it asks for something that only the source could say."""
        if field.topic not in _WRITTEN or not self._sentences:
            return None
        if field.topic == "other" and not self._speaks_of(field):
            return None
        if field.topic == "title":
            return self._short(self._title())
        if field.topic == "keywords":
            return self._short(", ".join(self._keywords()))
        if field.topic == "summary":
            return self._short(" ".join(summary(self._sentences, SUMMARY_SENTENCES)))
        found = self._fitting(field)
        return self._short(found.text) if found is not None else None

    def several(self, field: Field) -> list[str]:
        """Several texts, for a list."""
        if field.topic == "keywords" or field.meanings & {"topic", "them", "entit", "term"}:
            return self._keywords()
        if field.topic in _ASKED or self._speaks_of(field):
            return [self._short(text) for text in summary(self._sentences, MOST_SEVERAL)] if self._sentences else []
        return []

    def spare(self) -> list[str]:
        """What may stand in a field that must not be shorter."""
        return [found.text for found in self._sentences[:MOST_SEVERAL]]

    @cached_property
    def _sentences(self) -> list[Sentence]:
        return [found for found in self._source.sentences if not is_order(found.text)]

    def _speaks_of(self, field: Field) -> bool:
        return bool(field.described & self._source.meanings) or bool(field.schema.get("description"))

    def _fitting(self, field: Field) -> Sentence | None:
        """The sentence that says most of what the field is about, best one that no field has yet."""
        rarity = rarities(self._sentences)
        wanted = field.described

        def fit(found: Sentence) -> float:
            said = {word.meaning for word in found.content}
            closing = _CLOSING if found is self._sentences[-1] else 0.0
            score = (
                sum(rarity.get(meaning, 0.0) for meaning in said & wanted) + min(len(said), 12) * 0.01 - closing * 0.01
            )
            return score - (100 if found.start in self._used else 0)

        best = max(self._sentences, key=fit)
        self._used.add(best.start)
        return best

    def _title(self) -> str:
        """The beginning of the first sentence that says enough."""
        first = next((found for found in self._sentences if len(found.content) >= LEAST_WORDS), self._sentences[0])
        words = first.text.split()
        while len(words) > 1 and known(words[0].strip(",:"))[0] in POLITE | COMMANDS:
            words = words[1:]
        cut = " ".join(words[:TITLE_WORDS]).strip(" .,;:!?")
        return cut[:1].upper() + cut[1:]

    def _keywords(self) -> list[str]:
        """The words that the text says most often; names and long words first."""
        words = [word for found in self._sentences for word in found.content if word.plain not in COMMANDS | POLITE]
        counts = Counter(word.meaning for word in words if not word.text.isdigit())
        first: dict[str, str] = {}
        for word in words:
            first.setdefault(word.meaning, word.text)
        ranked = sorted(
            counts,
            key=lambda meaning: (
                -counts[meaning] - 0.5 * first[meaning][:1].isupper(),
                -len(first[meaning]),
                first[meaning],
            ),
        )
        return [first[meaning] for meaning in ranked[:MOST_KEYWORDS]]

    def _short(self, text: str) -> str:
        if self._most is None or len(text) <= self._most:
            return text
        return text[: max(1, self._most)].rsplit(" ", 1)[0]
