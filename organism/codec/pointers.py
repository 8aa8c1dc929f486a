"""libxml2's schema errors → faults with JSON pointers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from lxml.etree import XMLSchema, _Element

from organism.codec.explain import step
from organism.codec.lexical import scalar_fault
from organism.codec.limits import XSI
from organism.codec.refusal import MAX_FAULTS
from organism.codec.shape import Items, Nested, Payload, Scalar, Shape, Table, Variant, inner
from organism.errors import Fault

_STEP = re.compile(r"([^/\[\]]+)(?:\[(\d+)\])?")
_MAX_MESSAGE_CHARS = 300
_NIL = f"{{{XSI}}}nil"
_LACKS = "Missing child element(s)"
_NAMESPACE = re.compile(r"\{[^{}]*\}")


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
