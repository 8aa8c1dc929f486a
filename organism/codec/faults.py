"""Says what is wrong with a payload object or a document, by JSON pointers; walked when the quick way has failed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Any

from lxml.etree import XMLSchema, _Element

from organism.codec.lexical import TEXT_OF, Unfit, length_fault, scalar_fault, uncarried
from organism.codec.limits import MAX_DEPTH, XSI
from organism.codec.refusal import MAX_FAULTS, invalid, shown
from organism.codec.shape import Items, Kind, Maybe, Nested, Options, Payload, Scalar, Shape, Table, Variant, inner
from organism.errors import Fault, InvalidPayload

_STEP = re.compile(r"([^/\[\]]+)(?:\[(\d+)\])?")
_MAX_MESSAGE_CHARS = 300
_NIL = f"{{{XSI}}}nil"
_LACKS = "Missing child element(s)"
_NAMESPACE = re.compile(r"\{[^{}]*\}")
_MAX_STEPS = 100_000
_MAX_POINTER_CHARS = 500


def faults_of(payload: Payload, shape: Shape, value: object) -> list[Fault]:
    """What is wrong with ``value`` as a ``shape`` of ``payload``, in its fields' order; at most ``MAX_FAULTS``."""
    walk = _Walk(payload)
    faults: list[Fault] = []
    for fault in walk.shape(_Place("", 1), shape, value):
        faults.append(fault)
        if len(faults) == MAX_FAULTS:
            break
    return faults


def refusal(payload: Payload, value: object, error: Exception) -> InvalidPayload:
    """The refusal of ``value``, which failed with ``error``: what the walk finds, else what the error says."""
    faults = faults_of(payload, Nested(payload.root.cls), value)
    if faults:
        return invalid(f"The {payload.root.name} does not fit", faults)
    if isinstance(error, InvalidPayload):
        return error
    return invalid(f"The {payload.root.name} cannot be written", [Fault("", shown(str(error), 200))])


def step(pointer: str, key: str | int) -> str:
    """``pointer`` one step further, escaped as RFC 6901 says, up to a length.

    The keys are a client's, and each value below one has a pointer: a long one would be copied for each of them.
    """
    if len(pointer) > _MAX_POINTER_CHARS:
        return pointer
    if isinstance(key, int):
        return f"{pointer}/{key}"
    return f"{pointer}/{key[:_MAX_POINTER_CHARS].replace('~', '~0').replace('/', '~1')}"


def carried_fault(text: str) -> str | None:
    """What XML has against ``text`` (S11); None if nothing."""
    found = uncarried(text)
    if found is None:
        return None
    return f"expected text that XML can carry, came U+{ord(found[0]):04X} at {found.start()}; leave it out"


@dataclass(frozen=True, slots=True)
class _Place:
    pointer: str
    depth: int

    def at(self, key: str | int) -> _Place:
        return _Place(step(self.pointer, key), self.depth + 1)


class _Walk:
    """A walk that ends: at a depth, and after a number of steps (a payload may share objects, or hold itself)."""

    def __init__(self, payload: Payload) -> None:
        self._records = payload.records
        self._steps = 0

    def shape(self, place: _Place, shape: Shape, value: Any) -> Iterator[Fault]:
        self._steps += 1
        if self._steps > _MAX_STEPS:
            return
        if place.depth > MAX_DEPTH:
            yield Fault(place.pointer, f"expected at most {MAX_DEPTH} levels, came more; does the payload hold itself?")
            return
        match shape:
            case Maybe(present):
                if value is not None:
                    yield from self.shape(place, present, value)
            case Scalar():
                yield from _scalar(place, shape, value)
            case Options():
                yield from _options(place, shape, value)
            case Items() | Table():
                yield from self._container(place, shape, value)
            case Nested(cls):
                yield from self._record(place, (cls,), value)
            case Variant(classes):
                named = place.at(type(value).__name__) if type(value) in classes else place
                yield from self._record(named, classes, value)

    def _container(self, place: _Place, shape: Items | Table, value: Any) -> Iterator[Fault]:
        wanted: type = list if isinstance(shape, Items) else dict
        if type(value) is not wanted:
            yield Fault(place.pointer, f"expected a {wanted.__name__}, came {_came(value)}")
            return
        items: Any = value  # which mypy narrows to `object` by the comparison above
        length = length_fault(shape.facets, len(items), "items")
        if length:
            yield Fault(place.pointer, length)
        if isinstance(shape, Items):
            for at, item in enumerate(items):
                yield from self.shape(place.at(at), shape.item, item)
            return
        for key, item in items.items():
            yield from _scalar(place, shape.key, key)
            yield from self.shape(place.at(str(key)), shape.value, item)

    def _record(self, place: _Place, classes: tuple[type, ...], value: Any) -> Iterator[Fault]:
        if type(value) not in classes:
            yield Fault(place.pointer, f"expected {' or '.join(cls.__name__ for cls in classes)}, came {_came(value)}")
            return
        for field in self._records[type(value)].fields:
            if not hasattr(value, field.name):
                yield Fault(step(place.pointer, field.name), "expected a value, came none: the attribute is missing")
            else:
                yield from self.shape(place.at(field.name), field.shape, getattr(value, field.name))


def _scalar(place: _Place, scalar: Scalar, value: Any) -> Iterator[Fault]:
    try:
        text = TEXT_OF[scalar.kind](value)
    except Unfit as error:
        yield Fault(place.pointer, str(error))
        return
    message = (carried_fault(text) if scalar.kind is Kind.STR else None) or scalar_fault(scalar, value)
    if message:
        yield Fault(place.pointer, message)


def _options(place: _Place, shape: Options, value: Any) -> Iterator[Fault]:
    wanted = shape.enum or type(shape.values[0])
    if type(value) is not wanted:
        yield Fault(place.pointer, f"expected {wanted.__name__} ({_listed(shape)}), came {_came(value)}")
    elif not isinstance(value, Enum) and value not in shape.values:
        yield Fault(place.pointer, f"expected one of {_listed(shape)}, came {shown(value)}")


def _listed(shape: Options) -> str:
    return ", ".join(map(shown, shape.values[:10])) + (", …" if len(shape.values) > 10 else "")  # noqa: PLR2004 - room for a line


def _came(value: object) -> str:
    if value is None:
        return "None"
    kind = type(value).__name__
    return f"{kind} {shown(value)}" if isinstance(value, str | int | float | bool) else f"a {kind}"


# ── documents: libxml2's schema errors, and what it does not say ──────────────────────────────────────────────────────


def schema_faults(compiled: XMLSchema, element: _Element, payload: Payload) -> list[Fault]:
    """What the last validation by ``compiled`` has against ``element``, the root of ``payload``, in document order.

    Of the fields that an element lacks libxml2 names the next one at most, and at the element's own place: the missing
    ones are looked for here, and come last.
    """
    faults: dict[str, Fault] = {}
    missing = list(islice(_missing("", Nested(payload.root.cls), element, payload), MAX_FAULTS))
    errors: Any = compiled.error_log  # lxml's stubs do not know that it can be walked
    for error in errors:
        if missing and _LACKS in error.message:
            continue
        pointer = _pointer(error.path or "", element, payload)
        message = _NAMESPACE.sub("", error.message).rstrip(". ")[:_MAX_MESSAGE_CHARS]
        faults.setdefault(f"{pointer} {message}", Fault(pointer, message))
        if len(faults) == MAX_FAULTS:
            break
    found = [*faults.values(), *missing]
    return found[:MAX_FAULTS] or [Fault("", "the document does not fit its schema")]


def pattern_faults(element: _Element, payload: Payload) -> list[Fault]:
    """What the patterns of ``payload`` have against ``element``, its root; libxml2 does not know them."""
    return list(islice(_misfits("", Nested(payload.root.cls), element, payload), MAX_FAULTS))


def _misfits(pointer: str, shape: Shape, element: _Element, payload: Payload) -> Iterator[Fault]:
    kind = inner(shape)
    if element.get(_NIL) is not None:
        return
    if isinstance(kind, Scalar):
        yield from _misfit(pointer, kind, element.text or "")
    for name, part, child in _parts(kind, element, payload):
        place = step(pointer, name)
        if isinstance(kind, Table):
            yield from _misfit(place, kind.key, str(name))
        yield from _misfits(place, part, child, payload)


def _misfit(pointer: str, scalar: Scalar, text: str) -> Iterator[Fault]:
    if scalar.facets.pattern is not None and (message := scalar_fault(scalar, text)) is not None:
        yield Fault(pointer, message)


def _missing(pointer: str, shape: Shape, element: _Element, payload: Payload) -> Iterator[Fault]:
    """The fields that must be there and are not, at any depth; what is said to be nothing lacks nothing."""
    kind = inner(shape)
    if element.get(_NIL) is not None:
        return
    if isinstance(kind, Nested):
        for field in payload.records[kind.cls].fields:
            if field.absent is None and element.find(field.name) is None:
                yield Fault(step(pointer, field.name), "this field is missing")
    for name, part, child in _parts(kind, element, payload):
        yield from _missing(step(pointer, name), part, child, payload)


def _parts(kind: Shape, element: _Element, payload: Payload) -> Iterator[tuple[str | int, Shape, _Element]]:
    """What lies in an element: its place, its shape, its own element."""
    match kind:
        case Nested(cls):
            for field in payload.records[cls].fields:
                if (found := element.find(field.name)) is not None:
                    yield field.name, field.shape, found
        case Items(item):
            yield from ((at, item, child) for at, child in enumerate(element))
        case Table(_, value):
            yield from ((child.get("key", ""), value, child) for child in element)
        case Variant(classes):
            yield from ((cls.__name__, Nested(cls), child) for child in element for cls in _called(child, classes))


def _called(element: _Element, classes: tuple[type, ...]) -> Iterator[type]:
    return (cls for cls in classes if cls.__name__ == element.tag)


def _pointer(path: str, element: _Element, payload: Payload) -> str:
    """The JSON pointer of the element at libxml2's ``path`` (``/*/Order/items/item[2]/name``)."""
    steps = [(name, int(number or 1)) for name, number in _STEP.findall(path)]
    names = [name for name, _ in steps]
    if payload.root.name not in names:
        return ""
    return "".join(_steps(steps[names.index(payload.root.name) + 1 :], element, payload))


def _steps(steps: list[tuple[str, int]], element: _Element, payload: Payload) -> Iterator[str]:
    shape: Shape | None = Nested(payload.root.cls)
    for name, number in steps:
        children = [child for child in element if child.tag == name]
        if len(children) < number:
            return
        element = children[number - 1]
        match inner(shape) if shape else None:
            case Items(item):
                yield step("", number - 1)
                shape = item
            case Table(_, value):
                yield step("", element.get("key", ""))
                shape = value
            case Nested(cls):
                yield step("", name)
                shape = next((field.shape for field in payload.records[cls].fields if field.name == name), None)
            case Variant(classes):
                yield step("", name)
                shape = next((Nested(cls) for cls in classes if cls.__name__ == name), None)
            case _:
                yield step("", name)
                shape = None
