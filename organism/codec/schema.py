"""All that is derived from a payload class, once, at registration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
from lxml import etree
from lxml.etree import XMLSchema, XMLSchemaParseError, _Element

from organism.codec.describe import example_of, json_schema_of, usage_of
from organism.codec.faults import document_as_json, object_as_json
from organism.codec.forms import Form, Forms
from organism.codec.lexical import closing, opening
from organism.codec.limits import PayloadLimits, UnsupportedPayload
from organism.codec.reflect import payload_of
from organism.codec.shape import Nested, Payload
from organism.codec.xml import parse
from organism.codec.xsd import payload_xsd, text_of
from organism.errors import Fault

_REMEMBERED = "__payload_schema__"
_NATIVE_ONLY = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
"""orjson ends the process where the code of such an object raises: a dataclass with an unset slot is enough."""


@dataclass(frozen=True, slots=True)
class PayloadSchema:
    """A payload class and its schemas.

    ``xsd`` stands alone, and two classes of one name must agree in it; the codec enforces ``compiled``, which is all of
    it but patterns. ``usage`` is for models.
    """

    cls: type
    name: str
    xsd: str
    json_schema: dict[str, Any]
    example_xml: bytes
    usage: str
    shapes: Payload
    compiled: XMLSchema
    form: Form

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
        try:
            compiled, example = XMLSchema(payload_xsd(shapes, enforced=True)), example_of(shapes)
        except XMLSchemaParseError as error:
            reason = f"its constraints cannot be an XSD: {error}"
            raise UnsupportedPayload(f"{name} cannot be a payload: {reason}.") from error
        except RecursionError as error:
            reason = "it must hold another of itself without end; make the field optional or a list"
            details = (Fault(name, reason),)
            raise UnsupportedPayload(f"{name} cannot be a payload: {reason}.", details=details) from error
        example_xml = etree.tostring(example, encoding="utf-8")
        schema = cls(
            cls=payload_class,
            name=name,
            xsd=xsd,
            json_schema=json_schema_of(shapes),
            example_xml=example_xml,
            usage=usage_of(shapes, example_xml.decode()),
            shapes=shapes,
            compiled=compiled,
            form=Forms(shapes).of(Nested(payload_class)),
        )
        if not compiled.validate(example):  # a schema that takes nothing helps nobody
            reason = f"no example that fits its constraints was found: {schema.document_faults(example)[0].message}"
            raise UnsupportedPayload(f"{name} cannot be a payload: {reason}")
        return schema

    def example(self) -> Any:
        """The example as JSON values. No code of the class runs: it may refuse what its schema takes."""
        return document_as_json(self.shapes, Nested(self.cls), parse(self.example_xml, PayloadLimits()))

    def json(self, payload: Any) -> bytes:
        """Compact JSON."""
        return orjson.dumps(self.form.to_json(payload), option=_NATIVE_ONLY)

    def from_json(self, value: Any) -> tuple[Any, list[Fault]]:
        """The payload from its JSON value, or anything and every fault."""
        faults: list[Fault] = []
        return self.form.from_json(value, None, faults), faults

    def object_faults(self, payload: Any) -> list[Fault]:
        """What is wrong with an object of the class, in the words for JSON."""
        return self.from_json(object_as_json(self.shapes, Nested(self.cls), payload))[1]

    def document_faults(self, element: _Element) -> list[Fault]:
        """What is wrong with a document, in the words for JSON; nothing where only its XSD knows."""
        return self.from_json(document_as_json(self.shapes, Nested(self.cls), element))[1]

    def document(self, content: str) -> str:
        """The payload's element around ``content``, as a document with no envelope."""
        return opening(self.name) + content + closing(self.name)
