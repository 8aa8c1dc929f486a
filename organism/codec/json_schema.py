"""Shapes → JSON Schema (2020-12), for forms and for the tools of models.

Written here and not by pydantic, whose schema of a plain dataclass says other things than the codec reads: a union
there has no name, a Decimal may be a number, a whole number has no bounds. Bounds of Decimals and dates stand in the
description: JSON Schema has no word for them.
"""

from __future__ import annotations

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
    type_names,
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

References = dict[type, dict[str, Any]]


def json_schema_of(payload: Payload) -> dict[str, Any]:
    """The JSON Schema of a payload; other dataclasses in reach stand under ``$defs``."""
    root, names = payload.root, type_names(payload)
    references = {cls: {"$ref": "#" if cls is root.cls else f"#/$defs/{name}"} for cls, name in names.items()}
    others = {names[cls]: _record(record, references) for cls, record in payload.records.items() if record is not root}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": root.name,
        **_record(root, references),
        **({"$defs": others} if others else {}),
    }


def _record(record: Record, references: References) -> dict[str, Any]:
    schema: dict[str, Any] = {"description": record.doc} if record.doc else {}
    schema |= {"type": "object", "properties": {field.name: _field(field, references) for field in record.fields}}
    required = [field.name for field in record.fields if field.absent is None]
    return schema | ({"required": required} if required else {}) | {"additionalProperties": False}


def _field(field: Field, references: References) -> dict[str, Any]:
    schema = _shape(field.shape, references)
    return {"description": field.doc} | schema if field.doc and "description" not in schema else schema


def _shape(shape: Shape, references: References) -> dict[str, Any]:  # noqa: PLR0911 - one a shape
    match shape:
        case Scalar():
            return _TYPES[shape.kind] | _facets(shape)
        case Options(values):
            return {"enum": list(values)}
        case Maybe(inner):
            return {"anyOf": [_shape(inner, references), {"type": "null"}]}
        case Items(item, facets):
            return {"type": "array", "items": _shape(item, references)} | _counts(facets, "Items")
        case Table(key, value, facets):
            names = {"propertyNames": _shape(key, references)} if _facets(key) else {}
            schema = {"type": "object", "additionalProperties": _shape(value, references)}
            return schema | names | _counts(facets, "Properties")
        case Nested(cls):
            return references[cls]
        case Variant(classes):
            return {"oneOf": [_tagged(cls.__name__, references[cls]) for cls in classes]}


def _tagged(name: str, reference: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {name: reference}, "required": [name], "additionalProperties": False}


def _given(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if value is not None}


def _counts(facets: Facets, what: str) -> dict[str, int]:
    return _given({f"min{what}": facets.min_length, f"max{what}": facets.max_length})


def _facets(scalar: Scalar) -> dict[str, Any]:
    facets, kind = scalar.facets, scalar.kind
    if kind is Kind.STR:
        return _counts(facets, "Length") | _given({"pattern": facets.pattern and facets.pattern.anchored})
    if kind is Kind.BYTES:  # as near as base64 comes to it: three bytes are four characters
        return {name: -(-length // 3) * 4 for name, length in _counts(facets, "Length").items()}
    if kind in (Kind.INT, Kind.FLOAT):
        lows = {"minimum": facets.least, "exclusiveMinimum": facets.above}
        return _given(lows | {"maximum": facets.most, "exclusiveMaximum": facets.below})
    words = facet_words(facets, "")
    return {"description": words} if words else {}
