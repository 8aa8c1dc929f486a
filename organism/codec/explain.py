"""Says what is wrong with a payload object, each fault with its JSON pointer; walked when the quick way has failed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from organism.codec.lexical import TEXT_OF, Unfit, length_fault, scalar_fault, uncarried
from organism.codec.limits import MAX_DEPTH
from organism.codec.refusal import MAX_FAULTS, invalid, shown
from organism.codec.shape import Items, Kind, Maybe, Nested, Options, Payload, Scalar, Shape, Table, Variant
from organism.errors import Fault, InvalidPayload

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
            case Maybe(inner):
                if value is not None:
                    yield from self.shape(place, inner, value)
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
