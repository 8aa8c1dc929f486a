"""The JSON Schema of what a prompt of AgentStack asks for: its words, and whether an answer fits it.

The words are those that models are held to by their providers, and that can be checked in linear time: no references,
no choices between schemas, no patterns. A word that is not known is refused when the file is read, so that none is
ignored in silence.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from organism.config.json_text import MAX_FAULTS, MAX_SHOWN, came, pointer
from organism.config.text import near
from organism.errors import Fault

TYPES: Final[Mapping[str, str]] = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}
"""The types of JSON Schema, and what to call them."""

MAX_NAMED: Final = 20

_ANNOTATIONS: Final = frozenset({"$schema", "$id", "$comment", "title", "description", "examples", "format"})
_COUNTS: Final = ("minItems", "maxItems", "minLength", "maxLength")
_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_WORDS: Final = (
    "type", "enum", "const", "properties", "required", "additionalProperties", "items", "uniqueItems",
    *_COUNTS, *_BOUNDS,
)  # fmt: skip

Add = Callable[[str, str], None]
"""Notes a fault: the JSON pointer, and what was expected and came."""


def check_schema(schema: Any, place: str, add: Add) -> None:
    """Note each word of the schema that is not known or means nothing."""
    if not isinstance(schema, dict):
        add(place, f"expected a schema, came {came(schema)}")
        return
    for word, value in schema.items():
        if word not in _ANNOTATIONS and word not in _WORDS:
            where = "; what is taken for a missing field stands in `defaults`" if word == "default" else ""
            add(pointer(place, word), f"the word `{word[:MAX_SHOWN]}` is not taken here{where}{near(word, _WORDS)}")
        elif (expected := _wrong_word(word, value)) is not None:
            add(pointer(place, word), f"expected {expected}, came {came(value)}")
    _check_inner(schema, place, add)


def fit(value: Any, schema: Mapping[str, Any], place: str, add: Add) -> Any:
    """The value without the fields that the schema does not know; each fault of it is noted.

    ``additionalProperties: true`` keeps such fields, ``false`` makes them a fault. A whole number may be written 3.0.
    """
    wanted = _types(schema)
    if wanted and not any(_is_of(value, kind) for kind in wanted):
        add(place, f"expected {' or '.join(TYPES[kind] for kind in wanted)}, came {came(value)}")
        return value
    if "enum" in schema and not any(_same(value, each) for each in schema["enum"]):
        add(place, _not_among(value, schema["enum"]))
    if "const" in schema and not _same(value, schema["const"]):
        add(place, f"expected {came(schema['const'])}, came {came(value)}")
    if isinstance(value, dict):
        return _object(value, schema, place, add)
    if isinstance(value, list):
        return _list(value, schema, place, add)
    return _scalar(value, schema, place, add)


def _wrong_word(word: str, value: Any) -> str | None:
    """What was expected of the value of a word, if it is something else."""
    for words, expected, is_right in _VALUES:
        if word in words and not is_right(value):
            return expected
    return None


def _are_types(value: Any) -> bool:
    kinds = value if isinstance(value, list) else [value]
    return bool(kinds) and all(isinstance(kind, str) and kind in TYPES for kind in kinds)


def _are_different(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and len(set(map(_key, value))) == len(value)


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _check_inner(schema: dict[str, Any], place: str, add: Add) -> None:
    properties = schema.get("properties", {})
    if isinstance(properties, dict):
        for name, inner in properties.items():
            check_schema(inner, pointer(pointer(place, "properties"), name), add)
    if isinstance(schema.get("items"), dict):
        check_schema(schema["items"], pointer(place, "items"), add)
    required = schema.get("required", [])
    for at, name in enumerate(required if isinstance(required, list) else []):
        if isinstance(name, str) and isinstance(properties, dict) and name not in properties:
            message = f"there is no property `{name[:MAX_SHOWN]}`{near(name, properties)}"
            add(pointer(pointer(place, "required"), at), message)


def _types(schema: Mapping[str, Any]) -> list[str]:
    kinds = schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else list(kinds)


def _is_of(value: Any, kind: str) -> bool:
    if kind in {"integer", "number"}:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and (kind == "number" or value == int(value))
    python = {"string": str, "boolean": bool, "object": dict, "array": list, "null": type(None)}
    return isinstance(value, python[kind])


def _same(one: Any, other: Any) -> bool:
    """Equality as JSON has it: 1 and true are two things, 1 and 1.0 are one."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list | dict) and isinstance(other, list | dict):
        return _key(one) == _key(other)
    return bool(one == other)


def _key(value: Any) -> str:
    return json.dumps(int(value) if isinstance(value, float) and value == int(value) else value, sort_keys=True)


def _not_among(value: Any, allowed: list[Any]) -> str:
    listed = ", ".join(came(each).removesuffix(" (text)") for each in allowed[:MAX_NAMED])
    more = f" and {len(allowed) - MAX_NAMED} more" if len(allowed) > MAX_NAMED else ""
    texts = [each for each in allowed if isinstance(each, str)]
    folded = {each.strip().casefold(): each for each in texts}
    close = f"; did you mean `{folded[key]}`?" if isinstance(value, str) and (key := _folded(value)) in folded else ""
    hint = close or (near(value, texts) if isinstance(value, str) else "")
    return f"expected one of {listed}{more}, came {came(value)}{hint}"


def _folded(value: str) -> str:
    return value[: MAX_SHOWN * 2].strip().casefold()


def _object(value: dict[str, Any], schema: Mapping[str, Any], place: str, add: Add) -> dict[str, Any]:
    properties = schema.get("properties", {})
    for name in schema.get("required", []):
        if name not in value:
            add(pointer(place, name), "is missing")
    extra = schema.get("additionalProperties", "properties" not in schema)
    fitted = {
        name: fit(value[name], inner, pointer(place, name), add) for name, inner in properties.items() if name in value
    }
    unknown = [name for name in value if name not in properties]
    if extra is True:
        return {**fitted, **{name: value[name] for name in unknown}}
    for name in unknown if "additionalProperties" in schema else ():
        shown = name[:MAX_SHOWN]
        add(pointer(place, shown), f"there is no field `{shown}`{near(name, properties)}")
    return fitted


def _list(value: list[Any], schema: Mapping[str, Any], place: str, add: Add) -> list[Any]:
    _check_length(len(value), schema, ("minItems", "maxItems", "items"), place, add)
    if schema.get("uniqueItems") and len(set(map(_key, value))) < len(value):
        add(place, "expected different items, came one twice")
    inner = schema.get("items", {})
    return [fit(item, inner, pointer(place, at), add) for at, item in enumerate(value)]


def _scalar(value: Any, schema: Mapping[str, Any], place: str, add: Add) -> Any:
    if isinstance(value, str):
        _check_length(len(value), schema, ("minLength", "maxLength", "characters"), place, add)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        _check_bounds(value, schema, place, add)
        is_whole = isinstance(value, float) and value == int(value) and "number" not in _types(schema)
        return int(value) if is_whole and "integer" in _types(schema) else value
    return value


def _check_length(length: int, schema: Mapping[str, Any], words: tuple[str, str, str], place: str, add: Add) -> None:
    least, most, unit = words
    if length < schema.get(least, 0):
        add(place, f"expected at least {schema[least]} {unit}, came {length}")
    if length > schema.get(most, length):
        add(place, f"expected at most {schema[most]} {unit}, came {length}")


def _check_bounds(value: float, schema: Mapping[str, Any], place: str, add: Add) -> None:
    bounds = (
        ("minimum", "at least", value >= schema.get("minimum", value)),
        ("maximum", "at most", value <= schema.get("maximum", value)),
        ("exclusiveMinimum", "more than", "exclusiveMinimum" not in schema or value > schema["exclusiveMinimum"]),
        ("exclusiveMaximum", "less than", "exclusiveMaximum" not in schema or value < schema["exclusiveMaximum"]),
    )
    for word, relation, holds in bounds:
        if not holds:
            add(place, f"expected {relation} {schema[word]}, came {came(value)}")


def noting(faults: list[Fault]) -> Add:
    """Gathers faults in the list, up to a bound."""

    def add(place: str, message: str) -> None:
        if len(faults) < MAX_FAULTS:
            faults.append(Fault(place, message))

    return add


_VALUES: Final[Sequence[tuple[tuple[str, ...], str, Callable[[Any], bool]]]] = (
    (("type",), f"one or more of {', '.join(TYPES)}", _are_types),
    (("enum",), "a list of different values", _are_different),
    (("properties", "items"), "an object", lambda value: isinstance(value, dict)),
    (("required",), "a list of names", _are_names),
    (("additionalProperties", "uniqueItems"), "true or false", lambda value: isinstance(value, bool)),
    (_COUNTS, "a whole number from 0 on", lambda value: _is_of(value, "integer") and value >= 0),
    (_BOUNDS, "a number", lambda value: _is_of(value, "number")),
)
"""What the value of a word must be."""
