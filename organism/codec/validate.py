"""Bytes ⇄ payload, or a typed refusal: the codec of a set of payload classes.

What the organism writes is canonical (equal to libxml2's exclusive C14N) and is read back through the same checks as
anything else: ``encode`` encodes a payload, parses those very bytes, validates them and decodes a fresh object. What
comes from outside takes ``from_json``, ``from_xml`` or ``parse_any``, never ``decode``, which believes its document's
names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from lxml.etree import XMLSchema, _Element

from organism.codec.faults import refused_by_class, said_by
from organism.codec.lexical import attribute, closing, escaped, opening
from organism.codec.limits import (
    ENVELOPE,
    PayloadLimits,
    PayloadOverLimit,
    SpoofAttempt,
    UnknownPayload,
    UnsupportedPayload,
    invalid,
    shown,
    too_deep,
)
from organism.codec.schema import PayloadSchema
from organism.codec.xml import check_size, first_fault, parse, parse_foreign
from organism.codec.xsd import element_names, envelope_xsd
from organism.errors import Fault, InvalidPayload

_DEFAULT = PayloadLimits()
_IN_ENVELOPE = f"{{{ENVELOPE}}}"
_MESSAGE = _IN_ENVELOPE + "message"
_META = _IN_ENVELOPE + "meta"
_CLAIMS = ("from", "to", "thread", "tenant")
_META_TEMPLATE = "".join(f"{opening(name)}%s{closing(name)}" for name in ("from", "to", "thread"))
_HEAD = opening("message", attribute("xmlns", ENVELOPE)) + opening("meta") + _META_TEMPLATE + closing("meta")


class Decoded(NamedTuple):
    """An envelope, read. A document without one has empty names."""

    from_: str
    to: str
    token: str
    payload: Any


@dataclass(slots=True)
class Encoded:
    """A message as stored and delivered: canonical XML, compact JSON, the payload read from it."""

    xml: bytes
    json: bytes
    payload: Any
    type_name: str


class RepairedPayload(NamedTuple):
    """A payload from a model's text, and what was done to the text; no notes: it was fine."""

    payload: Any
    notes: tuple[str, ...]


class _Entry(NamedTuple):
    """A class in use, its envelope's template, and the first class of its name: documents carry names, not classes."""

    schema: PayloadSchema
    template: str
    read_as: PayloadSchema


class Codec:
    """Knows a set of payload classes; immutable. One compiled XSD holds the envelope and all of them.

    ``schemas`` are those of its payload classes, one a name, in the order of their registration. Not thread-safe:
    everything runs in the event loop's thread.
    """

    __slots__ = ("_by_class", "_by_name", "_names", "_validate", "_xsd", "limits", "schemas")

    def __init__(self, schemas: Iterable[PayloadSchema] = (), limits: PayloadLimits = _DEFAULT) -> None:
        self.limits = limits
        self._by_class: dict[type, _Entry] = {}
        self._by_name: dict[str, _Entry] = {}
        for schema in schemas:
            same = self._by_name.get(schema.name)
            first = same.schema if same else schema
            if first.xsd != schema.xsd:
                raise UnsupportedPayload(
                    f"Two payload classes are called {schema.name} and their schemas differ: {_place(first.cls)} and "
                    f"{_place(schema.cls)}. Rename one of them.",
                    details=(Fault(schema.name, "the name is taken by a class with another schema"),),
                )
            payload = opening(schema.name, attribute("xmlns", "")) + "%s" + closing(schema.name)
            entry = _Entry(schema, _HEAD + payload + closing("message"), first)
            self._by_class[schema.cls] = entry
            self._by_name.setdefault(schema.name, entry)
        self.schemas = tuple(entry.schema for entry in self._by_name.values())
        xsd = envelope_xsd(schema.shapes for schema in self.schemas)
        self._xsd = XMLSchema(xsd)
        self._validate = self._xsd.validate
        self._names = element_names(xsd) | {"tenant"}  # which is refused in words of its own

    @classmethod
    def of(cls, classes: Iterable[type], limits: PayloadLimits = _DEFAULT) -> Codec:
        """The codec of ``classes``; raises ``UnsupportedPayload`` with the faults of all of them."""
        schemas: list[PayloadSchema] = []
        refused: list[UnsupportedPayload] = []
        for payload_class in dict.fromkeys(classes):
            try:
                schemas.append(PayloadSchema.of(payload_class))
            except UnsupportedPayload as error:
                refused.append(error)
        if refused:
            details = tuple(fault for error in refused for fault in error.details)
            raise UnsupportedPayload(" ".join(error.message for error in refused), details=details)
        return cls(schemas, limits)

    def with_class(self, payload_class: type) -> Codec:
        """This codec with one class more; itself if it knows the class already. Raises ``UnsupportedPayload``."""
        if self.knows(payload_class):
            return self
        known = [entry.schema for entry in self._by_class.values()]
        return Codec([*known, PayloadSchema.of(payload_class)], self.limits)

    def knows(self, payload_class: type) -> bool:
        """Whether payloads of this class can be encoded."""
        return payload_class in self._by_class

    def schema(self, name: str) -> PayloadSchema:
        """The schema of the payload class ``name``; raises ``UnknownPayload``."""
        try:
            return self._by_name[name].schema
        except KeyError:
            listed = ", ".join(sorted(self._by_name)[:10]) or "none"
            message = f"no payload class is called {shown(name)} here; known are {listed}"
            raise UnknownPayload(f"Unknown payload: {message}.", details=(Fault("", message),)) from None

    def _entry(self, payload: object) -> _Entry:
        try:
            return self._by_class[type(payload)]
        except KeyError:
            message = f"expected an object of a registered payload class, came one of {_place(type(payload))}"
            raise UnknownPayload(f"Unknown payload: {message}.", details=(Fault("", message),)) from None

    # ── what the organism writes, and reads again ────────────────────────────────────────────────────────────────────

    def encode(self, from_: str, to: str, token: str, payload: object, limits: PayloadLimits | None = None) -> Encoded:
        """Encode ``payload``, then check and decode those very bytes by its schema: what the receiver will get.

        Of two classes of one name (and one schema) the fresh payload is of the one that was registered first.

        Raises ``InvalidPayload`` (``PayloadOverLimit`` beyond the limits).
        """
        schema, template, read_as = self._entry(payload)
        limits = limits or self.limits
        try:
            content = schema.form.write(payload)
            xml = (template % (escaped(from_), escaped(to), escaped(token), content)).encode()
            if len(xml) > limits.payload_bytes:
                check_size(len(schema.document(content).encode()), limits.payload_bytes)
            root = parse(xml, limits)
        except PayloadOverLimit:
            raise
        except BaseException as error:
            raise _refusal(schema, payload, error) from error
        if not self._validate(root):
            raise _refusal(schema, payload, self._misfit(root))
        fresh = _made(read_as, root[1])
        return Encoded(xml, read_as.json(fresh), fresh, schema.name)

    def decode(self, envelope: bytes, limits: PayloadLimits | None = None) -> Decoded:
        """Parse, validate and read an envelope that the organism wrote; raises ``InvalidPayload``."""
        root = parse(envelope, limits or self.limits)
        if not self._validate(root):
            raise self._misfit(root)
        meta, element = root
        from_, to, token = [child.text for child in meta]
        payload = _made(self._by_name[str(element.tag)].schema, element)
        return Decoded(from_ or "", to or "", token or "", payload)

    def json(self, payload: object) -> bytes:
        """Compact JSON of a payload, without the checks of ``encode``."""
        schema = self._entry(payload).schema
        try:
            return schema.json(payload)
        except BaseException as error:
            raise _refusal(schema, payload, error) from error

    def _misfit(self, root: _Element) -> InvalidPayload:
        """Why an envelope that the organism wrote is not valid."""
        element = next((child for child in root if str(child.tag) in self._by_name), None)
        if element is None:
            return UnknownPayload("The document is not an envelope with a payload that is known here.")
        return _unfit(self.schema(str(element.tag)), element, first_fault(root, self._xsd))

    # ── what comes from outside ──────────────────────────────────────────────────────────────────────────────────────

    def from_json(self, name: str, value: Any, limits: PayloadLimits | None = None) -> Any:
        """The payload ``name`` from JSON, within a document's limits. Raises ``InvalidPayload`` with all faults."""
        return self.encode("from", "to", "token", self.draft(name, value), limits).payload

    def draft(self, name: str, value: Any) -> Any:
        """``from_json`` without the checks of its document, which ``encode`` makes next."""
        try:
            payload, faults = self.schema(name).from_json(value)
        except RecursionError as error:
            raise too_deep() from error
        if faults:
            raise invalid(f"The {name} does not fit", faults)
        return payload

    def from_xml(self, document: bytes, limits: PayloadLimits | None = None) -> Any:
        """The payload from a document of its own, with no envelope; raises ``InvalidPayload``."""
        root = parse_foreign(document, limits or self.limits, self._names, overhead_bytes=0)
        return self._valid(root)

    def parse_any(self, document: bytes, limits: PayloadLimits | None = None) -> Decoded:
        """What is in a document; its envelope's names are claims, and a ``<tenant>`` is a ``SpoofAttempt``."""
        root = parse_foreign(document, limits or self.limits, self._names)
        if root.tag != _MESSAGE:
            return Decoded("", "", "", self._valid(root))
        element, said = _opened(root)
        if "tenant" in said:
            raise SpoofAttempt("tenant", said["tenant"], "")
        payload = self._valid(element)
        return Decoded(said.get("from", ""), said.get("to", ""), said.get("thread", ""), payload)

    def _valid(self, element: _Element) -> Any:
        schema = self.schema(str(element.tag))
        if message := first_fault(element, schema.compiled):
            raise _unfit(schema, element, message)
        return _made(schema, element)


def _place(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _made(schema: PayloadSchema, valid: _Element) -> Any:
    """The payload of what its XSD takes; patterns, the class and the ranges of Python may still refuse it."""
    try:
        return schema.form.read(valid)
    except BaseException as error:
        raise _unfit(schema, valid, refused_by_class(error)) from error


def _refusal(schema: PayloadSchema, payload: object, error: BaseException) -> InvalidPayload:
    """The refusal of an object that failed with ``error``: each of its faults, else what the error says."""
    if faults := schema.object_faults(payload):
        return invalid(f"The {schema.name} does not fit", faults)
    if isinstance(error, InvalidPayload):
        return error
    return invalid(f"The {schema.name} cannot be written", [Fault("", said_by(error))])


def _unfit(schema: PayloadSchema, element: _Element, reason: str) -> InvalidPayload:
    """The refusal of a document with all its faults; ``reason`` is used where the reader of JSON finds none."""
    return invalid(f"The {schema.name} does not fit", schema.document_faults(element) or [Fault("", reason)])


def _opened(root: _Element) -> tuple[_Element, dict[str, str]]:
    """The payload's element in an envelope from outside, and that one's claims (``from``, ``to``, …), if any."""
    metas = [child for child in root if child.tag == _META]
    payloads = [child for child in root if child.tag != _META]
    if len(payloads) != 1:
        wanted = f"<message> of {ENVELOPE} with one payload"
        raise InvalidPayload(f"Expected an envelope, {wanted}, came one with {len(payloads)}.")
    if len(metas) > 1:
        raise InvalidPayload("The envelope does not fit: expected one <meta>, came more.")
    said: dict[str, str] = {}
    for element in (child for meta in metas for child in meta):
        space, _, name = str(element.tag).rpartition("}")
        if space + "}" != _IN_ENVELOPE or name not in _CLAIMS or name in said or len(element):
            message = f"expected at most one each of <from>, <to> and <thread>, came <{name}>"
            raise invalid("The envelope does not fit", [Fault("/meta", message)])
        said[name] = element.text or ""
    return payloads[0], said
