"""What a field asks for: read from its name, its description and its schema, never from whose field it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, get_args

from organism.agents.providers.builtin.lexicon import rows
from organism.agents.providers.builtin.schemas import Schema, kind_of, plain_schema
from organism.agents.providers.builtin.words import known, words_of

Topic = Literal[
    "email",
    "url",
    "phone",
    "uuid",
    "ip",
    "host",
    "path",
    "symbol",
    "key",
    "zone",
    "datetime",
    "date",
    "time",
    "currency",
    "language",
    "sum",
    "place",
    "person",
    "firm",
    "title",
    "keywords",
    "summary",
    "query",
    "text",
    "id",
    "other",
]
"""What kind of value a field asks for; of two that its name may mean the first one counts."""

_PART: Final = re.compile(r"[A-ZÄÖÜ]+(?![a-zäöü])|[A-ZÄÖÜ]?[a-zäöüß]+|\d+")
_TWO_LETTERS: Final = re.compile(r"([aou])e(?=[^aeio]|$)")
_TOPICS: Final[tuple[Topic, ...]] = get_args(Topic)
_FORMATS: Final[Mapping[str, Topic]] = {
    "email": "email",
    "idn-email": "email",
    "uri": "url",
    "iri": "url",
    "uri-reference": "url",
    "url": "url",
    "hostname": "url",
    "date": "date",
    "date-time": "datetime",
    "time": "time",
    "uuid": "uuid",
}
_NAMED: Final[Mapping[str, frozenset[str]]] = {topic: frozenset(words.split()) for topic, words in rows("fields")}


_LEAST: Final = 4
_ENDINGS: Final[Mapping[str, Topic]] = {
    **{word: topic for topic in _TOPICS for word in _NAMED.get(topic, ()) if len(word) >= _LEAST},
    "name": "person",
}


def _by_ending(form: str) -> Topic | None:
    """What the longest end of a word asks for that is a word of its own: the date of a ``lieferdatum``."""
    if form.endswith("ort") and not form.endswith(("wort", "port")):
        return "place"
    ends = (form[at:] for at in range(2, len(form) - 1))
    return next((_ENDINGS[end] for end in ends if end in _ENDINGS), None)


def parts_of(name: str) -> list[str]:
    """The words of a name: ``topK``, ``top_k``, ``top-k``."""
    return [part.lower() for part in _PART.findall(name)]


@dataclass(frozen=True)
class Field:
    """A property of an object, or an argument of a tool.

    ``schema`` is plain, ``root`` is what its references lead into.
    """

    name: str
    schema: Schema
    root: Schema
    is_required: bool

    @classmethod
    def of(cls, name: str, schema: object, root: Schema, *, is_required: bool) -> Field:
        """Read the schema of a field."""
        return cls(name, plain_schema(schema, root), root, is_required)

    @property
    def kind(self) -> str:
        return kind_of(self.schema)

    @cached_property
    def forms(self) -> tuple[str, ...]:
        """The plain words of its name."""
        return tuple(known(part)[0] for part in parts_of(self.name))

    @cached_property
    def meanings(self) -> frozenset[str]:
        """What the words of its name mean, umlauts written in either way."""
        parts = parts_of(self.name)
        return frozenset(known(form)[2] for part in parts for form in (part, _TWO_LETTERS.sub(r"\1", part)))

    @cached_property
    def described(self) -> frozenset[str]:
        """What the words of its description and title mean, and those of its name."""
        texts = (self.schema.get("description"), self.schema.get("title"))
        words = (word for text in texts if isinstance(text, str) for word in words_of(text) if not word.is_silent)
        return self.meanings | {word.meaning for word in words}

    @cached_property
    def topic(self) -> Topic:
        """What kind of text it asks for. The last word of its name weighs most: ``order_date`` is a date."""
        text_format = self.schema.get("format")
        if isinstance(text_format, str) and text_format in _FORMATS:
            return _FORMATS[text_format]
        if self.forms == ("name",):
            return "person"
        joined = "".join(self.forms)
        spoken = [known(_TWO_LETTERS.sub(r"\1", part))[0] for part in parts_of(self.name)]
        for form in (joined, *reversed(self.forms), *reversed(spoken)):
            for topic in _TOPICS:
                if form in _NAMED.get(topic, ()):
                    return topic
        ending = next((found for form in reversed(spoken) if (found := _by_ending(form))), None)
        if ending is not None:
            return ending
        text = self.schema.get("description")
        forms = {word.plain for word in words_of(text)} if isinstance(text, str) else set()
        return next((topic for topic in _TOPICS if forms & _NAMED.get(f"described_{topic}", frozenset())), "other")
