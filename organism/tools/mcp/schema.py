"""The JSON Schema of a foreign tool, evaluated within bounds.

Its size is bounded, no reference is fetched, its patterns run on a linear engine, and a schema that could look at one
place of the arguments exponentially often is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import unquote

import orjson

from organism.config.json_schema import JsonSchema

MOST_SCHEMA_BYTES: Final = 64 * 1024
MOST_FAULTS: Final = 10
MOST_WORK: Final = 16 * 1024 * 1024
"""Bytes of arguments times schemas within the schema; beyond it a fault says no place."""

_SEVERAL_HERE: Final = ("allOf", "anyOf", "oneOf", "dependentSchemas", "dependencies")
_ONE_HERE: Final = ("not", "if", "then", "else")
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_ANY_BELOW: Final = (
    "additionalProperties", "unevaluatedProperties", "propertyNames", "items", "additionalItems", "contains",
    "unevaluatedItems",
)  # fmt: skip
_ANCHORS: Final = ("$anchor", "$dynamicAnchor")
_LOOKS_PER_SCHEMA: Final = 8
_LOOKS_AT_LEAST: Final = 200
MOST_STEPS: Final = 200_000
"""The bound on counting the looks of one schema."""

Schema = Mapping[str, Any]
Name = str | int | None
"""A member's name or index; None is any that no schema names."""


class ArgumentsSchema:
    """What a tool's arguments may be. Raises ``ValueError`` for a schema that cannot be used."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        size = len(orjson.dumps(schema))
        if size > MOST_SCHEMA_BYTES:
            raise ValueError(f"its schema has {size} bytes; at most {MOST_SCHEMA_BYTES} are taken")
        if schema.get("type") != "object":
            raise ValueError("its schema is not of an object")
        self._schema = JsonSchema(schema)
        self._schemas = count_schemas(schema)

    def faults(self, arguments: object) -> list[str]:
        """What is wrong with the arguments, each with its JSON pointer; at most ten."""
        if self._schema.is_valid(arguments):
            return []
        if len(orjson.dumps(arguments)) * self._schemas > MOST_WORK:
            return ["/: these are not of the tool's schema, and too many to say where"]
        return [
            f"{fault.pointer or '/'}: {fault.message}" for fault in self._schema.faults(arguments, most=MOST_FAULTS)
        ]


def count_schemas(schema: Schema) -> int:
    """How many schemas the schema holds. Raises ``ValueError`` if it may look at one place far more often than that.

    References can double the looks with each level: they are counted level by level, each state of a level once.
    """
    within = _Within(schema)
    waiting = [within.looks({id(schema): 1})]
    seen = {frozenset(waiting[0].items())}
    while waiting:
        for inner in _members_of(within, waiting.pop()):
            looks = within.looks(inner)
            if (state := frozenset(looks.items())) not in seen:
                seen.add(state)
                waiting.append(looks)
    return len(within.schemas)


class _Within:
    """The schemas within a schema, by their identity, and the anchors that they have."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self.schemas: dict[int, Schema] = {}
        self._anchors: dict[str, Schema] = {}
        self._steps = 0
        waiting: list[Any] = [root]
        while waiting:
            value = waiting.pop()
            if isinstance(value, Mapping):
                self.schemas[id(value)] = value
                self._anchors.update({value[key]: value for key in _ANCHORS if isinstance(value.get(key), str)})
                waiting += value.values()
            elif isinstance(value, list):
                waiting += value

    def meant(self, reference: object) -> Any:
        """What a reference means. Raises ``ValueError`` if that is not within the schema."""
        path = unquote(reference[1:]) if isinstance(reference, str) and reference.startswith("#") else None
        if path in self._anchors:
            return self._anchors[path]
        if path is not None and (not path or path.startswith("/")):
            with suppress(KeyError, IndexError, ValueError, TypeError):
                return _at(self._root, path.split("/")[1:])
        raise ValueError(f"its schema refers to {str(reference)[:80]!r}, which is not within it")

    def looks(self, layer: Mapping[int, int]) -> Counter[int]:
        """How often each schema looks at a place, if those of ``layer`` do, with all that they bring with them."""
        looks: Counter[int] = Counter()
        waiting = list(layer.items())
        most = _LOOKS_PER_SCHEMA * len(self.schemas) + _LOOKS_AT_LEAST
        while waiting:
            one, times = waiting.pop()
            looks[one] += times
            most -= times
            self._steps += 1
            if most < 0 or self._steps > MOST_STEPS:
                raise ValueError("its schema may look at one place of the arguments without end, by its references")
            waiting += [(id(each), times) for each in _same_place(self, self.schemas[one])]
        return looks


def _at(value: Any, steps: Iterable[str]) -> Any:
    for step in steps:
        name = step.replace("~1", "/").replace("~0", "~")
        value = value[int(name)] if isinstance(value, list) else value[name]
    return value


def _members_of(within: _Within, looks: Mapping[int, int]) -> Iterable[Counter[int]]:
    """For each member that is named, and for any other, which schemas look at it."""
    named: dict[Name, Counter[int]] = {None: Counter()}
    for one, times in looks.items():
        for name, inner in _members(within.schemas[one]):
            named.setdefault(name, Counter())[id(inner)] += times
    anywhere = named.pop(None)
    return (anywhere, *(each + anywhere for each in named.values()))


def _same_place(within: _Within, schema: Schema) -> Iterator[Schema]:
    for key in _SEVERAL_HERE:
        yield from _schemas(schema.get(key))
    yield from _schemas([schema.get(key) for key in _ONE_HERE])
    yield from _schemas([within.meant(schema[key]) for key in _REFERENCES if key in schema])


def _members(schema: Schema) -> Iterator[tuple[Name, Schema]]:
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        yield from ((name, each) for name in properties for each in _schemas([properties[name]]))
    for key in ("prefixItems", "items"):
        in_order = schema.get(key)
        if isinstance(in_order, list):
            yield from ((at, each) for at, item in enumerate(in_order) for each in _schemas([item]))
    yield from ((None, each) for each in _schemas([schema.get(key) for key in _ANY_BELOW]))
    yield from ((None, each) for each in _schemas(schema.get("patternProperties")))


def _schemas(values: Any) -> Iterator[Schema]:
    """The schemas in a list or a mapping; none in anything else."""
    items = values.values() if isinstance(values, Mapping) else values if isinstance(values, list) else ()
    return (value for value in items if isinstance(value, Mapping))
