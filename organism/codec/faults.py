"""Says what is wrong with a payload object or a document, by JSON pointers; walked when the quick way has failed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from itertools import islice
from typing import Any

from lxml.etree import XMLSchema, _Element

from organism.codec.lexical import LEXICAL, Unfit, checker, length_checker, uncarried
from organism.codec.limits import MAX_DEPTH, MAX_FAULTS, XSI, Terms, came, invalid, shown
from organism.codec.shape import Items, Kind, Maybe, Nested, Options, Payload, Scalar, Shape, Table, Variant, inner
from organism.errors import Fault, InvalidPayload

NIL = f"{{{XSI}}}nil"
MAKING_FAULTS = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, AssertionError, RuntimeError)
"""What a ``__post_init__`` may be expected to raise when it does not like its values."""
_MAX_MESSAGE_CHARS = 300
_LACKS = "Missing child element(s)"
_NAMESPACE = re.compile(r"\{[^{}]*\}")
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


# ── documents: libxml2's schema errors, and what it does not say ──────────────────────────────────────────────────────


def schema_faults(compiled: XMLSchema, element: _Element, payload: Payload) -> list[Fault]:
    """What the last validation by ``compiled`` has against ``element``, the root of ``payload``, in document order.

    Of the fields that an element lacks libxml2 names the next one at most, and at the element's own place: the missing
    ones are looked for here, and come last.
    """
    places = list(islice(_places("", Nested(payload.root.cls), element, payload), Terms().elements))
    path_of, own = element.getroottree().getpath, len(element.getroottree().getpath(element))
    pointers = {path_of(child)[own:]: pointer for pointer, _, child in places}
    missing = [fault for place in places for fault in _missing(*place, payload)]
    faults: dict[Fault, None] = {}
    errors: Any = compiled.error_log  # lxml's stubs do not know that it can be walked
    for error in errors:
        if missing and _LACKS in error.message:
            continue
        _, _, path = (error.path or "").partition(f"/{payload.root.name}")
        faults[Fault(_pointer(path, pointers), _NAMESPACE.sub("", error.message).rstrip(". ")[:_MAX_MESSAGE_CHARS])] = (
            None
        )
        if len(faults) == MAX_FAULTS:
            break
    return [*faults, *missing][:MAX_FAULTS] or [Fault("", "the document does not fit its schema")]


def pattern_faults(element: _Element, payload: Payload) -> list[Fault]:
    """What the patterns of ``payload`` have against ``element``, its root; libxml2 does not know them."""
    places = _places("", Nested(payload.root.cls), element, payload)
    return list(islice((fault for place in places for fault in _misfits(*place)), MAX_FAULTS))


def _misfits(pointer: str, shape: Shape, element: _Element) -> Iterator[Fault]:
    match shape:
        case Scalar():
            texts = [(pointer, shape, element.text or "")]
        case Table(key):
            texts = [(step(pointer, child.get("key", "")), key, child.get("key", "")) for child in element]
        case _:
            return
    for place, scalar, text in texts:
        if scalar.facets.pattern is not None and (message := checker(scalar)(text)) is not None:
            yield Fault(place, message)


def _missing(pointer: str, shape: Shape, element: _Element, payload: Payload) -> Iterator[Fault]:
    for field in payload.records[shape.cls].fields if isinstance(shape, Nested) else ():
        if field.absent is None and element.find(field.name) is None:
            yield Fault(step(pointer, field.name), "this field is missing")


def _places(pointer: str, shape: Shape, element: _Element, payload: Payload) -> Iterator[tuple[str, Shape, _Element]]:
    """The pointer and shape of ``element`` and of each in it, as far as they are known; nothing lies in what is nil."""
    kind = inner(shape)
    if element.get(NIL) is not None:
        yield pointer, Maybe(kind), element
        return
    yield pointer, kind, element
    match kind:
        case Nested(cls):
            found = ((field.name, field.shape, element.find(field.name)) for field in payload.records[cls].fields)
            parts: Any = [part for part in found if part[2] is not None]
        case Items(item):
            parts = [(at, item, child) for at, child in enumerate(element)]
        case Table(_, value):
            parts = [(child.get("key", ""), value, child) for child in element]
        case Variant(classes):
            parts = [
                (cls.__name__, Nested(cls), child) for child in element for cls in classes if cls.__name__ == child.tag
            ]
        case _:
            return
    for name, part, child in parts:
        yield from _places(step(pointer, name), part, child, payload)


def _pointer(path: str, pointers: dict[str, str]) -> str:
    """The pointer of the element at libxml2's ``path`` below the root (``/items/item[2]/name``)."""
    names: list[str] = []
    while path and path not in pointers:
        path, _, name = path.rpartition("/")
        names.append(name.partition("[")[0])
    pointer = pointers.get(path, "")
    for name in filter(None, reversed(names)):
        pointer = step(pointer, name)
    return pointer
