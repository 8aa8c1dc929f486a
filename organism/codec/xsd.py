"""Shapes → XSD, built as elements: one builder for the XSD of a class, shown, and the combined one, enforced."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lxml import etree
from lxml.etree import _Element

from organism.codec.lexical import BYTES_PATTERN, DATE_PATTERN, DATETIME_PATTERN, MOST_FLOAT, TEXT_OF
from organism.codec.limits import ENVELOPE, XSD
from organism.codec.shape import (
    FREE,
    Bound,
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
)

_BASES = {
    Kind.STR: "string",
    Kind.INT: "long",
    Kind.FLOAT: "double",
    Kind.BOOL: "boolean",
    Kind.DECIMAL: "decimal",
    Kind.BYTES: "base64Binary",
    Kind.DATE: "date",
    Kind.DATETIME: "dateTime",
}
_PATTERNS = {Kind.BYTES: BYTES_PATTERN, Kind.DATE: DATE_PATTERN, Kind.DATETIME: DATETIME_PATTERN}
NAME_BEGIN, NAME_REST = "[A-Za-z]", r"[A-Za-z0-9_.\-]"
MAX_NAME_CHARS = 128
MAX_TOKEN_CHARS = 256
_PREFIX = "e"


def payload_xsd(payload: Payload, *, enforced: bool = False) -> _Element:
    """The schema of one class, standing alone: no namespace, root element = class name.

    The ``enforced`` one has no patterns of the class: libxml2 may take for ever to match them (adr/0051).
    """
    schema = _schema({"xs": XSD})
    types = _Types(schema, payload, prefix="", scope="", enforced=enforced)
    types.element(schema, payload.root.name, Nested(payload.root.cls))
    types.define()
    return schema


def envelope_xsd(payloads: Iterable[Payload] | None = None) -> _Element:
    """The schema of the envelope: of any payload (None), or of the given ones and no other.

    One document serves for both namespaces, since the elements of payloads are local ones, which have none: so nothing
    is imported (S13), and libxml2 checks envelope and payload in one pass.
    """
    schema = _schema({"xs": XSD, _PREFIX: ENVELOPE})
    schema.set("targetNamespace", ENVELOPE)
    _envelope_types(schema)
    content = _sequence(_complex(_sub(schema, "element", name="message")))
    _sub(content, "element", name="meta", type=f"{_PREFIX}:meta", form="qualified")
    if payloads is None:
        _sub(content, "any", namespace="##local", processContents="lax")
        return schema
    choice = _sub(content, "choice")
    for payload in payloads:
        types = _Types(schema, payload, prefix=f"{_PREFIX}:", scope=f"{payload.root.name}-", enforced=True)
        types.element(choice, payload.root.name, Nested(payload.root.cls))
        types.define()
    return schema


def text_of(schema: _Element) -> str:
    """The schema as a file has it."""
    etree.indent(schema)
    return etree.tostring(schema, encoding="unicode") + "\n"


class _Types:
    """Writes the types of one payload into a schema, each record one named type.

    ``prefix`` qualifies references, ``scope`` keeps the type names of several payloads in one schema apart.
    """

    def __init__(self, schema: _Element, payload: Payload, *, prefix: str, scope: str, enforced: bool) -> None:
        self._schema = schema
        self._payload = payload
        self._prefix = prefix
        self._names = _distinct(payload.records.values(), scope)
        self._scope = scope
        self._enforced = enforced
        self._simple_types = 0

    def define(self) -> None:
        """Add each record's type to the schema."""
        for record in self._payload.records.values():
            kind = _sub(self._schema, "complexType", name=self._names[record.cls])
            _document(kind, record.doc)
            fields = _sequence(kind)
            for field in record.fields:
                self._field(fields, field)

    def element(self, parent: _Element, name: str, shape: Shape) -> _Element:
        """Add the declaration of an element to ``parent``."""
        element = _sub(parent, "element", name=name)
        plain = inner(shape)
        if isinstance(plain, Nested):
            element.set("type", self._prefix + self._names[plain.cls])
        elif isinstance(plain, Scalar) and _is_bare(plain):
            element.set("type", _base(plain.kind))
        elif isinstance(plain, Scalar | Options):
            self._restrict(_sub(element, "simpleType"), plain)
        else:
            self._content(_complex(element), plain)
        return element

    def _field(self, parent: _Element, field: Field) -> None:
        element = self.element(parent, field.name, field.shape)
        if field.absent is not None:
            element.set("minOccurs", "0")
        if field.nil:
            element.set("nillable", "true")
        _document(element, field.doc, first=True)

    def _content(self, kind: _Element, shape: Items | Table | Variant) -> None:
        match shape:
            case Items(item, facets):
                _repeated(self._item(_sequence(kind), item), facets)
            case Table(key, value, facets):
                self._entry(_sequence(kind), key, value, facets)
            case Variant(classes):
                choice = _sub(kind, "choice")
                for cls in classes:
                    self.element(choice, cls.__name__, Nested(cls))

    def _item(self, parent: _Element, shape: Shape) -> _Element:
        element = self.element(parent, "item", shape)
        if isinstance(shape, Maybe):
            element.set("nillable", "true")
        return element

    def _entry(self, parent: _Element, key: Scalar, value: Shape, facets: Facets) -> None:
        """An item of a dict: the value's type with the key as an attribute."""
        element = _sub(parent, "element", name="item")
        if isinstance(value, Maybe):
            element.set("nillable", "true")
        _repeated(element, facets)
        kind = _complex(element)
        plain = inner(value)
        holder = kind
        match plain:
            case Scalar() | Options():
                holder = _sub(_sub(kind, "simpleContent"), "extension", base=self._simple(plain))
            case Nested(cls):
                holder = _sub(_sub(kind, "complexContent"), "extension", base=self._prefix + self._names[cls])
            case _:
                self._content(kind, plain)
        attribute = _sub(holder, "attribute", name="key", use="required")
        if _is_bare(key):
            attribute.set("type", _base(key.kind))
        else:
            self._restrict(_sub(attribute, "simpleType"), key)

    def _simple(self, shape: Scalar | Options) -> str:
        """The name of a simple type; an extension can only be of a named one."""
        if isinstance(shape, Scalar) and _is_bare(shape):
            return _base(shape.kind)
        self._simple_types += 1
        name = f"{self._scope}value-{self._simple_types}"
        self._restrict(_sub(self._schema, "simpleType", name=name), shape)
        return self._prefix + name

    def _restrict(self, kind: _Element, shape: Scalar | Options) -> None:
        if isinstance(shape, Scalar) and self._enforced:
            shape = replace(shape, facets=replace(shape.facets, pattern=None))
        _restrict(kind, shape)


def _distinct(records: Iterable[Record], scope: str) -> dict[type, str]:
    """A name for each record's type; two classes of one name get a number."""
    names: dict[type, str] = {}
    for record in records:
        same = sum(known.__name__ == record.name for known in names)
        names[record.cls] = f"{scope}{record.name}" + (f"-{same + 1}" if same else "")
    return names


def _is_bare(scalar: Scalar) -> bool:
    return scalar.facets == FREE and scalar.kind not in (Kind.FLOAT, *_PATTERNS)


def _restrict(kind: _Element, shape: Scalar | Options) -> None:
    if isinstance(shape, Options):
        restriction = _sub(kind, "restriction", base="xs:long" if shape.numeric else "xs:string")
        for option in shape.values:
            _sub(restriction, "enumeration", value=str(option))
        return
    restriction = _sub(kind, "restriction", base=_base(shape.kind))
    pattern = shape.facets.pattern.text if shape.facets.pattern else _PATTERNS.get(shape.kind)
    facets: list[tuple[str, object]] = [
        ("minLength", shape.facets.min_length),
        ("maxLength", shape.facets.max_length),
        ("pattern", pattern),
        *_bounds(shape),
    ]
    for name, value in facets:
        if value is not None:
            _sub(restriction, name, value=str(value))


def _bounds(shape: Scalar) -> Iterable[tuple[str, str | None]]:
    """A double is always bounded: that leaves out NaN and the infinities."""
    facets, kind = shape.facets, shape.kind
    least, most = facets.least, facets.most
    if kind is Kind.FLOAT:
        least = -MOST_FLOAT if least is None and facets.above is None else least
        most = MOST_FLOAT if most is None and facets.below is None else most
    yield "minInclusive", _bound(kind, least)
    yield "minExclusive", _bound(kind, facets.above)
    yield "maxInclusive", _bound(kind, most)
    yield "maxExclusive", _bound(kind, facets.below)


def _bound(kind: Kind, bound: Bound | None) -> str | None:
    return None if bound is None else TEXT_OF[kind](bound)


def _repeated(element: _Element, facets: Facets) -> None:
    element.set("minOccurs", str(facets.min_length or 0))
    element.set("maxOccurs", "unbounded" if facets.max_length is None else str(facets.max_length))


def _envelope_types(schema: _Element) -> None:
    meta = _sequence(_sub(schema, "complexType", name="meta"))
    for name, kind in (("from", "name"), ("to", "name"), ("thread", "token")):
        _sub(meta, "element", name=name, type=f"{_PREFIX}:{kind}", form="qualified")
    name_type = _sub(_sub(schema, "simpleType", name="name"), "restriction", base="xs:string")
    _sub(name_type, "maxLength", value=str(MAX_NAME_CHARS))
    _sub(name_type, "pattern", value=f"{NAME_BEGIN}{NAME_REST}*")
    token_type = _sub(_sub(schema, "simpleType", name="token"), "restriction", base="xs:string")
    _sub(token_type, "minLength", value="1")
    _sub(token_type, "maxLength", value=str(MAX_TOKEN_CHARS))


def _schema(namespaces: dict[str, str]) -> _Element:
    """No type of a schema may be taken for another (``xsi:type``)."""
    return etree.Element(f"{{{XSD}}}schema", {"blockDefault": "#all"}, nsmap=namespaces)


def _sub(parent: _Element, tag: str, **attributes: str) -> _Element:
    return etree.SubElement(parent, f"{{{XSD}}}{tag}", attributes)


def _complex(element: _Element) -> _Element:
    return _sub(element, "complexType")


def _sequence(kind: _Element) -> _Element:
    return _sub(kind, "sequence")


def _base(kind: Kind) -> str:
    return f"xs:{_BASES[kind]}"


def _document(parent: _Element, text: str, *, first: bool = False) -> None:
    if not text:
        return
    annotation = etree.Element(f"{{{XSD}}}annotation")
    etree.SubElement(annotation, f"{{{XSD}}}documentation").text = text
    if first:
        parent.insert(0, annotation)
    else:
        parent.append(annotation)
