"""Shapes → an example document, and the words that tell a model how to write one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import inf, nextafter
from typing import Any

from lxml import etree
from lxml.etree import _Element

from organism.codec.lexical import LEXICAL, scalar_fault
from organism.codec.shape import (
    FREE,
    Facets,
    Items,
    Kind,
    Nested,
    Options,
    Payload,
    Record,
    Scalar,
    Shape,
    Table,
    Variant,
    inner,
)

_WORD = "text"
_SAMPLES: dict[Kind, Any] = {
    Kind.INT: 1,
    Kind.FLOAT: 1.5,
    Kind.BOOL: True,
    Kind.DECIMAL: Decimal("12.50"),
    Kind.DATE: date(2026, 1, 31),
    Kind.DATETIME: datetime(2026, 1, 31, 12, tzinfo=UTC),
}
_UNITS: dict[Kind, Any] = {
    Kind.INT: 1,
    Kind.DECIMAL: 1,
    Kind.DATE: timedelta(days=1),
    Kind.DATETIME: timedelta(seconds=1),
}


def example_of(payload: Payload) -> _Element:
    """A document of the payload with every field once; what would hold itself is left out."""
    root = etree.Element(payload.root.name)
    _Filler(payload).record(root, payload.root)
    etree.indent(root)
    return root


def usage_of(payload: Payload, example: str) -> str:
    """What a model must know to write the payload: what it is for, how it looks, what each field takes."""
    root = payload.root
    head = f"{root.name}: {root.doc}" if root.doc else root.name
    others = [record for record in payload.records.values() if record is not root]
    blocks = [head, f"Write it as this XML, fields in this order:\n{example.strip()}", _fields(root, "Fields")]
    for record in others:
        doc = f" ({record.doc})" if record.doc else ""
        blocks.append(_fields(record, f"Fields of {record.name}{doc}"))
    return "\n".join(blocks) + "\n"


def facet_words(facets: Facets, what: str) -> str:
    """The constraints as a person says them; lengths count ``what``."""
    return ", ".join(_facet_words(facets, what))


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
        """Whether the example of ``shape`` would come back to a record that is being filled."""
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
                    self._fill(etree.SubElement(element, "item", key=_key(key, number)), value)

    def _times(self, shape: Shape, facets: Facets) -> int:
        usual = 0 if self._returns(shape) or facets.max_length == 0 else 1
        return max(usual, facets.min_length or 0)


def _key(key: Scalar, number: int) -> str:
    text = "name" if key.facets == FREE else _text(key)
    return text + str(number) if number else text


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
    """A value between the bounds: the usual sample if it is, else a bound, one beside it, or the middle."""
    kind, facets = scalar.kind, scalar.facets
    bounds: list[Any] = [facets.least, facets.above, facets.most, facets.below]
    bounds = [bound for bound in bounds if bound is not None]
    values = [_SAMPLES[kind], *bounds]
    if kind is Kind.FLOAT:
        values += [nextafter(bound, end) for bound in bounds for end in (inf, -inf)]
    elif kind in _UNITS:
        values += [bound + step for bound in bounds for step in (_UNITS[kind], -_UNITS[kind])]
    values += [low + (high - low) / 2 for low in bounds[:1] for high in bounds[1:]]
    return next((value for value in values if scalar_fault(scalar, value) is None), values[0])


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────────


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


def _facet_words(facets: Facets, what: str) -> Iterator[str]:
    if facets.min_length is not None:
        yield f"at least {facets.min_length} {what}"
    if facets.max_length is not None:
        yield f"at most {facets.max_length} {what}"
    if facets.pattern is not None:
        yield f"of the pattern {facets.pattern.text}"
    if facets.least is not None:
        yield f"{facets.least} or more"
    if facets.above is not None:
        yield f"more than {facets.above}"
    if facets.most is not None:
        yield f"{facets.most} or less"
    if facets.below is not None:
        yield f"less than {facets.below}"
