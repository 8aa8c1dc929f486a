"""Fills a JSON Schema from a text: what fits each field is looked for, what is not found is left out if it may be.

What comes out validates against the schema as far as it is made of types, properties, items, enums, bounds, lengths,
patterns, formats, references and branches; ``not``, ``if`` and conditions between fields are not heeded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from organism.agents.providers.builtin.choosing import SURE_ABOVE, best_choice
from organism.agents.providers.builtin.evidence import all_of, find
from organism.agents.providers.builtin.fields import Field
from organism.agents.providers.builtin.fitting import fitted_number, fitted_text
from organism.agents.providers.builtin.labelling import Taken
from organism.agents.providers.builtin.labels import SURE
from organism.agents.providers.builtin.schemas import MAX_DEPTH, Schema, may_be_null, properties_of
from organism.agents.providers.builtin.sources import Source
from organism.agents.providers.builtin.words import sentences_of
from organism.agents.providers.builtin.writing import Pen

MOST_ITEMS: Final = 20
DEEPEST: Final = 40
_CONFIDENCE: Final = frozenset({"confidence", "certainty", "sicherheit", "konfidenz", "probability", "score"})


def fill(schema: Schema, source: Source, pen: Pen) -> Any:
    """A value of the schema: values are found in the source, texts written by the pen."""
    return _Filler(source, schema, pen).value(schema, "", 0)


class _Filler:
    """Fills one answer. ``strengths`` gathers how much spoke for each choice, for what asks how sure it is."""

    def __init__(self, source: Source, root: Schema, pen: Pen) -> None:
        self._source = source
        self._root = root
        self._pen = pen
        self._taken = Taken()
        self._strengths: list[float] = []

    def value(self, schema: Any, name: str, depth: int, *, is_required: bool = True) -> Any:
        """The value of a field: None where nothing was found and it may be null, ``_NOTHING`` if it may be left out."""
        field = Field.of(name, schema, self._root, is_required=is_required)
        found = self._found(field, depth)
        if found is not _NOTHING:
            return found
        if not is_required:
            return _NOTHING
        if may_be_null(schema, self._root):
            return None
        return self._made(field, depth)

    def _found(self, field: Field, depth: int) -> Any:
        """What the source says for the field; ``_NOTHING`` if it says nothing."""
        if "const" in field.schema or field.kind == "null":
            return field.schema.get("const")
        if "enum" in field.schema:
            return self._chosen(field)
        if field.kind == "object":
            return self._object(field, depth)
        if field.kind == "array":
            return self._array(field, depth)
        found = find(field, self._source, self._taken)
        if found is None and field.kind == "string":
            found = self._pen.written(field)
        if found is None:
            return _NOTHING
        self._strengths.append(SURE_ABOVE)
        return self._fitted(field, found)

    def _fitted(self, field: Field, found: Any) -> Any:
        if isinstance(found, str):
            return fitted_text(found, field.schema, self._pen.spare())
        if isinstance(found, bool):
            return found
        return fitted_number(found, field.schema, is_whole=field.kind == "integer")

    def _chosen(self, field: Field) -> Any:
        if field.meanings & {"confidenc", "certain"} or _CONFIDENCE & set(field.forms):
            return _NOTHING
        best = best_choice(field, self._source)
        if best is None or (best.evidence <= 0 and not field.is_required):
            return _NOTHING
        self._strengths.append(best.evidence)
        return best.value

    def _object(self, field: Field, depth: int) -> Any:
        made: dict[str, Any] = {}
        late: list[tuple[str, Any]] = []
        for name, schema, is_required in properties_of(field.schema):
            inner = Field.of(name, schema, self._root, is_required=is_required)
            if _CONFIDENCE & set(inner.forms):
                late.append((name, schema))
                made[name] = None
                continue
            is_wanted = is_required or depth < MAX_DEPTH
            value = (
                self.value(schema, name, depth + 1, is_required=is_required)
                if is_wanted and depth < DEEPEST
                else _NOTHING
            )
            if value is not _NOTHING:
                made[name] = value
        for name, schema in late:
            made[name] = self._confidence(Field.of(name, schema, self._root, is_required=True), depth)
        said = [value for value in made.values() if value not in (None, "", [], {})]
        if not field.is_required and not said:
            return _NOTHING
        return self._enough(made, field, depth)

    def _enough(self, made: dict[str, Any], field: Field, depth: int) -> dict[str, Any]:
        """With as many properties as the schema demands at least."""
        least = field.schema.get("minProperties")
        for name, schema, _ in properties_of(field.schema):
            if not isinstance(least, int) or len(made) >= least:
                break
            if name not in made:
                made[name] = self.value(schema, name, depth + 1)
        return made

    def _confidence(self, field: Field, depth: int) -> Any:
        """How sure the answer is: how much spoke for what was chosen and found before."""
        mean = sum(self._strengths) / len(self._strengths) if self._strengths else 0.0
        if "const" in field.schema:
            return field.schema["const"]
        if "enum" in field.schema:
            scale = [value for value in field.schema["enum"] if isinstance(value, str)]
            wanted = "high" if mean >= SURE_ABOVE else "medium" if mean >= 0.5 else "low"  # noqa: PLR2004 - half of a word
            named = {value.lower(): value for value in scale}
            ordered = [value for value in SURE if value in named]
            fallback = scale[min(len(scale) - 1, int(mean / SURE_ABOVE * len(scale)))] if scale else None
            if wanted in named:
                return named[wanted]
            return named[ordered[len(ordered) // 2]] if ordered else fallback or field.schema["enum"][-1]
        if field.kind in ("number", "integer"):
            most = field.schema.get("maximum", 1)
            share = min(0.95, 0.3 + 0.3 * mean)
            return fitted_number(round(share * float(most), 2), field.schema, is_whole=field.kind == "integer")
        return (
            self._made(field, depth)
            if field.kind not in ("object", "array")
            else self.value(field.schema, field.name, depth + 1)
        )

    def _array(self, field: Field, depth: int) -> Any:
        items = field.schema.get("items", {})
        prefix = field.schema.get("prefixItems")
        made = (
            [self.value(each, field.name, depth + 1) for each in prefix]
            if isinstance(prefix, Sequence) and not isinstance(prefix, str)
            else []
        )
        inner = Field.of(field.name, items, self._root, is_required=True)
        made += self._items(inner, items, depth) if items is not False else []
        return self._bounded(field, made, items, depth) if made or field.is_required else _NOTHING

    def _items(self, inner: Field, items: Any, depth: int) -> list[Any]:
        if depth >= MAX_DEPTH or "const" in inner.schema:
            return []
        if "enum" in inner.schema:
            return self._choices(inner)
        if inner.kind == "object":
            return list(self._objects(items, depth))
        if inner.kind == "string":
            found = all_of(inner, self._source) or self._pen.several(inner)
            return [fitted_text(text, inner.schema, self._pen.spare()) for text in found]
        if inner.kind in ("number", "integer"):
            return [
                fitted_number(value, inner.schema, is_whole=inner.kind == "integer")
                for value in all_of(inner, self._source)
            ]
        return []

    def _choices(self, inner: Field) -> list[Any]:
        """Every allowed value that the text speaks for."""
        single = [{**inner.schema, "enum": [value, _NEVER]} for value in inner.schema["enum"]]
        scored = [
            best_choice(Field(inner.name, schema, inner.root, is_required=True), self._source) for schema in single
        ]
        return [each.value for each in scored if each is not None and each.evidence > 0 and each.value != _NEVER]

    def _objects(self, items: Any, depth: int) -> Iterator[dict[str, Any]]:
        """One object for each line or sentence that says something for it."""
        parts = _parts(self._source.text)
        for part in parts[:MOST_ITEMS]:
            source = Source(part, self._source.language, is_item=True)
            filler = _Filler(source, self._root, Pen(source))
            made = filler.value(items, "", depth + 1, is_required=True)
            if isinstance(made, dict) and _is_told(source, items, self._root):
                yield made

    def _bounded(self, field: Field, made: list[Any], items: Any, depth: int) -> list[Any]:
        """As many items as the schema allows and demands, none twice where each must be another."""
        schema = field.schema
        is_unique = bool(schema.get("uniqueItems"))
        if is_unique:
            made = [each for at, each in enumerate(made) if each not in made[:at]]
        most, least = schema.get("maxItems"), schema.get("minItems")
        made = made[: most if isinstance(most, int) else MOST_ITEMS]
        while isinstance(least, int) and len(made) < min(least, MOST_ITEMS * 10):
            more = self._another(items, field, made, depth) if is_unique else self.value(items, field.name, depth + 1)
            made.append(more)
        return made

    def _another(self, items: Any, field: Field, made: list[Any], depth: int) -> Any:
        """An item that is not there yet."""
        inner = Field.of(field.name, items, self._root, is_required=True)
        for value in inner.schema.get("enum", ()):
            if value not in made:
                return value
        value = self.value(items, field.name, depth + 1)
        if value not in made:
            return value
        if inner.kind in ("number", "integer"):
            start = inner.schema.get("minimum", 0)
            return next(start + step for step in range(len(made) + 1) if start + step not in made)
        return fitted_text(f"{value} {len(made) + 1}".strip(), inner.schema) if isinstance(value, str) else value

    def _made(self, field: Field, depth: int) -> Any:
        """What stands where nothing was found and something must."""
        schema = field.schema
        if "default" in schema:
            return schema["default"]
        if "enum" in schema:
            values = list(schema["enum"])
            return (
                self._confidence(field, depth)
                if _CONFIDENCE & set(field.forms) and values
                else values[len(values) // 2]
                if values
                else None
            )
        if field.kind == "boolean":
            return False
        if field.kind in ("integer", "number"):
            return fitted_number(0, schema, is_whole=field.kind == "integer")
        if field.kind == "array":
            return self._bounded(field, [], schema.get("items", {}), depth)
        return {} if field.kind == "object" else fitted_text("", schema, self._pen.spare())


def _parts(text: str) -> list[str]:
    """The lines of a text; of one line its sentences, or what stands between its commas if each has a number."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 1:
        return lines
    listed = [part for part in re.split(r"[,;](?!\d)", text.partition(": ")[2] or text) if part.strip()]
    if len(listed) > 1 and all(any(sign.isdigit() for sign in part) for part in listed):
        return listed
    return [found.text for found in sentences_of(text)]


def _is_told(source: Source, schema: Any, root: Schema) -> bool:
    """Whether the source itself says something for an object: a number, a name, a label."""
    outer = Field.of("", schema, root, is_required=True)
    inner = [Field.of(name, each, root, is_required=True) for name, each, _ in properties_of(outer.schema)]
    plain = [each for each in inner if each.kind in ("string", "number", "integer")]
    return any(find(each, source, Taken()) is not None for each in plain)


class _Nothing:
    """Stands for a field that is left out."""


_NOTHING: Final = _Nothing()
_NEVER: Final = "\x00"
