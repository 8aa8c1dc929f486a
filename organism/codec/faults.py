"""Says what is wrong with a payload object or a document, by JSON pointers; walked when the quick way has failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from itertools import islice
from typing import Any

from lxml.etree import _Element

from organism.codec.lexical import LEXICAL, XSD_TRUE, Unfit, checker, length_checker, uncarried
from organism.codec.limits import MAX_DEPTH, MAX_FAULTS, XSI, came, invalid, shown
from organism.codec.shape import Items, Kind, Maybe, Nested, Options, Payload, Scalar, Shape, Table, Variant, inner
from organism.errors import Fault, InvalidPayload

NIL = f"{{{XSI}}}nil"
MAKING_FAULTS = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, AssertionError, RuntimeError)
"""What a ``__post_init__`` may be expected to raise when it does not like its values."""
_MAX_STEPS = 100_000
_MAX_POINTER_CHARS = 500


def faults_of(payload: Payload, shape: Shape, value: object) -> list[Fault]:
    """What is wrong with ``value`` as a ``shape`` of ``payload``, in its fields' order; at most ``MAX_FAULTS``."""
    return list(islice(_Walk(payload).shape("", 1, shape, value), MAX_FAULTS))


def refusal(payload: Payload, value: object, error: Exception) -> InvalidPayload:
    """The refusal of ``value``, which failed with ``error``: what the walk finds, else what the error says."""
    faults = faults_of(payload, Nested(payload.root.cls), value)
    if faults:
        return invalid(f"The {payload.root.name} does not fit", faults)
    if isinstance(error, InvalidPayload):
        return error
    return invalid(f"The {payload.root.name} cannot be written", [Fault("", shown(str(error), 200))])


def refused_by_class(error: Exception) -> str:
    """What one of the ``MAKING_FAULTS`` says."""
    return f"the class refuses these values: {shown(str(error), 200)}"


def step(pointer: str, key: str | int) -> str:
    """``pointer`` one step further, escaped as RFC 6901 says, up to a length.

    The keys are a client's, and each value below one has a pointer: a long one would be copied for each of them.
    """
    if len(pointer) > _MAX_POINTER_CHARS:
        return pointer
    return f"{pointer}/{str(key)[:_MAX_POINTER_CHARS].replace('~', '~0').replace('/', '~1')}"


def carried_fault(text: str) -> str | None:
    """What XML has against ``text`` (S11); None if nothing."""
    found = uncarried(text)
    if found is None:
        return None
    return f"expected text that XML can carry, came U+{ord(found[0]):04X} at {found.start()}; leave it out"


# ── objects ──────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Walk:
    """A walk that ends: at a depth, and after a number of steps (a payload may share objects, or hold itself)."""

    def __init__(self, payload: Payload) -> None:
        self._records = payload.records
        self._steps = 0

    def shape(self, pointer: str, depth: int, shape: Shape, value: Any) -> Iterator[Fault]:
        self._steps += 1
        if self._steps > _MAX_STEPS:
            return
        if depth > MAX_DEPTH:
            yield Fault(pointer, f"expected at most {MAX_DEPTH} levels, came more; does the payload hold itself?")
            return
        match shape:
            case Maybe(present):
                if value is not None:
                    yield from self.shape(pointer, depth, present, value)
            case Scalar():
                yield from _scalar(pointer, shape, value)
            case Options():
                yield from _options(pointer, shape, value)
            case Items() | Table():
                yield from self._container(pointer, depth, shape, value)
            case Nested(cls):
                yield from self._record(pointer, depth, (cls,), value)
            case Variant(classes):
                named = step(pointer, type(value).__name__) if type(value) in classes else pointer
                yield from self._record(named, depth + 1, classes, value)

    def _container(self, pointer: str, depth: int, shape: Items | Table, value: Any) -> Iterator[Fault]:
        wanted: type = list if isinstance(shape, Items) else dict
        if type(value) is not wanted:
            yield Fault(pointer, f"expected a {wanted.__name__}, came {came(value)}")
            return
        items: Any = value  # which mypy narrows to `object` by the comparison above
        if message := length_checker(shape.facets, "items")(len(items)):
            yield Fault(pointer, message)
        if isinstance(shape, Items):
            for at, item in enumerate(items):
                yield from self.shape(step(pointer, at), depth + 1, shape.item, item)
            return
        for key, item in items.items():
            yield from _scalar(pointer, shape.key, key)
            yield from self.shape(step(pointer, key), depth + 1, shape.value, item)

    def _record(self, pointer: str, depth: int, classes: tuple[type, ...], value: Any) -> Iterator[Fault]:
        if type(value) not in classes:
            yield Fault(pointer, f"expected {' or '.join(cls.__name__ for cls in classes)}, came {came(value)}")
            return
        for field in self._records[type(value)].fields:
            if not hasattr(value, field.name):
                yield Fault(step(pointer, field.name), "expected a value, came none: the attribute is missing")
            else:
                yield from self.shape(step(pointer, field.name), depth + 1, field.shape, getattr(value, field.name))


def _scalar(pointer: str, scalar: Scalar, value: Any) -> Iterator[Fault]:
    try:
        text = LEXICAL[scalar.kind].text(value)
    except Unfit as error:
        yield Fault(pointer, str(error))
        return
    message = (carried_fault(text) if scalar.kind is Kind.STR else None) or checker(scalar)(value)
    if message:
        yield Fault(pointer, message)


def _options(pointer: str, shape: Options, value: Any) -> Iterator[Fault]:
    wanted = shape.enum or type(shape.values[0])
    listed = ", ".join(map(shown, shape.values[:10])) + (", …" if len(shape.values) > 10 else "")  # noqa: PLR2004 - room for a line
    if type(value) is not wanted:
        yield Fault(pointer, f"expected {wanted.__name__} ({listed}), came {came(value)}")
    elif not isinstance(value, Enum) and value not in shape.values:
        yield Fault(pointer, f"expected one of {listed}, came {shown(value)}")


# ── documents ────────────────────────────────────────────────────────────────────────────────────────────────────────


def as_json(payload: Payload, shape: Shape, element: _Element) -> Any:  # noqa: PLR0911 - one a shape
    """What a document that is not valid says, as JSON would say it: what is wrong is then found as in JSON."""
    if element.get(NIL, "").strip() in XSD_TRUE:
        return None
    match inner(shape):
        case Scalar(kind):
            return {} if len(element) else _json_scalar(kind, element.text or "")
        case Options() as options:
            return _json_scalar(Kind.INT if options.numeric else Kind.STR, element.text or "")
        case Items(item):
            return [as_json(payload, item, child) for child in element]
        case Table(_, value):
            return {child.get("key", ""): as_json(payload, value, child) for child in element}
        case Variant(classes):
            return _json_object(payload, {cls.__name__: Nested(cls) for cls in classes}, element)
        case Nested(cls):
            return _json_object(payload, {field.name: field.shape for field in payload.records[cls].fields}, element)


def _json_object(payload: Payload, shapes: Mapping[str, Shape], element: _Element) -> dict[str, Any]:
    """Its children by name; one that comes twice becomes a list, which is not taken in its place."""
    said: dict[str, Any] = {}
    for child in element:
        name = str(child.tag)
        value = as_json(payload, shapes[name], child) if name in shapes else None
        said[name] = [said[name], value] if name in said else value
    return said


def _json_scalar(kind: Kind, text: str) -> Any:
    """The text as JSON has it, or as it is if it does not fit the kind."""
    try:
        match kind:
            case Kind.STR:
                return text
            case Kind.INT | Kind.FLOAT:
                return LEXICAL[kind].value(text)
            case Kind.BOOL:
                return {"true": True, "1": True, "false": False, "0": False}.get(text.strip(), text)
    except ValueError:
        return text
    return text.strip()
