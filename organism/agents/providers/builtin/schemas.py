"""JSON Schemas as the model fills them: references followed, branches chosen, parts put together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

MAX_DEPTH: Final = 12
"""Deeper than this, only what is required is filled."""
MAX_FOLLOWED: Final = 32
_ANYTHING: Final[Mapping[str, Any]] = MappingProxyType({})

Schema = Mapping[str, Any]


def schema_of(response_format: Mapping[str, Any] | None) -> Schema | None:
    """The schema that the answer must fit, however it is wrapped; None if text is wanted."""
    if not response_format:
        return None
    kind = response_format.get("type")
    if kind == "text":
        return None
    wrapped = response_format.get("json_schema")
    if isinstance(wrapped, Mapping):
        inner = wrapped.get("schema")
        return inner if isinstance(inner, Mapping) else {"type": "object"}
    if kind == "json_object":
        inner = response_format.get("schema")
        return inner if isinstance(inner, Mapping) else {"type": "object"}
    return response_format


def plain_schema(schema: Any, root: Schema, followed: int = 0) -> Schema:
    """The schema without references and branches: what stands there holds as well, the first fitting branch is taken.

    ``true`` and what is no schema allow anything.
    """
    if not isinstance(schema, Mapping) or followed > MAX_FOLLOWED:
        return _ANYTHING
    if "$ref" in schema:
        target = _target(schema["$ref"], root)
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return plain_schema(_together(target, rest), root, followed + 1)
    if "allOf" in schema:
        made: Schema = {key: value for key, value in schema.items() if key != "allOf"}
        for part in schema["allOf"] if isinstance(schema["allOf"], list | tuple) else ():
            made = _together(made, plain_schema(part, root, followed + 1))
        return plain_schema(made, root, followed + 1)
    for key in ("anyOf", "oneOf"):
        branches = schema.get(key)
        if isinstance(branches, list | tuple) and branches:
            rest = {name: value for name, value in schema.items() if name != key}
            return plain_schema(_together(rest, _branch(branches, root, followed)), root, followed + 1)
    return schema


def _branch(branches: list[Any] | tuple[Any, ...], root: Schema, followed: int) -> Schema:
    """The first branch that is not just null."""
    made = [plain_schema(branch, root, followed + 1) for branch in branches[:MAX_FOLLOWED]]
    return next(
        (branch for branch in made if branch.get("type") != "null" and branch.get("const", 0) is not None), made[0]
    )


def may_be_null(schema: Any, root: Schema) -> bool:
    """Whether null fits as well: that says honestly that nothing was found."""
    if not isinstance(schema, Mapping):
        return False
    if "$ref" in schema:
        return may_be_null(_target(schema["$ref"], root), root) if len(schema) == 1 else False
    kind = schema.get("type")
    if kind == "null" or (isinstance(kind, list | tuple) and "null" in kind):
        return "enum" not in schema or None in schema["enum"]
    branches = [*(schema.get("anyOf") or ()), *(schema.get("oneOf") or ())]
    return any(isinstance(branch, Mapping) and branch.get("type") == "null" for branch in branches)


def kind_of(schema: Schema) -> str:
    """The type that is filled: the first one that is not null; by the other keys where none is named."""
    kind = schema.get("type")
    if isinstance(kind, list | tuple):
        kind = next((name for name in kind if name != "null"), "null")
    if isinstance(kind, str):
        return kind
    if "properties" in schema or "required" in schema:
        return "object"
    if "items" in schema or "minItems" in schema:
        return "array"
    if {"minimum", "maximum", "multipleOf"} & set(schema):
        return "number"
    return "string"


def properties_of(schema: Schema) -> Iterator[tuple[str, Any, bool]]:
    """Each property with its schema and whether it is required; also those that are required and not described."""
    described = schema.get("properties")
    described = described if isinstance(described, Mapping) else {}
    required = schema.get("required")
    required = [name for name in required if isinstance(name, str)] if isinstance(required, list | tuple) else []
    for name, inner in described.items():
        yield name, inner, name in required
    additional = schema.get("additionalProperties")
    for name in required:
        if name not in described:
            yield name, additional if isinstance(additional, Mapping) else {}, True


def _target(reference: Any, root: Schema) -> Schema:
    """What ``#/$defs/name`` leads to; nothing where it leads nowhere."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return _ANYTHING
    node: Any = root
    for step in reference[1:].split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, Mapping) and key in node:
            node = node[key]
        elif isinstance(node, list | tuple) and key.isdigit() and int(key) < len(node):
            node = node[int(key)]
        else:
            return _ANYTHING
    return node if isinstance(node, Mapping) else _ANYTHING


def _together(left: Schema, right: Schema) -> Schema:
    """Both at once: properties and required names of both, of other keys the narrower where that can be said."""
    made = dict(left)
    for key, value in right.items():
        mine = made.get(key)
        if mine is None:
            made[key] = value
        elif key == "properties" and isinstance(mine, Mapping) and isinstance(value, Mapping):
            made[key] = {**mine, **value}
        elif key == "required" and isinstance(mine, list | tuple) and isinstance(value, list | tuple):
            made[key] = [*mine, *(name for name in value if name not in mine)]
        elif key == "enum" and isinstance(mine, list | tuple) and isinstance(value, list | tuple):
            made[key] = [choice for choice in mine if choice in value] or value
        elif key.startswith("min") and _is_number(mine) and _is_number(value):
            made[key] = max(mine, value)
        elif key.startswith("max") and _is_number(mine) and _is_number(value):
            made[key] = min(mine, value)
        else:
            made[key] = value
    return made


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
