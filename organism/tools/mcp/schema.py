"""The JSON Schema of a tool of strangers: checked before it is believed, and asked with bounds.

A schema can be large, reach into the network by its references, look at the same place of the arguments without end, or
hold a pattern that takes for ever. Here it is small, alone, looks at each place a bounded number of times, and its
patterns are of a linear engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

import jsonschema_rs
import orjson

from organism.tools.mcp.looks import hold_looks

MOST_SCHEMA_BYTES: Final = 64 * 1024
MOST_FAULTS: Final = 10
MOST_CHARACTERS: Final = 200
MOST_WORK: Final = 16 * 1024 * 1024
"""Bytes of arguments times schemas within the schema: beyond it is said that they do not fit, and not where."""


class ArgumentsSchema:
    """What a tool's arguments may be. Raises ``ValueError`` for a schema that cannot be used."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        size = len(orjson.dumps(schema))
        if size > MOST_SCHEMA_BYTES:
            raise ValueError(f"its schema has {size} bytes; at most {MOST_SCHEMA_BYTES} are taken")
        if schema.get("type") != "object":
            raise ValueError("its schema is not of an object")
        self._validator = jsonschema_rs.validator_for(
            dict(schema), offline=True, pattern_options=jsonschema_rs.RegexOptions()
        )
        self._schemas = hold_looks(schema)

    def faults(self, arguments: object) -> list[str]:
        """What is wrong with the arguments, each with its JSON pointer; at most ten."""
        if self._validator.is_valid(arguments):
            return []
        if len(orjson.dumps(arguments)) * self._schemas > MOST_WORK:
            return ["/: these are not of the tool's schema, and too many to say where"]
        found = islice(self._validator.iter_errors(arguments), MOST_FAULTS)
        return [f"{_pointer(error.instance_path)}: {error.message[:MOST_CHARACTERS]}" for error in found]


def _pointer(path: list[str | int]) -> str:
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path) or "/"
