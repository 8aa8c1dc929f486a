"""Texts for the arguments of a tool that are the request's own: its question, its matter, what it quotes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from organism.agents.providers.builtin.asking import Clause, clause_of, quoted
from organism.agents.providers.builtin.days import is_time_word
from organism.agents.providers.builtin.evidence import ENDS, find, is_end_of_way
from organism.agents.providers.builtin.fields import Field
from organism.agents.providers.builtin.finders import all_in
from organism.agents.providers.builtin.labelling import Taken
from organism.agents.providers.builtin.lexicon import MEANINGS, named
from organism.agents.providers.builtin.matter import is_request_frame, key_of, matter, names_in, pair, without_times
from organism.agents.providers.builtin.offers import Offer
from organism.agents.providers.builtin.slots import assigned, slots_of, without_label
from organism.agents.providers.builtin.sources import Source
from organism.agents.providers.builtin.words import Language, known

MOST_TITLE_WORDS: Final = 6
MOST_BEFORE: Final = 200

_UNITS: Final = named("units")
_QUOTED: Final = frozenset({"title", "text", "summary", "other"})
"""Fields that take what stands in quotes."""
_FREE: Final = frozenset({"other", "title", "text", "person", "place", "firm"})
"""Fields that take a part of the request as it stands there."""
_TELLING: Final = frozenset({"id", "path", "host", "ip", "symbol", "key", "email", "url"})
"""Kinds of texts that are known by their looks."""
_OWNER: Final = re.compile(r"(['\u2019]s?)\s+")
_SPOKEN_OF: Final = re.compile(r"\b(?:about|on|über)\s+([^\n,.;:?!]{2,80})[,.;:?!]", re.IGNORECASE)
_TO: Final = frozenset({"to", "an", "for", "fur", "whom", "wem"})
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
        self._wide = wish.wide
        self._source = source
        self._taken = taken

    def text(self, field: Field) -> str | None:
        """Texts that are the request's own: its question, its matter, a key and its value, what it quotes."""
        is_value = field.topic == "text" and any("key" in other.meanings for other in self._offer.required)
        if is_value or field.topic == "key" or (field.topic == "id" and "nam" in field.meanings):
            return self._keyed(field)
        subject = self.subject
        goes_to = field.topic == "other" and bool(_TO.intersection(field.forms))
        quote = self._quote(field) if field.topic in _QUOTED and not goes_to else None
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

    def part(self, field: Field) -> str | None:
        """The part of the request that is the field's, by what leads to it."""
        return self._parts.get(field.name)

    def before(self, field: Field) -> str | None:
        """The part of what was said before the request: ``another word for odd? I need synonyms``."""
        told = clause_of(self._wide.partition(self._clause.text)[0][-MOST_BEFORE:])
        slots = slots_of(told, Source(told.text, self._source.language)) if told.words else []
        quote = next(iter(quoted(told.text)), None)
        return quote or assigned([field], slots, self._offer.names | self._offer.about).get(field.name)

    @cached_property
    def _parts(self) -> Mapping[str, str]:
        required = [field for field in self._offer.required if field.kind == "string" and "enum" not in field.schema]
        topics = [field.topic for field in required if field.topic in _TELLING]
        typed = {text for topic in topics for text in all_in(self._source, topic)[: topics.count(topic)]}
        if any(field.topic in ("place", "zone") for field in required):
            typed |= {place.name for place in self._source.places}
        joints = self._offer.verbs & self._offer.names if self._offer.things else frozenset()
        slots = [slot for slot in slots_of(self._clause, self._source, joints) if slot.text not in typed]
        own = self._offer.names | self._offer.about
        return assigned([field for field in required if field.topic in _FREE], slots, own)

    def _keyed(self, field: Field) -> str | None:
        quotes, keys = all_in(self._source, "quote"), all_in(self._source, "key")
        outside = [key for key in keys if not any(key in quote for quote in quotes[:2])]
        if len(quotes) == 1 and len(outside) == 1:
            return quotes[0] if field.topic == "text" else outside[0]
        has_value = any(other.topic == "text" for other in self._offer.required)
        found = pair(self._clause) if has_value else None
        if field.topic == "text":
            return found[1] if found else None
        return found[0] if found else key_of(self._clause) or next(iter(all_in(self._source, "key")), None)

    def _query(self, field: Field, subject: str) -> str | None:
        is_search = bool(self._offer.names & {"search", "encyclopedia"})
        is_asked = bool({"question", "frage"} & set(field.forms)) or (self._clause.mood == "question" and not is_search)
        return self._clause.text if is_asked else subject or None

    def _title(self, _field: Field, subject: str) -> str | None:
        own = self._offer.names
        capital = [name for name in names_in(self._clause) if not own.intersection((known(name)[2], *known(name)[3]))]
        capital = [name for name in capital if not is_time_word(name)]
        if capital:
            longest = max(capital, key=len)
            return subject if _is_one_name(capital, subject) else longest
        is_said = any(known(word)[2] not in own and not is_request_frame(word) for word in re.split(r"[\s-]+", subject))
        before = None if is_said else _SPOKEN_OF.search(self._wide)
        return before.group(1) if before else _owner(subject, self._offer) or None

    def _person(self, field: Field, subject: str) -> str | None:
        found = find(field, self._source, self._taken)
        if isinstance(found, str):
            return found
        capital = [
            name for name in names_in(self._clause) if not all(_is_word(word, self._offer) for word in name.split())
        ]
        ids, firms = all_in(self._source, "id"), all_in(self._source, "firm")
        other = next(iter((*firms, *(ids if len(ids) == 1 else ()))), None) or self.part(field)
        return capital[0] if capital else other or subject or None

    def _saying(self, _field: Field, subject: str) -> str | None:
        said = _SAYING.search(self._clause.text)
        return said.group(1).strip() if said else self._material.strip(" \"'“”„") or subject or None

    def _other(self, field: Field, subject: str) -> str | None:
        """Whom it goes to; the only code that is named; what the request is about, if the tool needs no other text."""
        is_way = is_end_of_way(field, self._source) and sum(map(_is_end, self._offer.required)) > 1
        if is_way:
            return None
        if _TO.intersection(field.forms) and (names := names_in(self._clause)):
            return names[0]
        if len(self._offer.required) != 1:
            return self.part(field)
        return self._alone(field, subject)

    def _alone(self, field: Field, subject: str) -> str | None:
        """What the only argument takes: the only code, a name, the part that is led to, else all it is about."""
        found = find(field, self._source, self._taken)
        if isinstance(found, str):
            return found
        ids = all_in(self._source, "id")
        names = [name for name in names_in(self._clause) if known(name)[2] not in self._offer.names]
        if len(ids) == 1:
            return ids[0]
        if len(names) > 1 and _is_one_name(names, subject):
            return subject
        if self._clause.mood == "question" and len(names) == 1:
            return names[0]
        part = self.part(field)
        is_within = part is not None and part in subject
        return part if is_within or not subject else _without_label(field, subject) or None

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


def _is_one_name(names: Sequence[str], subject: str) -> bool:
    """Whether capital words with small ones between are one name: ``Blue in Green``."""
    is_led = known(names[0])[0] in MEANINGS
    is_whole = subject.startswith(names[0]) and subject.endswith(names[-1]) and not is_led
    return is_whole and len(subject.split()) <= MOST_TITLE_WORDS


def _is_word(text: str, offer: Offer) -> bool:
    """Whether it is a word of the language, or names the tool."""
    form, _, meaning, parts = known(text)
    is_known = form in MEANINGS or form in _UNITS or is_time_word(text)
    return is_known or bool({meaning, *parts} & offer.names)


def _owner(subject: str, offer: Offer) -> str:
    """Whose article it is: ``Rosa Parks`` of ``Rosa Parks's Wikipedia entry``."""
    owner, sign, rest = (*_OWNER.split(subject, maxsplit=1), "", "")[:3]
    is_frame = all(known(word)[2] in offer.names or is_request_frame(word) for word in rest.split())
    return owner if sign and is_frame else subject


def _is_end(field: Field) -> bool:
    return field.topic in ("other", "place") and bool(ENDS.intersection(field.forms))


def _without_label(field: Field, subject: str) -> str:
    """The text without the field's own word before it: ``station Radio Nova``."""
    return without_label(field.meanings, subject)
