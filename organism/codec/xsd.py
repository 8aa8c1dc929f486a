"""Shapes → XSD, built as elements: one builder for the XSD of a class, shown, and the combined one, enforced."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lxml import etree
from lxml.etree import _Element

from organism.codec.lexical import BYTES_PATTERN, DATE_PATTERN, DATETIME_PATTERN, LEXICAL, MOST_FLOAT
from organism.codec.limits import ENVELOPE, XSD
from organism.codec.shape import (
    FREE,
    LENGTHS,
    RANGES,
    Facets,
    Items,
    Kind,
    Maybe,
    Nested,
    Options,
    Payload,
    Scalar,
    Shape,
    Table,
    Variant,
    inner,
    type_names,
)

_BASES = {
    Kind.STR: "xs:string",
    Kind.INT: "xs:long",
    Kind.FLOAT: "xs:double",
    Kind.BOOL: "xs:boolean",
    Kind.DECIMAL: "xs:decimal",
    Kind.BYTES: "xs:base64Binary",
    Kind.DATE: "xs:date",
    Kind.DATETIME: "xs:dateTime",
}
_JSON_TYPES = {Kind.JSON: "json-value", Kind.JSON_OBJECT: "json-object"}
"""Simple types of their own; no class can have such a name."""
_PATTERNS = {Kind.BYTES: BYTES_PATTERN, Kind.DATE: DATE_PATTERN, Kind.DATETIME: DATETIME_PATTERN}
_NAME_PATTERN = r"[A-Za-z][A-Za-z0-9_.\-]*"
_MAX_NAME_CHARS = 128
_MAX_TOKEN_CHARS = 256


def payload_xsd(payload: Payload, *, enforced: bool = False) -> _Element:
    """The schema of one class, standing alone; ``enforced``: without patterns, which may never end (adr/0051)."""
    schema = _schema({"xs": XSD})
    _Types(schema, payload, prefix="", scope="", enforced=enforced).declare(schema)
    return schema


def envelope_xsd(payloads: Iterable[Payload] | None = None) -> _Element:
    """The schema of the envelope: of any payload (None), or of the given ones and no other.

    One document serves for both namespaces, since the elements of payloads are local ones, which have none: so nothing
    is imported (S13), and libxml2 checks envelope and payload in one pass.
    """
    schema = _schema({"xs": XSD, "e": ENVELOPE})
    schema.set("targetNamespace", ENVELOPE)
    meta = _sub(_sub(schema, "complexType", name="meta"), "sequence")
    for name, kind in (("from", "name"), ("to", "name"), ("thread", "token")):
        _sub(meta, "element", name=name, type=f"e:{kind}", form="qualified")
    name_type = _sub(_sub(schema, "simpleType", name="name"), "restriction", base="xs:string")
    _facet(name_type, "maxLength", _MAX_NAME_CHARS)
    _facet(name_type, "pattern", _NAME_PATTERN)
    token_type = _sub(_sub(schema, "simpleType", name="token"), "restriction", base="xs:string")
    _facet(token_type, "minLength", 1)
    _facet(token_type, "maxLength", _MAX_TOKEN_CHARS)
    content = _sub(_sub(schema, "element", name="message"), "complexType", "sequence")
    _sub(content, "element", name="meta", type="e:meta", form="qualified")
    if payloads is None:
        _sub(content, "any", namespace="##local", processContents="lax")
        return schema
    choice = _sub(content, "choice")
    for payload in payloads:
        _Types(schema, payload, prefix="e:", scope=f"{payload.root.name}-", enforced=True).declare(choice)
    return schema


def text_of(schema: _Element) -> str:
    """The schema as a file has it."""
    etree.indent(schema)
    return etree.tostring(schema, encoding="unicode") + "\n"


def element_names(schema: _Element) -> frozenset[str]:
    """Each name that an element may have in a document of the schema."""
    return frozenset(str(element.get("name")) for element in schema.iter(f"{{{XSD}}}element"))


class _Types:
    """Writes the types of one payload, one a record; ``prefix`` qualifies references, ``scope`` keeps names apart."""

    def __init__(self, schema: _Element, payload: Payload, *, prefix: str, scope: str, enforced: bool) -> None:
        self._schema = schema
        self._payload = payload
        self._prefix = prefix
        self._scope = scope
        self._names = {cls: scope + name for cls, name in type_names(payload).items()}
        self._enforced = enforced
        self._simple_types = 0

    def declare(self, parent: _Element) -> None:
        """Add the root's element to ``parent``, and each record's type to the schema."""
        self._element(parent, self._payload.root.name, Nested(self._payload.root.cls))
        for record in self._payload.records.values():
            kind = _sub(self._schema, "complexType", name=self._names[record.cls])
            _document(kind, record.doc)
            fields = _sub(kind, "sequence")
            for field in record.fields:
                element = self._element(fields, field.name, field.shape)
                if field.absent is not None:
                    element.set("minOccurs", "0")
                if field.nil:
                    element.set("nillable", "true")
                _document(element, field.doc)

    def _element(self, parent: _Element, name: str, shape: Shape) -> _Element:
        """Add the declaration of an element to ``parent``."""
        element = _sub(parent, "element", name=name)
        match inner(shape):
            case Nested(cls):
                element.set("type", self._prefix + self._names[cls])
            case Scalar() | Options() as simple:
                self._typed(element, simple)
            case container:
                self._content(_sub(element, "complexType"), container)
        return element

    def _content(self, kind: _Element, shape: Items | Table | Variant) -> None:
        match shape:
            case Items(item, facets):
                _repeat(self._element(_sub(kind, "sequence"), "item", item), item, facets)
            case Table():
                self._entry(_sub(kind, "sequence"), shape)
            case Variant(classes):
                choice = _sub(kind, "choice")
                for cls in classes:
                    self._element(choice, cls.__name__, Nested(cls))

    def _entry(self, parent: _Element, table: Table) -> None:
        """An item of a dict: the value's type with the key as an attribute."""
        element = _sub(parent, "element", name="item")
        _repeat(element, table.value, table.facets)
        kind = _sub(element, "complexType")
        match inner(table.value):
            case Scalar() | Options() as simple:
                kind = _sub(kind, "simpleContent", "extension", base=self._named_simple(simple))
            case Nested(cls):
                kind = _sub(kind, "complexContent", "extension", base=self._prefix + self._names[cls])
            case container:
                self._content(kind, container)
        self._typed(_sub(kind, "attribute", name="key", use="required"), table.key)

    def _named_simple(self, shape: Scalar | Options) -> str:
        """The name of a simple type; an extension can only be of a named one."""
        if _is_bare(shape):
            return self._base(shape)
        self._simple_types += 1
        name = f"{self._scope}value-{self._simple_types}"
        self._restrict(_sub(self._schema, "simpleType", name=name), shape)
        return self._prefix + name

    def _typed(self, holder: _Element, shape: Scalar | Options) -> None:
        """Give an element or attribute its simple type."""
        if _is_bare(shape):
            holder.set("type", self._base(shape))
        else:
            self._restrict(_sub(holder, "simpleType"), shape)

    def _restrict(self, kind: _Element, shape: Scalar | Options) -> None:
        restriction = _sub(kind, "restriction", base=self._base(shape))
        if isinstance(shape, Options):
            for option in shape.values:
                _facet(restriction, "enumeration", option)
            return
        facets, text_of = shape.facets, LEXICAL[shape.kind].text
        pattern = facets.pattern.text if facets.pattern and not self._enforced else _PATTERNS.get(shape.kind)
        if shape.kind is Kind.FLOAT:  # always bounded: that leaves out NaN and the infinities
            facets = replace(
                facets,
                least=-MOST_FLOAT if facets.least is facets.above is None else facets.least,
                most=MOST_FLOAT if facets.most is facets.below is None else facets.most,
            )
        for limit in LENGTHS:
            _facet(restriction, limit.xsd, limit.of(facets))
        _facet(restriction, "pattern", pattern)
        for limit in RANGES:
            bound = limit.of(facets)
            _facet(restriction, limit.xsd, None if bound is None else text_of(bound))

    def _base(self, shape: Scalar | Options) -> str:
        """The name of the type that the shape is, or restricts."""
        if isinstance(shape, Options):
            return "xs:long" if shape.numeric else "xs:string"
        return self._json_type(shape.kind) if shape.kind in _JSON_TYPES else _BASES[shape.kind]

    def _json_type(self, kind: Kind) -> str:
        """The name of the type of JSON as text, declared once in a schema. No XSD can check that it is JSON."""
        name = _JSON_TYPES[kind]
        if not any(each.get("name") == name for each in self._schema):
            json_type = _sub(self._schema, "simpleType", name=name)
            _sub(json_type, "restriction", base="xs:string")
            _document(json_type, f'{kind.value} as text, such as {{"lang":"de"}}.')
        return self._prefix + name


def _is_bare(shape: Scalar | Options) -> bool:
    return isinstance(shape, Scalar) and shape.facets == FREE and shape.kind not in (Kind.FLOAT, *_PATTERNS)


def _facet(restriction: _Element, name: str, value: object) -> None:
    if value is not None:
        _sub(restriction, name, value=str(value))


def _repeat(element: _Element, shape: Shape, facets: Facets) -> None:
    if isinstance(shape, Maybe):
        element.set("nillable", "true")
    element.set("minOccurs", str(facets.min_length or 0))
    element.set("maxOccurs", "unbounded" if facets.max_length is None else str(facets.max_length))


def _schema(namespaces: dict[str, str]) -> _Element:
    """No type of a schema may take the place of another (``xsi:type``)."""
    return etree.Element(f"{{{XSD}}}schema", {"blockDefault": "#all"}, nsmap=namespaces)


def _sub(parent: _Element, *tags: str, **attributes: str) -> _Element:
    """Add an element to ``parent``, or one within the other; gives the innermost, which gets the attributes."""
    for tag in tags:
        parent = etree.SubElement(parent, f"{{{XSD}}}{tag}", attributes if tag is tags[-1] else {})
    return parent


def _document(parent: _Element, text: str) -> None:
    """The annotation must come first in its element."""
    if text:
        annotation = etree.Element(f"{{{XSD}}}annotation")
        etree.SubElement(annotation, f"{{{XSD}}}documentation").text = text
        parent.insert(0, annotation)
