"""The JSON Schema of a tool of strangers: checked before it is believed, and asked with bounds.

A schema can be large, reach into the network by its references, or hold a pattern that takes for ever. Here it is
small, alone, and its patterns are of a linear engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

import jsonschema_rs
import orjson

MOST_SCHEMA_BYTES: Final = 64 * 1024
MOST_FAULTS: Final = 10
MOST_CHARACTERS: Final = 200


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

    def faults(self, arguments: object) -> list[str]:
        """What is wrong with the arguments, each with its JSON pointer; at most ten."""
        found = islice(self._validator.iter_errors(arguments), MOST_FAULTS)
        return [f"{_pointer(error.instance_path)}: {error.message[:MOST_CHARACTERS]}" for error in found]


def _pointer(path: list[str | int]) -> str:
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path) or "/"
