"""Checks values against a JSON Schema with ``jsonschema_rs``; the faults are in this project's words."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from organism.config.faults import near
from organism.config.json_text import MAX_FAULTS, MAX_SHOWN, came
from organism.errors import Fault, pointer

TYPES: Final[Mapping[str, str]] = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}
"""The types of JSON Schema, and their names in messages."""

MAX_NAMED: Final = 20
MAX_MESSAGE: Final = 200


class JsonSchema:
    """A compiled schema that fetches nothing; its patterns run on a linear engine. Raises ``ValueError``."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        import jsonschema_rs  # at the first schema: the front door needs the standard library alone

        self._validator = jsonschema_rs.validator_for(
            dict(schema), offline=True, pattern_options=jsonschema_rs.RegexOptions()
        )

    def is_valid(self, value: object) -> bool:
        """Whether the value is valid; faster than ``faults``."""
        return self._validator.is_valid(value)

    def faults(self, value: object, place: str = "", most: int = MAX_FAULTS) -> list[Fault]:
        """What is wrong with the value, which stands at ``place``: one fault for each JSON pointer."""
        if self.is_valid(value):
            return []
        found: dict[str, str] = {}
        for error in islice(self._validator.iter_errors(value), most):
            where = place + "".join(pointer("", step) for step in error.instance_path)
            for inner, message in _described(error):
                blamed = where if inner is None else pointer(where, inner)
                if blamed not in found or error.kind.name == "type":
                    found[blamed] = message
        return [Fault(where, message) for where, message in found.items()]


def _described(error: Any) -> list[tuple[str | None, str]]:
    """The member at fault, or None for the value itself; what was expected and what came."""
    kind, value = error.kind, error.instance
    match kind.name:
        case "required":
            return [(kind.property, "is missing")]
        case "additionalProperties":
            return [(name[:MAX_SHOWN], f"`{name[:MAX_SHOWN]}` is not known here") for name in kind.unexpected]
        case "type":
            return [(None, f"expected {' or '.join(TYPES[each] for each in kind.types)}, came {came(value)}")]
        case "enum":
            return [(None, _not_among(value, kind.options))]
        case "const":
            return [(None, f"expected {came(kind.expected_value)}, came {came(value)}")]
        case _:
            return [(None, error.message[:MAX_MESSAGE])]


def _not_among(value: Any, allowed: list[Any]) -> str:
    listed = ", ".join(came(each).removesuffix(" (text)") for each in allowed[:MAX_NAMED])
    more = f" and {len(allowed) - MAX_NAMED} more" if len(allowed) > MAX_NAMED else ""
    hint = near(value, [each for each in allowed if isinstance(each, str)]) if isinstance(value, str) else ""
    return f"expected one of {listed}{more}, came {came(value)}{hint}"


def fitted(value: Any, schema: Mapping[str, Any]) -> Any:
    """A value that is valid, with its fields in the schema's order and ``3.0`` as 3 where a whole number is expected.

    Fields that the schema does not name are left out, unless it says ``additionalProperties: true``.
    """
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        known = {name: fitted(value[name], inner) for name, inner in properties.items() if name in value}
        takes_more = schema.get("additionalProperties", "properties" not in schema)
        return {**known, **{name: value[name] for name in value if name not in properties}} if takes_more else known
    if isinstance(value, list):
        return [fitted(item, schema.get("items", {})) for item in value]
    types = schema.get("type", [])
    is_whole = isinstance(value, float) and "integer" in types and "number" not in types
    return int(value) if is_whole else value
