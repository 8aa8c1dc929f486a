"""Turns a faulty payload object or document into JSON values, whose reader (``forms``) then names every fault.

Only used after the fast path has failed. A value that JSON has no form for becomes an ``Unfit`` that says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from lxml.etree import _Element

from organism.codec.lexical import JSON_KINDS, LEXICAL, NATIVE, XSD_TRUE, Unfit, uncarried
from organism.codec.limits import MAX_DEPTH, XSI, came, shown
from organism.codec.shape import Items, Kind, Maybe, Nested, Options, Payload, Scalar, Shape, Table, Variant, inner

NIL = f"{{{XSI}}}nil"
_MAX_STEPS = 100_000


def refused_by_class(error: BaseException) -> str:
    """What a payload's own code raised, in its ``__post_init__`` for instance: any exception refuses the values."""
    return f"the class refuses these values: {said_by(error)}"


def said_by(error: BaseException) -> str:
    """The text of an exception of a payload's own code, or its name."""
    try:
        said = str(error)
        return shown(said, 200) if said else type(error).__name__
    except BaseException:  # noqa: BLE001 - its text is made by that code, too
        return type(error).__name__


def carried_fault(text: str) -> str | None:
    """Why XML cannot carry ``text`` (S11); None if it can."""
    found = uncarried(text)
    if found is None:
        return None
    return f"expected text that XML can carry, came U+{ord(found[0]):04X} at {found.start()}; leave it out"


# ── objects ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def object_as_json(payload: Payload, shape: Shape, value: Any) -> Any:
    """``value`` as JSON values; bounded in depth and steps, since objects may be shared or contain themselves."""
    return _Walk(payload).json_of(shape, value, 1)


class _Walk:
    def __init__(self, payload: Payload) -> None:
        self._records = payload.records
        self._steps = 0

    def json_of(self, shape: Shape, value: Any, depth: int) -> Any:  # noqa: PLR0911 - one a shape
        self._steps += 1
        if depth > MAX_DEPTH or self._steps > _MAX_STEPS:
            return Unfit(f"expected at most {MAX_DEPTH} levels, came more; does the payload hold itself?")
        match shape:
            case Maybe(present):
                return None if value is None else self.json_of(present, value, depth)
            case Items(item) if type(value) is list:
                return [self.json_of(item, each, depth + 1) for each in value]
            case Table(_, of) if type(value) is dict:
                return {key: self.json_of(of, each, depth + 1) for key, each in value.items()}
            case Nested(cls):
                return self._record((cls,), value, depth)
            case Variant(classes):
                record = self._record(classes, value, depth + 1)
                return record if isinstance(record, Unfit) else {type(value).__name__: record}
        return _simple(shape, value) if isinstance(shape, Scalar | Options) else value

    def _record(self, classes: tuple[type, ...], value: Any, depth: int) -> Any:
        if type(value) not in classes:
            return _not_one_of([cls.__name__ for cls in classes], value)
        fields = self._records[type(value)].fields
        return {
            field.name: self.json_of(field.shape, getattr(value, field.name), depth + 1)
            if hasattr(value, field.name)
            else Unfit("expected a value, came none: the attribute is missing")
            for field in fields
        }


def _simple(shape: Scalar | Options, value: Any) -> Any:
    if isinstance(shape, Options):
        wanted = shape.enum or type(shape.values[0])
        if type(value) is not wanted:
            return _not_one_of([wanted.__name__], value)
        return value.value if isinstance(value, Enum) else value
    try:
        text = LEXICAL[shape.kind].text(value)
    except Unfit as error:
        return error
    return value if shape.kind in NATIVE else text


def _not_one_of(names: list[str], value: object) -> Unfit:
    return Unfit(f"expected {' or '.join(names)}, came {came(value)}")


# ── documents ────────────────────────────────────────────────────────────────────────────────────────────────────────


def document_as_json(payload: Payload, shape: Shape, element: _Element) -> Any:  # noqa: PLR0911 - one a shape
    """The content of a document as JSON values, also of one that its XSD refuses."""
    if element.get(NIL, "").strip() in XSD_TRUE:
        return None
    match inner(shape):
        case Scalar(kind):
            if len(element) and kind in JSON_KINDS:
                return Unfit(f"expected {kind.value} as text, came elements")
            return {} if len(element) else _json_scalar(kind, element.text or "")
        case Options() as options:
            return _json_scalar(Kind.INT if options.numeric else Kind.STR, element.text or "")
        case Items(item):
            return [document_as_json(payload, item, child) for child in element]
        case Table(_, value):
            return {child.get("key", ""): document_as_json(payload, value, child) for child in element}
        case Variant(classes):
            return _json_object(payload, {cls.__name__: Nested(cls) for cls in classes}, element)
        case Nested(cls):
            return _json_object(payload, {field.name: field.shape for field in payload.records[cls].fields}, element)


def _json_object(payload: Payload, shapes: Mapping[str, Shape], element: _Element) -> dict[str, Any]:
    """Its children by name; a child that occurs twice becomes a list, which is then refused."""
    found: dict[str, Any] = {}
    for child in element:
        name = str(child.tag)
        value = document_as_json(payload, shapes[name], child) if name in shapes else None
        found[name] = [found[name], value] if name in found else value
    return found


def _json_scalar(kind: Kind, text: str) -> Any:
    """The text as JSON has it, or as it is if it does not fit the kind; JSON that does not is an ``Unfit``."""
    try:
        match kind:
            case Kind.STR:
                return text
            case Kind.INT | Kind.FLOAT | Kind.JSON | Kind.JSON_OBJECT:
                return LEXICAL[kind].value(text)
            case Kind.BOOL:
                return {"true": True, "1": True, "false": False, "0": False}.get(text.strip(), text)
    except Unfit as error:
        return error
    except ValueError:
        return text
    return text.strip()
