"""Shapes → JSON Schema (2020-12), for forms and for the tools of models.

Written here and not by pydantic, whose schema of a plain dataclass says other things than the codec reads: a union
there has no name, a Decimal may be a number, a whole number has no bounds. Bounds of Decimals and dates stand in the
description: JSON Schema has no word for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from organism.codec.example import facet_words
from organism.codec.lexical import DATE_PATTERN, DATETIME_PATTERN, DECIMAL_PATTERN, LEAST_INT, MOST_INT
from organism.codec.shape import (
    Facets,
    Field,
    Items,
    Kind,
    Maybe,
    Nested,
    Options,
    Payload,
    Record,
    Scalar,
    Shape,
    Table,
    Variant,
)

_BASE64 = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$"
_TYPES: dict[Kind, dict[str, Any]] = {
    Kind.STR: {"type": "string"},
    Kind.INT: {"type": "integer", "minimum": LEAST_INT, "maximum": MOST_INT},
    Kind.FLOAT: {"type": "number"},
    Kind.BOOL: {"type": "boolean"},
    Kind.DECIMAL: {"type": "string", "pattern": f"^({DECIMAL_PATTERN})$"},
    Kind.BYTES: {"type": "string", "contentEncoding": "base64", "pattern": _BASE64},
    Kind.DATE: {"type": "string", "format": "date", "pattern": f"^{DATE_PATTERN}$"},
    Kind.DATETIME: {"type": "string", "format": "date-time", "pattern": f"^{DATETIME_PATTERN}$"},
}


def json_schema_of(payload: Payload) -> dict[str, Any]:
    """The JSON Schema of a payload; other dataclasses in reach stand under ``$defs``."""
    builder = _Builder(payload)
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": payload.root.name,
        **builder.record(payload.root),
    }
    others = {
        builder.names[cls]: builder.record(record)
        for cls, record in payload.records.items()
        if record is not payload.root
    }
    return schema | ({"$defs": others} if others else {})


class _Builder:
    def __init__(self, payload: Payload) -> None:
        self._root = payload.root.cls
        self.names: dict[type, str] = {}
        for cls in payload.records:
            same = sum(known.__name__ == cls.__name__ for known in self.names)
            self.names[cls] = cls.__name__ + (f"-{same + 1}" if same else "")

    def record(self, record: Record) -> dict[str, Any]:
        schema: dict[str, Any] = {"description": record.doc} if record.doc else {}
        schema |= {"type": "object", "properties": {field.name: self._field(field) for field in record.fields}}
        required = [field.name for field in record.fields if field.absent is None]
        return schema | ({"required": required} if required else {}) | {"additionalProperties": False}

    def _field(self, field: Field) -> dict[str, Any]:
        schema = self._shape(field.shape)
        return {"description": field.doc} | schema if field.doc and "description" not in schema else schema

    def _shape(self, shape: Shape) -> dict[str, Any]:  # noqa: PLR0911 - one a shape
        match shape:
            case Scalar():
                return _TYPES[shape.kind] | dict(_facets(shape))
            case Options(values):
                return {"enum": list(values)}
            case Maybe(inner):
                return {"anyOf": [self._shape(inner), {"type": "null"}]}
            case Items(item, facets):
                return {"type": "array", "items": self._shape(item)} | dict(_counts(facets, "Items"))
            case Table(key, value, facets):
                names = {"propertyNames": self._shape(key)} if dict(_facets(key)) else {}
                return (
                    {"type": "object", "additionalProperties": self._shape(value)}
                    | names
                    | dict(_counts(facets, "Properties"))
                )
            case Nested(cls):
                return self._reference(cls)
            case Variant(classes):
                return {"oneOf": [self._tagged(cls) for cls in classes]}

    def _reference(self, cls: type) -> dict[str, Any]:
        return {"$ref": "#" if cls is self._root else f"#/$defs/{self.names[cls]}"}

    def _tagged(self, cls: type) -> dict[str, Any]:
        name = cls.__name__
        return {
            "type": "object",
            "properties": {name: self._reference(cls)},
            "required": [name],
            "additionalProperties": False,
        }


def _counts(facets: Facets, what: str) -> Iterator[tuple[str, int]]:
    if facets.min_length is not None:
        yield f"min{what}", facets.min_length
    if facets.max_length is not None:
        yield f"max{what}", facets.max_length


def _facets(scalar: Scalar) -> Iterator[tuple[str, Any]]:
    facets, kind = scalar.facets, scalar.kind
    if kind is Kind.STR:
        yield from _counts(facets, "Length")
        if facets.pattern:
            yield "pattern", facets.pattern.anchored
    elif kind is Kind.BYTES:  # as near as base64 comes to it: three bytes are four characters
        yield from ((name, -(-length // 3) * 4) for name, length in _counts(facets, "Length"))
    elif kind in (Kind.INT, Kind.FLOAT):
        bounds = (
            ("minimum", facets.least),
            ("exclusiveMinimum", facets.above),
            ("maximum", facets.most),
            ("exclusiveMaximum", facets.below),
        )
        yield from ((name, bound) for name, bound in bounds if bound is not None)
    elif facet_words(facets, ""):
        yield "description", facet_words(facets, "")
