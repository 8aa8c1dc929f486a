"""Decides what the model answers: the calls it makes, or the text it gives."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from organism.agents.providers.builtin import phrases
from organism.agents.providers.builtin.asking import Clause
from organism.agents.providers.builtin.filling import fill
from organism.agents.providers.builtin.given import given
from organism.agents.providers.builtin.offers import Offer
from organism.agents.providers.builtin.planning import plan
from organism.agents.providers.builtin.recalling import Memory, acknowledged, told
from organism.agents.providers.builtin.schemas import schema_of
from organism.agents.providers.builtin.setting import Planned, Setting
from organism.agents.providers.builtin.sources import Source
from organism.agents.providers.builtin.sum_calls import is_calculation
from organism.agents.providers.builtin.summing_up import asks_summary, summed_up
from organism.agents.providers.builtin.sums import sums_of
from organism.agents.providers.builtin.talking import Talk
from organism.agents.providers.builtin.telling import tell
from organism.agents.providers.builtin.words import Language
from organism.agents.providers.builtin.writing import Pen
from organism.agents.providers.counting import CHARS_PER_TOKEN
from organism.model.completion import ModelRequest

_SHORTER: Final = (400, 120, 40, 12)
_SELF: Final = re.compile(
    r"\b(?:who|what) are you\b|\bwhat can you do\b|\bwhich model\b|\bare you an? (?:ai|llm|model|bot|human|language)|"
    r"\bwer bist du\b|\bwas bist du\b|\bwas kannst du\b|\bwelches modell\b|\bbist du eine? (?:ki|mensch|modell|bot)|"
    r"\byour name\b|\bwie hei(?:ß|ss)t du\b|\bhow can you help\b|\bhow do you work\b|\bwie funktionierst du\b",
    re.IGNORECASE,
)
_HELLO: Final = re.compile(
    r"\s*(?:hi|hello|hey|hallo|servus|moin|good (?:morning|evening|afternoon|day)|guten (?:tag|morgen|abend)|"
    r"grüß gott)\b[^?]{0,30}$",
    re.IGNORECASE,
)
_THANKS: Final = re.compile(r"\s*(?:thanks?|thank you|thx|danke\w*|vielen dank|cheers)\b[^?]{0,40}$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model answers: calls, or a text."""

    text: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()


def reply(request: ModelRequest) -> Reply:
    """The answer to a request; the same for the same request."""
    return _Answer(request).reply()


class _Answer:
    """One answer in the making."""

    def __init__(self, request: ModelRequest) -> None:
        self._request = request
        self._talk = Talk(request)
        self._language: Language = self._talk.language or "en"
        self._offers = tuple(Offer(spec) for spec in request.tools)

    def reply(self) -> Reply:
        schema = schema_of(self._request.response_format)
        if not self._talk.results and self._planned:
            return Reply(calls=tuple((each.offer.spec.name, each.arguments) for each in self._planned))
        if schema is not None:
            return Reply(self._json(schema))
        return Reply(self._told() if self._talk.results else self._text())

    @cached_property
    def _memory(self) -> Memory:
        return Memory(self._talk)

    @cached_property
    def _planned(self) -> Sequence[Planned]:
        talk = self._talk
        if not self._offers:
            return ()
        setting = Setting(
            self._offers,
            talk.language,
            talk.system,
            talk.earlier,
            lambda clause: self._memory.answer(clause) is not None,
        )
        return plan(talk.message, setting)

    def _json(self, schema: Any) -> str:
        """JSON of the schema; where it has to be short, its free texts are."""
        named, plain = given(self._talk)
        source, quoted = (Source(text, self._talk.language) for text in (named, plain))
        most = self._request.max_tokens
        text = json.dumps(fill(schema, source, Pen(quoted)), ensure_ascii=False)
        for shorter in _SHORTER if most is not None else ():
            if most is None or len(text) <= most * CHARS_PER_TOKEN:
                break
            text = json.dumps(fill(schema, source, Pen(quoted, shorter)), ensure_ascii=False)
        return text

    def _told(self) -> str:
        """What the tools answered; and what of the message they were not asked."""
        called = {id(each.clause) for each in self._planned}
        rest = [clause for clause in self._talk.message.clauses if clause.asks and id(clause) not in called]
        recalled = [text for clause in rest if (text := self._recalled(clause))] if self._planned else []
        return " ".join((tell(self._talk, self._planned, self._language), *recalled)).strip()

    def _text(self) -> str:
        talk, language = self._talk, self._language
        if asks_summary(talk):
            most = self._request.max_tokens
            found = summed_up(talk, None if most is None else most * CHARS_PER_TOKEN)
            if found:
                return found
        asking = [clause for clause in talk.message.clauses if clause.asks]
        polite = self._polite(talk.message.text)
        if polite is not None:
            return polite
        if not asking:
            return phrases.noted(acknowledged(talk.message.clauses, language), language)
        answers = [text for clause in asking if (text := self._recalled(clause))]
        if answers:
            return " ".join(dict.fromkeys(answers))
        is_sum = any(self._is_sum(clause) for clause in asking)
        return phrases.cannot_count(language) if is_sum else phrases.unknown(language, self._names)

    def _polite(self, text: str) -> str | None:
        """What is answered to a greeting, to thanks, and to who asks for the model itself."""
        if _SELF.search(text):
            return phrases.myself(self._language, self._names)
        if _THANKS.fullmatch(text):
            return phrases.welcome(self._language)
        return phrases.hello(self._language) if _HELLO.fullmatch(text) or not text.strip() else None

    @property
    def _names(self) -> list[str]:
        return [offer.spec.name for offer in self._offers]

    def _recalled(self, clause: Clause) -> str | None:
        found = self._memory.answer(clause)
        if found is None:
            return None
        text = told(found, self._language)
        return text if text.endswith((".", "!", "?", "…")) else f"{text.rstrip(' ,;:')}."

    def _is_sum(self, clause: Clause) -> bool:
        sums = sums_of(clause.bare, self._talk.language)
        return bool(sums) and is_calculation(clause, sums)
