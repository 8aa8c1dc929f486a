"""All that is derived from a payload class, once, at registration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from lxml import etree
from lxml.etree import XMLSchema, XMLSchemaParseError, _Element

from organism.codec.describe import example_of, json_schema_of, usage_of
from organism.codec.faults import pattern_faults, schema_faults
from organism.codec.forms import Give, Read, Take, Write, form_of, json_writer
from organism.codec.lexical import closing, opening
from organism.codec.limits import MAX_FAULTS, UnsupportedPayload
from organism.codec.reflect import payload_of
from organism.codec.shape import Payload
from organism.codec.xsd import payload_xsd, text_of
from organism.errors import Fault

_REMEMBERED = "__payload_schema__"


@dataclass(frozen=True, slots=True)
class PayloadSchema:
    """A payload class and its schemas.

    ``xsd`` stands alone; its types are the ones that the codec enforces: ``compiled`` all of it but patterns. ``usage``
    is for models; ``digest`` is the SHA-256 of ``xsd`` as hex: two classes of one name must agree in it.
    """

    cls: type
    name: str
    xsd: str
    json_schema: dict[str, Any]
    example_xml: bytes
    usage: str
    digest: str
    shapes: Payload
    compiled: XMLSchema
    has_patterns: bool
    write: Write
    read: Read
    to_json: Give
    to_json_text: Callable[[Any], bytes]
    take: Take

    @classmethod
    def of(cls, payload_class: type) -> PayloadSchema:
        """Derived once from ``payload_class``, which remembers it; raises ``UnsupportedPayload`` with each fault."""
        schema: PayloadSchema | None = getattr(payload_class, "__dict__", {}).get(_REMEMBERED)
        if schema is None:
            schema = cls._derived(payload_class)
            type.__setattr__(payload_class, _REMEMBERED, schema)  # it goes with the class, when a reload replaces it
        return schema

    @classmethod
    def _derived(cls, payload_class: type) -> PayloadSchema:
        shapes = payload_of(payload_class)
        name = shapes.root.name
        xsd = text_of(payload_xsd(shapes))
        enforced = payload_xsd(shapes, enforced=True)
        try:
            compiled, example = XMLSchema(enforced), example_of(shapes)
        except XMLSchemaParseError as error:
            reason = f"its constraints cannot be an XSD: {error}"
            raise UnsupportedPayload(f"{name} cannot be a payload: {reason}.") from error
        except RecursionError as error:
            reason = "it must hold another of itself without end; make the field optional or a list"
            details = (Fault(name, reason),)
            raise UnsupportedPayload(f"{name} cannot be a payload: {reason}.", details=details) from error
        example_xml = etree.tostring(example, encoding="utf-8")
        form = form_of(shapes)
        schema = cls(
            cls=payload_class,
            name=name,
            xsd=xsd,
            json_schema=json_schema_of(shapes),
            example_xml=example_xml,
            usage=usage_of(shapes, example_xml.decode()),
            digest=sha256(xsd.encode()).hexdigest(),
            shapes=shapes,
            compiled=compiled,
            has_patterns=text_of(enforced) != xsd,
            write=form.write,
            read=form.read,
            to_json=form.to_json,
            to_json_text=json_writer(shapes, form.to_json),
            take=form.from_json,
        )
        if faults := schema.faults(example):  # a schema that takes nothing helps nobody
            reason = f"no example that fits its constraints was found: {faults[0].message}"
            raise UnsupportedPayload(f"{name} cannot be a payload: {reason}")
        return schema

    def from_json(self, value: Any) -> tuple[Any, list[Fault]]:
        """The payload from its JSON value, or anything and every fault."""
        faults: list[Fault] = []
        return self.take(value, None, faults), faults

    def faults(self, element: _Element) -> list[Fault]:
        """What the XSD and the patterns have against an element of this payload; nothing: it is valid."""
        found = [] if self.compiled.validate(element) else schema_faults(self.compiled, element, self.shapes)
        return [*found, *self.misfits(element)][:MAX_FAULTS]

    def misfits(self, element: _Element) -> list[Fault]:
        """What the patterns alone have against it."""
        return pattern_faults(element, self.shapes) if self.has_patterns else []

    def document(self, content: str) -> str:
        """The payload's element around ``content``, as a document with no envelope."""
        return opening(self.name) + content + closing(self.name)
