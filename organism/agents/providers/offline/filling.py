"""Fills a JSON schema from a text: values by the field's type and name, enums by what the text names."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Final

from organism.agents.providers.offline.reading import key_sentences, likeness, parsed, sentences_of, words_of
from organism.agents.providers.offline.words import NEUTRAL, NO

MAX_ITEMS: Final = 20
_ENTRY: Final = re.compile(r"^([\w.-]+) = ([\"\[{\d-].*|true|false)$", re.MULTILINE)  # as AgentStack composes it
_NUMBER: Final = re.compile(r"(?<![\w.,-])-?\d{1,15}(?:,\d{3})*(?:\.\d+)?(?![\d-])")
_SHAPES: Final = {"email": r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+", "url": r"https?://[^\s\"<>]+", "date": r"\d{4}-\d\d-\d\d"}
"""What values look like, by a word of the field's name."""


class Filler:
    """Fills schemas from one text; ``text_chars`` bounds the free texts in them. It follows no references."""

    def __init__(self, text: str, text_chars: int = 400) -> None:
        entries = {key: str(parsed(value)) for key, value in _ENTRY.findall(text)}
        self._text = "\n".join(entries.values()) or text
        self._labels = "\n".join(f"{key}: {value}" for key, value in entries.items()) or text
        self._words = words_of(self._text)
        self._text_chars = text_chars
        self._used: set[int] = set()

    def filled(self, schema: Any, name: str = "") -> Any:
        """A value for a field of that name: found, else a blank that fits."""
        found = self.found(schema, name)
        return self._blank(_plain(schema), name) if found is None else found

    def found(self, schema: Any, name: str) -> Any:  # noqa: PLR0911 - one a type
        """The value that the text gives; None if it gives none."""
        schema = _plain(schema)
        match schema.get("type"):
            case _ if schema.get("enum"):
                best = max(schema["enum"], key=lambda value: _share(value, self._words))
                return best if _share(best, self._words) else None
            case "object":
                needed, fields = schema.get("required", ()), schema.get("properties", {}).items()
                values = {key: (self.filled if key in needed else self.found)(each, key) for key, each in fields}
                return {key: value for key, value in values.items() if key in needed or value is not None} or None
            case "array":
                return self._array(_plain(schema.get("items")), name)[: schema.get("maxItems", MAX_ITEMS)] or None
            case "integer" | "number":
                return self._number(schema, name)
            case "boolean":
                naming = [said for said in map(words_of, sentences_of(self._text)) if _share(name, said) == 1]
                return not NO.intersection(naming[0]) if naming else None
            case "string":
                found = self._string(name)
                return found and found[: schema.get("maxLength")]
        return schema.get("const")

    def _array(self, items: Mapping[str, Any], name: str) -> list[Any]:
        if items.get("enum"):
            return [value for value in items["enum"] if _share(value, self._words) == 1]
        if items.get("type") == "string":
            listed = re.split(r",|\band\b|\bund\b", self._labelled(name, r"[^.;\n]+") or "")
            return [each.strip() for each in listed if each.strip()]
        most = MAX_ITEMS if items.get("type") in ("integer", "number") else 1
        return [value for _ in range(most) if (value := self.found(items, name)) is not None]

    def _number(self, schema: Mapping[str, Any], name: str) -> Any:
        """Of the unused numbers that fit, the one nearest to the field's name; without that, the first."""
        named = re.search("|".join(name_words(name)) or "$", self._labels, re.IGNORECASE)
        fitting = list[tuple[int, int, float]]()
        for found in _NUMBER.finditer(self._labels):
            value, away = float(found.group().replace(",", "")), abs(found.start() - named.start()) if named else 0
            is_right = schema.get("minimum", value) <= value <= schema.get("maximum", value)
            if is_right and found.start() not in self._used and (schema["type"] == "number" or value.is_integer()):
                fitting.append((away, found.start(), value))
        _, at, value = min(fitting, default=(0, 0, math.nan))
        self._used.add(at)
        return None if not fitting else int(value) if value.is_integer() else value

    def _string(self, name: str) -> str | None:
        """What has the shape of such a field; else what follows its name, or stands in quotes."""
        for word in _SHAPES.keys() & name_words(name):
            shaped = re.search(_SHAPES[word], self._text)
            return shaped and shaped[0]
        quoted = re.search(r"[\"“„]([^\"“”„\n]+)[\"”“]", self._text)
        return self._labelled(name, r"[^,.;\n]+") or (quoted and quoted[1])

    def _labelled(self, name: str, value: str) -> str | None:
        """What follows the field's name: ``tone: warm``, ``the tone is warm``."""
        label = "[ _-]?".join(name_words(name)) or "$"
        found = re.search(rf"\b{label}\b\s*(?::|=|\bis\b|\bist\b)\s*({value})", self._labels, re.IGNORECASE)
        return found and found[1].strip(' "“”„')

    def _blank(self, schema: Mapping[str, Any], name: str) -> Any:
        """What stands where nothing was found: the default, a neutral value, zero, sentences of the text."""
        if "default" in schema or "const" in schema:
            return schema.get("default", schema.get("const"))
        if schema.get("enum"):
            return next((value for value in NEUTRAL if value in schema["enum"]), schema["enum"][0])
        match schema.get("type"):
            case "integer" | "number":
                return max(schema.get("minimum", 0), min(0, schema.get("maximum", 0)))
            case "array":
                return [self.filled(schema.get("items"), name)] * min(schema.get("minItems", 0), MAX_ITEMS)
            case "string" if not _SHAPES.keys() & name_words(name):
                text = " ".join(key_sentences(self._text, 2))[: min(self._text_chars, schema.get("maxLength", 400))]
                return " ".join(text.split()[:8]) if name_words(name)[-1:] in (["title"], ["name"]) else text
        return {"object": {}, "boolean": False, "string": ""}.get(schema.get("type", "null"))


def _plain(schema: Any) -> Mapping[str, Any]:
    """The schema with one type: of several, or of alternatives, the first; what may be null is null by default."""
    schema = schema if isinstance(schema, Mapping) else {}
    kinds = schema.get("type", "object" if "properties" in schema else "string")
    branches = schema.get("anyOf") or [{"type": kind} for kind in ([kinds] if isinstance(kinds, str) else kinds)]
    chosen: Mapping[str, Any] = next((each for each in branches if each != {"type": "null"}), {})
    return {**({"default": None} if {"type": "null"} in branches else {}), **schema, **chosen}


def name_words(name: str) -> list[str]:
    """The words of ``dueDate``, ``due_date`` or ``AWS_Architect``."""
    return re.findall(r"[^\W_]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())


def _share(name: Any, said: list[str]) -> float:
    """How much of a name, or of an enum's value, is said."""
    parts = name_words(str(name))
    return sum(max((likeness(part, word) for word in said), default=0) for part in parts) / max(1, len(parts))
