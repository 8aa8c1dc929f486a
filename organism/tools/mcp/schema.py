"""The JSON Schema of a foreign tool, evaluated within bounds.

Its size is bounded, no reference is fetched, and its patterns run on a linear engine. Through references a short schema
can check one value exponentially often, so its checks are counted before arguments are evaluated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import unquote

import orjson

from organism.config.json_schema import JsonSchema

MOST_SCHEMA_BYTES: Final = 64 * 1024
MOST_FAULTS: Final = 10
MOST_CHECKS: Final = 100_000
TOO_MANY_CHECKS: Final = "/: these take too long to check against the tool's schema"

_SEVERAL_HERE: Final = ("allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies")
_ONE_HERE: Final = ("not", "if", "then", "else")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_ANY_BELOW: Final = (
    "additionalProperties", "unevaluatedProperties", "propertyNames", "items", "additionalItems", "contains",
    "unevaluatedItems",
)  # fmt: skip

Schema = Mapping[str, Any]


class TooManyChecks(Exception):
    pass


class ArgumentsSchema:
    """What a tool's arguments may be. Raises ``ValueError`` for a schema that cannot be used."""

    def __init__(self, schema: Schema) -> None:
        size = len(orjson.dumps(schema))
        if size > MOST_SCHEMA_BYTES:
            raise ValueError(f"its schema has {size} bytes; at most {MOST_SCHEMA_BYTES} are taken")
        if schema.get("type") != "object":
            raise ValueError("its schema is not of an object")
        self._root = schema
        self._schema = JsonSchema(schema)
        for reference in _references(schema):
            self._target(reference)

    def faults(self, arguments: object) -> list[str]:
        """What is wrong with the arguments, each with its JSON pointer; at most ten."""
        try:
            self._check(self._root, arguments, MOST_CHECKS)
        except (TooManyChecks, RecursionError):
            return [TOO_MANY_CHECKS]
        return [
            f"{fault.pointer or '/'}: {fault.message}" for fault in self._schema.faults(arguments, most=MOST_FAULTS)
        ]

    def _check(self, schema: Schema, value: object, left: int) -> int:
        """How many checks of ``left`` remain once the schema has checked the value and all within it."""
        if not left:
            raise TooManyChecks
        left -= 1
        here = [schema.get(key) for key in _ONE_HERE]
        here += [self._target(schema[key]) for key in _REFERENCES if key in schema]
        for several in (here, *(schema.get(key) for key in _SEVERAL_HERE)):
            for each in _schemas(several):
                left = self._check(each, value, left)
        members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for name, member in members:
            for each in _of_member(schema, name):
                left = self._check(each, member, left)
        return left

    def _target(self, reference: str) -> Any:
        """What a reference refers to. Raises ``ValueError`` if that is not within the schema."""
        found: Any = self._root
        with suppress(KeyError, IndexError, ValueError, TypeError):
            start, *steps = unquote(reference).split("/")
            for step in steps:
                name = step.replace("~1", "/").replace("~0", "~")
                found = found[int(name)] if isinstance(found, list) else found[name]
            if start == "#":
                return found
        raise ValueError(f"its schema refers to {reference[:80]!r}, which is not within it")


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from (value[key] for key in _REFERENCES if isinstance(value.get(key), str))
    for inner in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _references(inner)


def _of_member(schema: Schema, name: str | int) -> Iterator[Schema]:
    """The schemas of the member of that name, or at that index."""
    if isinstance(name, str):
        yield from _schemas([(schema.get("properties") or {}).get(name)])
        yield from _schemas(schema.get("patternProperties"))
    else:
        for key in ("prefixItems", "items"):
            in_order = schema.get(key)
            yield from _schemas(in_order[name : name + 1] if isinstance(in_order, list) else None)
    yield from _schemas([schema.get(key) for key in _ANY_BELOW])


def _schemas(values: Any) -> Iterator[Schema]:
    """The schemas in a list or a mapping; none in anything else."""
    items = values.values() if isinstance(values, Mapping) else values if isinstance(values, list) else ()
    return (value for value in items if isinstance(value, Mapping))
