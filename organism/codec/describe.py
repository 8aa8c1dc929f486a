"""Shapes → what forms, tools and models are shown: JSON Schema (2020-12), an example document, and words.

Pydantic's schema of a dataclass is not what the codec reads: unions have no names, whole numbers no bounds. Bounds of
Decimals and dates stand in the description: JSON Schema has no word for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import inf, nextafter
from typing import Any, Final

from lxml import etree
from lxml.etree import _Element

from organism.codec.lexical import (
    DATE_PATTERN,
    DATETIME_PATTERN,
    DECIMAL_PATTERN,
    LEAST_INT,
    LEXICAL,
    MOST_INT,
    checker,
    facet_words,
)
from organism.codec.shape import (
    FREE,
    LENGTHS,
    RANGES,
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
    inner,
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
    Kind.JSON: {},
    Kind.JSON_OBJECT: {"type": "object", "additionalProperties": True},
}

References = dict[type, dict[str, Any]]

_WORD = "text"
_SAMPLES: dict[Kind, Any] = {
    Kind.INT: 1,
    Kind.FLOAT: 1.5,
    Kind.BOOL: True,
    Kind.DECIMAL: Decimal("12.50"),
    Kind.DATE: date(2026, 1, 31),
    Kind.DATETIME: datetime(2026, 1, 31, 12, tzinfo=UTC),
    Kind.JSON: {"key": "value"},
    Kind.JSON_OBJECT: {"key": "value"},
}
_DAY, _SECOND = timedelta(days=1), timedelta(seconds=1)
_UNITS: dict[Kind, Any] = {Kind.INT: 1, Kind.DECIMAL: 1, Kind.DATE: _DAY, Kind.DATETIME: _SECOND}


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


def json_schema_of_any(payloads: Iterable[Payload]) -> dict[str, Any]:
    """The JSON Schema of an object that is one of several payloads; each has its dataclasses under ``$defs``."""
    choices: list[dict[str, Any]] = []
    defined: dict[str, Any] = {}
    for payload in payloads:
        root = payload.root
        names = {
            cls: root.name if cls is root.cls else f"{root.name}.{name}" for cls, name in type_names(payload).items()
        }
        references = {cls: {"$ref": f"#/$defs/{name}"} for cls, name in names.items()}
        choices.append(references[root.cls])
        defined |= {names[cls]: _record(record, references) for cls, record in payload.records.items()}
    return {"type": "object", "anyOf": choices, "$defs": defined}


_TYPE_NAMES: Final = {str: "string", bool: "boolean", int: "integer", float: "number"}


def json_schema_by_value(value: Any) -> dict[str, Any]:
    """The JSON Schema of values like this one (JSON), whose type has no other description; of null, anything."""
    if isinstance(value, dict):
        return {"type": "object", "properties": {name: json_schema_by_value(each) for name, each in value.items()}}
    if isinstance(value, list):
        first, *others = [json_schema_by_value(each) for each in value] or [{}]
        return {"type": "array", "items": first if all(each == first for each in others) else {}}
    name = _TYPE_NAMES.get(type(value))
    return {} if name is None else {"type": name}


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
            closed = {"type": "object", "additionalProperties": False}
            tagged = ((cls.__name__, references[cls]) for cls in classes)
            return {"oneOf": [closed | {"properties": {name: of}, "required": [name]} for name, of in tagged]}


def _counts(facets: Facets, what: str) -> dict[str, Any]:
    return {limit.json + what: limit.of(facets) for limit in LENGTHS if limit.of(facets) is not None}


def _facets(scalar: Scalar) -> dict[str, Any]:
    facets, kind = scalar.facets, scalar.kind
    if kind is Kind.STR:
        return _counts(facets, "Length") | ({"pattern": facets.pattern.anchored} if facets.pattern else {})
    if kind is Kind.BYTES:  # as near as base64 comes to it: three bytes are four characters
        return {name: -(-length // 3) * 4 for name, length in _counts(facets, "Length").items()}
    if kind in (Kind.INT, Kind.FLOAT):
        return {limit.json: limit.of(facets) for limit in RANGES if limit.of(facets) is not None}
    words = facet_words(facets, "")
    return {"description": words} if words else {}


# ── an example, and how to write one ─────────────────────────────────────────────────────────────────────────────────


def example_of(payload: Payload) -> _Element:
    """A document of the payload with every field once; recursion is left out."""
    root = etree.Element(payload.root.name)
    _Filler(payload).record(root, payload.root)
    etree.indent(root)
    return root


def usage_of(payload: Payload, example: str) -> str:
    """The text that tells a model how to write the payload: its purpose, an example, each field's type and limits."""
    root = payload.root
    head = f"{root.name}: {root.doc}" if root.doc else root.name
    others = [record for record in payload.records.values() if record is not root]
    blocks = [head, f"Write it as this XML, fields in this order:\n{example.strip()}", _fields(root, "Fields")]
    for record in others:
        doc = f" ({record.doc})" if record.doc else ""
        blocks.append(_fields(record, f"Fields of {record.name}{doc}"))
    return "\n".join(blocks) + "\n"


class _Filler:
    """Fills elements with examples; ``_open`` are the records being filled, so that recursion ends."""

    def __init__(self, payload: Payload) -> None:
        self._records = payload.records
        self._open: list[type] = []

    def record(self, element: _Element, record: Record) -> None:
        self._open.append(record.cls)
        for field in record.fields:
            if field.absent is None or not self._returns(field.shape):
                self._fill(etree.SubElement(element, field.name), field.shape)
        self._open.pop()

    def _returns(self, shape: Shape) -> bool:
        """Whether the example of ``shape`` would lead back to a record that is being filled."""
        match inner(shape):
            case Nested(cls):
                return cls in self._open
            case Variant(classes):
                return all(cls in self._open for cls in classes)
            case Items(item) as items:
                return bool(items.facets.min_length) and self._returns(item)
            case _:
                return False

    def _fill(self, element: _Element, shape: Shape) -> None:
        match inner(shape):
            case Scalar() as scalar:
                element.text = _text(scalar)
            case Options(values):
                element.text = str(values[0])
            case Nested(cls):
                self.record(element, self._records[cls])
            case Variant(classes):
                cls = next((cls for cls in classes if cls not in self._open), classes[0])
                self.record(etree.SubElement(element, cls.__name__), self._records[cls])
            case Items(item, facets):
                for _ in range(self._times(item, facets)):
                    self._fill(etree.SubElement(element, "item"), item)
            case Table(key, value, facets):
                for number in range(self._times(value, facets)):
                    name = "name" if key.facets == FREE else _text(key)
                    self._fill(etree.SubElement(element, "item", key=f"{name}{number or ''}"), value)

    def _times(self, shape: Shape, facets: Facets) -> int:
        usual = 0 if self._returns(shape) or facets.max_length == 0 else 1
        return max(usual, facets.min_length or 0)


def _text(scalar: Scalar) -> str:
    facets = scalar.facets
    if scalar.kind is Kind.STR:
        least = facets.min_length or 0
        if facets.pattern:
            return facets.pattern.example(least)
        return (_WORD * (-(-least // len(_WORD)) or 1))[: max(least, min(len(_WORD), facets.max_length or len(_WORD)))]
    if scalar.kind is Kind.BYTES:
        octets = b"bytes" if facets.max_length is None else b"bytes"[: facets.max_length]
        return LEXICAL[Kind.BYTES].text(octets.ljust(facets.min_length or 0, b"."))
    return LEXICAL[scalar.kind].text(_within(scalar))


def _within(scalar: Scalar) -> Any:
    """A value within the bounds: the usual sample, else a bound, its neighbour, or the middle."""
    kind, facets = scalar.kind, scalar.facets
    bounds: list[Any] = [facets.least, facets.above, facets.most, facets.below]
    bounds = [bound for bound in bounds if bound is not None]
    values = [_SAMPLES[kind], *bounds]
    if kind is Kind.FLOAT:
        values += [nextafter(bound, end) for bound in bounds for end in (inf, -inf)]
    elif kind in _UNITS:
        values += [bound + step for bound in bounds for step in (_UNITS[kind], -_UNITS[kind])]
    values += [low + (high - low) / 2 for low in bounds[:1] for high in bounds[1:]]
    return next((value for value in values if checker(scalar)(value) is None), values[0])


def _fields(record: Record, title: str) -> str:
    if not record.fields:
        return f"{title}: none"
    lines = [f"{title}:"]
    for field in record.fields:
        left_out = "; may be left out" if field.absent is not None else ""
        doc = f". {field.doc}" if field.doc else ""
        lines.append(f"- {field.name}: {_words(field.shape)}{left_out}{doc}")
    return "\n".join(lines)


def _words(shape: Shape) -> str:
    match inner(shape):
        case Scalar(kind, facets):
            limits = facet_words(facets, "bytes" if kind is Kind.BYTES else "characters")
            return kind.value + (f", {limits}" if limits else "")
        case Options(values):
            return "one of " + ", ".join(map(str, values))
        case Items(item, facets):
            limits = facet_words(facets, "items")
            return f"list, one <item> each: {_words(item)}" + (f" ({limits})" if limits else "")
        case Table(_, value, facets):
            limits = facet_words(facets, "items")
            return f'table, one <item key="…"> each: {_words(value)}' + (f" ({limits})" if limits else "")
        case Nested(cls):
            return cls.__name__
        case Variant(classes):
            return "one of the elements " + ", ".join(cls.__name__ for cls in classes)
