"""Texts for the arguments of a tool that are the request's own: its question, its matter, what it quotes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from organism.agents.providers.builtin.asking import Clause
from organism.agents.providers.builtin.evidence import Taken, find
from organism.agents.providers.builtin.fields import Field
from organism.agents.providers.builtin.finders import all_in
from organism.agents.providers.builtin.matter import key_of, matter, names_in, pair, without_times
from organism.agents.providers.builtin.offers import Offer
from organism.agents.providers.builtin.sources import Source
from organism.agents.providers.builtin.words import Language, known

_SAYING: Final = re.compile(
    r"(?::\s+|\b(?:saying|that says|says|telling \w+|with (?:the )?(?:text|message|body)|mit dem (?:text|inhalt)|"
    r"mit der nachricht|, dass|that)\s+)(.+)$",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Wish:
    """A tool that fits a request.

    ``wide`` is the whole message and what else may name ids, ``material`` the text that the message brings along.
    """

    offer: Offer
    clause: Clause
    wide: str
    language: Language | None
    material: str = ""


class ToolTexts:
    """The texts of one wish."""

    def __init__(self, wish: Wish, source: Source, taken: Taken) -> None:
        self._offer = wish.offer
        self._clause = wish.clause
        self._material = wish.material
        self._source = source
        self._taken = taken

    def text(self, field: Field) -> str | None:
        """Texts that are the request's own: its question, its matter, a key and its value, what it quotes."""
        is_value = field.topic == "text" and any("key" in other.meanings for other in self._offer.required)
        if is_value or (field.topic == "id" and field.meanings & {"key", "nam"}):
            return self._keyed(field)
        subject = self.subject
        quote = self._quote(field) if field.topic in ("title", "text") else None
        if quote is not None:
            return quote
        by_topic: Mapping[str, Callable[[Field, str], str | None]] = {
            "query": self._query,
            "title": self._title,
            "text": self._saying,
            "person": self._person,
            "other": self._other,
        }
        reader = by_topic.get(field.topic)
        return reader(field, subject) if reader is not None else None

    @cached_property
    def subject(self) -> str:
        """What the request is about, without the days and times at its end that have fields of their own."""
        subject = matter(self._clause, self._offer.names)
        has_days = any(field.topic in ("date", "time", "datetime") for field in self._offer.fields)
        return without_times(subject, self._source.language) if has_days else subject

    def _keyed(self, field: Field) -> str | None:
        has_value = any(other.topic == "text" for other in self._offer.required)
        found = pair(self._clause) if has_value else None
        if field.topic == "id":
            return found[0] if found else key_of(self._clause)
        return found[1] if found else None

    def _query(self, field: Field, subject: str) -> str | None:
        is_search = bool(self._offer.names & {"search", "encyclopedia"})
        is_asked = bool({"question", "frage"} & set(field.forms)) or (self._clause.mood == "question" and not is_search)
        return self._clause.text if is_asked else subject or None

    def _title(self, _field: Field, subject: str) -> str | None:
        capital = [name for name in names_in(self._clause) if known(name)[2] not in self._offer.names]
        return max(capital, key=len) if capital else subject or None

    def _person(self, field: Field, subject: str) -> str | None:
        found = find(field, self._source, self._taken)
        capital = names_in(self._clause)
        return found if isinstance(found, str) else capital[0] if capital else subject or None

    def _saying(self, _field: Field, subject: str) -> str | None:
        said = _SAYING.search(self._clause.text)
        return said.group(1).strip() if said else subject or self._material or None

    def _other(self, field: Field, subject: str) -> str | None:
        """The only text that the tool needs is what the request is about."""
        if len([other for other in self._offer.required if other.kind == "string"]) != 1:
            return None
        found = find(field, self._source, self._taken)
        return found if isinstance(found, str) else subject or None

    def _quote(self, field: Field) -> str | None:
        """What stands in quotes: behind the field's own word if it is there, else the first that no other field has."""
        for quote in all_in(self._source, "quote"):
            before = self._clause.text.partition(quote)[0].rstrip(" \"'“„`:").split()[-2:]
            if any(known(word)[0] in field.forms for word in before):
                self._taken.values.add(("quote", quote))
                return quote
        others = [other for other in self._offer.required if other is not field and other.topic in ("title", "text")]
        if others and field.topic == "title":
            return None
        return self._taken.next("quote", all_in(self._source, "quote"))
