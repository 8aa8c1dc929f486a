"""The one place where XML is parsed (S10).

``parse`` takes what the organism wrote itself; ``parse_foreign`` takes what comes from outside. Both hold the same
order: size, strict UTF-8, a parser with everything dangerous off, no DOCTYPE, caps; the schema comes after them.

A foreign document passes a gate first, which reads it with expat and keeps nothing: libxml2 remembers each name that it
ever saw, for the life of the process, so a stranger could fill the memory with made-up names (300 documents of 200 KB
kept 70 MiB for good). The gate lets through only names that a schema knows, and counts before a tree is built.
"""

from __future__ import annotations

import pyexpat
import re
from collections.abc import Collection
from functools import partial

from lxml import etree
from lxml.etree import _Element

from organism.codec.limits import (
    ENVELOPE,
    ENVELOPE_BYTES,
    MAX_ATTRIBUTES,
    MAX_DEPTH,
    MAX_FAULTS,
    MAX_NAMESPACES,
    XSD,
    XSI,
    PayloadLimits,
    PayloadOverLimit,
    invalid,
    shown,
    too_deep,
)
from organism.errors import Fault, InvalidPayload

_MAX_PREFIX_CHARS = 16
_NAMESPACE = re.compile(r"\{[^{}]*\}")
_KNOWN_NAMESPACES = frozenset({"", ENVELOPE, XSI, XSD})
_KNOWN_ATTRIBUTES = frozenset({"key", "nil"})

_hardened = partial(
    etree.XMLParser,
    encoding="utf-8",  # whatever the document declares
    resolve_entities=False,
    load_dtd=False,
    dtd_validation=False,
    attribute_defaults=False,
    no_network=True,
    recover=False,
    huge_tree=False,
    remove_comments=True,
    remove_pis=True,
    strip_cdata=True,
    collect_ids=False,
)
_PARSER = _hardened()
_ELEMENTS = etree.XPath("count(//*)")
_IS_TOO_DEEP = etree.XPath("boolean(/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*/*)")
"""Whether there is an element one level below ``MAX_DEPTH``."""


def parse(document: bytes, limits: PayloadLimits, overhead_bytes: int = ENVELOPE_BYTES) -> _Element:
    """The root of ``document``, within the caps and with no DOCTYPE; raises ``InvalidPayload``."""
    _check_text(document, limits.payload_bytes + overhead_bytes)
    try:
        root = etree.fromstring(document, _PARSER)
    except etree.XMLSyntaxError as error:
        raise _malformed(str(error)) from error
    if b"DOCTYPE" in document and root.getroottree().docinfo.internalDTD is not None:
        _refuse_doctype()
    most = document.count(b"<") - document.count(b"</")  # at least as many as there are elements
    if most > limits.elements and float(_ELEMENTS(root)) > limits.elements:  # type: ignore[arg-type]  # a count is a number
        raise _too_many_elements(limits)
    if most > MAX_DEPTH and _IS_TOO_DEEP(root):
        raise too_deep()
    return root


def parse_foreign(
    document: bytes, limits: PayloadLimits, names: Collection[str], overhead_bytes: int = ENVELOPE_BYTES
) -> _Element:
    """As ``parse``, for a document from outside: elements may only be called by one of ``names``."""
    _check_text(document, limits.payload_bytes + overhead_bytes)
    _Gate(limits, names).check(document)
    return parse(document, limits, overhead_bytes)


def first_fault(element: _Element, schema: etree.XMLSchema) -> str:
    """The first fault of ``element`` by ``schema``; empty if it is valid.

    Validating a tree finds the place of each fault, which costs libxml2 time that grows with the square of the elements
    (20,000 wrong ones: 3.4 s); validating while it parses does not (0.05 s).
    """
    try:
        etree.fromstring(etree.tostring(element, encoding="utf-8"), _hardened(schema=schema))
    except etree.XMLSyntaxError as error:
        return _NAMESPACE.sub("", error.msg or "it does not fit its schema")
    return ""


def check_size(came: int, most: int) -> None:
    """Refuse a document that is too long."""
    if came > most:
        raise PayloadOverLimit(f"The payload is too large: expected at most {most:,} bytes of XML, came {came:,}.")


def _check_text(document: bytes, most: int) -> None:
    check_size(len(document), most)
    try:
        document.decode()
    except UnicodeDecodeError as error:
        raise _malformed(f"expected UTF-8, came the byte 0x{document[error.start]:02x} at {error.start}") from error


class _Gate:
    """Reads a document once without building a tree; collects unknown names and raises on a broken limit."""

    def __init__(self, limits: PayloadLimits, names: Collection[str]) -> None:
        self._limits = limits
        self._names = names
        self._path: list[str] = []
        self._elements = 0
        self._namespaces: set[tuple[str, str]] = set()
        self._unknown: list[Fault] = []
        self._unknown_depth = MAX_DEPTH + 1
        """The depth of the unknown element that the reader is in."""

    def check(self, document: bytes) -> None:
        gate = pyexpat.ParserCreate("utf-8")  # whatever the document declares
        gate.StartDoctypeDeclHandler = _refuse_doctype
        gate.StartElementHandler = self._open
        gate.EndElementHandler = self._close
        try:
            gate.Parse(document, True)  # noqa: FBT003 - expat's own way to say that this is all
        except pyexpat.ExpatError as error:
            reason = f"{pyexpat.ErrorString(error.code)} at line {error.lineno}, column {error.offset + 1}"
            raise _malformed(reason) from error
        if self._unknown:
            raise invalid("The document does not fit", self._unknown)

    def _open(self, name: str, attributes: dict[str, str]) -> None:
        prefix, _, local = name.rpartition(":")
        self._path.append(local)
        self._elements += 1
        if len(self._path) > MAX_DEPTH:
            raise too_deep()
        if self._elements > self._limits.elements:
            raise _too_many_elements(self._limits)
        if len(attributes) > MAX_ATTRIBUTES:
            came = f"came {len(attributes)}"
            raise PayloadOverLimit(f"An element has too many attributes: expected at most {MAX_ATTRIBUTES}, {came}.")
        if local not in self._names or len(prefix) > _MAX_PREFIX_CHARS:
            self._note(f"the element {shown(name)} is not known here; the schema shows which are")
            self._unknown_depth = min(self._unknown_depth, len(self._path))
        for attribute, value in attributes.items():
            self._attribute(attribute, value)

    def _attribute(self, name: str, value: str) -> None:
        prefix, _, local = name.rpartition(":")
        if prefix == "xmlns" or name == "xmlns":
            self._namespaces.add((name, value))
            if len(self._namespaces) > MAX_NAMESPACES:
                most = f"expected at most {MAX_NAMESPACES}, came more"
                raise PayloadOverLimit(f"The document has too many namespaces: {most}.")
            if value not in _KNOWN_NAMESPACES or len(local) > _MAX_PREFIX_CHARS:
                self._note(f"the namespace {shown(value)} is not known here; a payload has none")
        elif local not in _KNOWN_ATTRIBUTES or len(prefix) > _MAX_PREFIX_CHARS:
            self._note(f"the attribute {shown(name)} is not known here")

    def _note(self, message: str) -> None:
        """Note something unknown; what is inside an unknown element is not reported."""
        if len(self._path) >= self._unknown_depth:
            return
        self._unknown.append(Fault("".join(f"/{name}" for name in self._path[1:]), message))
        if len(self._unknown) == MAX_FAULTS:
            raise invalid("The document does not fit", self._unknown)

    def _close(self, _name: str) -> None:
        if len(self._path) == self._unknown_depth:
            self._unknown_depth = MAX_DEPTH + 1
        self._path.pop()


def _too_many_elements(limits: PayloadLimits) -> PayloadOverLimit:
    return PayloadOverLimit(f"The payload has too many elements: expected at most {limits.elements:,}, came more.")


def _refuse_doctype(*_declaration: object) -> None:
    raise InvalidPayload("The document has a DOCTYPE, which is never allowed: leave it out.")


def _malformed(reason: str) -> InvalidPayload:
    return InvalidPayload(f"The document is not well-formed XML: {reason}.", details=(Fault("", reason),))
