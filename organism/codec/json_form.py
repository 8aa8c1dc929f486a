"""Dataclass ⇄ JSON values by closures compiled once a class.

``to_json`` trusts its payload: it is one that the codec made. ``from_json`` trusts nothing and reports every fault.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from itertools import islice
from operator import attrgetter
from typing import Any

import orjson

from organism.codec.faults import carried_fault, step
from organism.codec.lexical import FROM_JSON, TEXT_OF, Unfit, length_fault, scalar_fault
from organism.codec.payload import getter, later, maker
from organism.codec.refusal import MAX_FAULTS, shown
from organism.codec.shape import (
    FREE,
    Items,
    Kind,
    Maybe,
    Nested,
    Options,
    Payload,
    Record,
    Scalar,
    Shape,
    Table,
    Variant,
)
from organism.errors import Fault

ToJson = Callable[[Any], Any]
Place = tuple["Place", str | int] | None
"""Where a value stands: the place of its owner and the key in it. Only a fault makes a JSON pointer of it."""
FromJson = Callable[[Any, Place, list[Fault]], Any]

MAKING_FAULTS = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, AssertionError, RuntimeError)
"""What a ``__post_init__`` may be expected to raise when it does not like its values."""

_NATIVE = frozenset({Kind.STR, Kind.INT, Kind.FLOAT, Kind.BOOL})
_KINDS = {Decimal: Kind.DECIMAL, bytes: Kind.BYTES, date: Kind.DATE, datetime: Kind.DATETIME}
_UNREAD = object()


def to_json(payload: Payload) -> ToJson:
    """A function from a payload that the codec made to a dict that ``orjson`` can write."""
    return _Givers(payload).of(payload.root.cls)


def dumper(payload: Payload) -> Callable[[Any], bytes]:
    """A function from a payload that the codec made to compact JSON."""
    if all(map(_is_native, payload.records.values())):
        return lambda value: orjson.dumps(value, _scalar_text, orjson.OPT_PASSTHROUGH_DATETIME)
    give = to_json(payload)
    return lambda value: orjson.dumps(give(value))


def _is_native(record: Record) -> bool:
    """Whether orjson, which knows dataclasses, makes the right JSON of it: no unions, no attribute but the fields."""
    cls = record.cls
    is_odd = hasattr(cls, "__post_init__") or len(cls.__dict__.get("__dataclass_fields__", ())) != len(record.fields)
    return not is_odd and not any(field.name.startswith("_") or _has_union(field.shape) for field in record.fields)


def _has_union(shape: Shape) -> bool:
    match shape:
        case Maybe(inner) | Items(inner) | Table(_, inner):
            return _has_union(inner)
        case _:
            return isinstance(shape, Variant)


def _scalar_text(value: Any) -> str:
    return TEXT_OF[_KINDS[type(value)]](value)


class _Givers:
    def __init__(self, payload: Payload) -> None:
        self._by_class: dict[type, ToJson] = {}
        for cls, record in payload.records.items():
            self._by_class[cls] = self._record(record)

    def of(self, cls: type) -> ToJson:
        return self._by_class[cls]

    def _record(self, record: Record) -> ToJson:
        names = [field.name for field in record.fields]
        gives = [self._give(field.shape) for field in record.fields]
        values_of = getter(record)
        return lambda value: {name: give(item) for name, give, item in zip(names, gives, values_of(value), strict=True)}

    def _give(self, shape: Shape) -> ToJson:  # noqa: PLR0911 - one a shape
        match shape:
            case Scalar(kind):
                return _same if kind in _NATIVE else TEXT_OF[kind]
            case Options(_, enum):
                return attrgetter("value") if enum else _same
            case Maybe(inner):
                present = self._give(inner)
                return lambda value: None if value is None else present(value)
            case Items(item):
                one = self._give(item)
                return lambda value: [one(each) for each in value]
            case Table(_, item):
                entry = self._give(item)
                return lambda value: {key: entry(each) for key, each in value.items()}
            case Nested(cls):
                return later(self._by_class, cls)
            case Variant():
                return lambda value: {type(value).__name__: self._by_class[type(value)](value)}


def _same(value: Any) -> Any:
    return value


# ── JSON → dataclass ─────────────────────────────────────────────────────────────────────────────────────────────────


def from_json(payload: Payload) -> Callable[[Any], tuple[Any, list[Fault]]]:
    """A function from a JSON value to (payload, []) or (anything, every fault)."""
    take = _Takers(payload).of(payload.root.cls)

    def read(value: Any) -> tuple[Any, list[Fault]]:
        faults: list[Fault] = []
        return take(value, None, faults), faults

    return read


class _Takers:
    def __init__(self, payload: Payload) -> None:
        self._by_class: dict[type, FromJson] = {}
        for cls, record in reversed(payload.records.items()):
            self._by_class[cls] = self._record(record)

    def of(self, cls: type) -> FromJson:
        return self._by_class.get(cls) or later(self._by_class, cls)

    def _record(self, record: Record) -> FromJson:
        make = maker(record)
        takes = {field.name: (self._take(field.shape), field.absent) for field in record.fields}
        listed = ", ".join(takes) or "none"

        def take(value: Any, at: Place, faults: list[Fault]) -> Any:
            if not isinstance(value, dict):
                return _wrong(faults, at, f"expected an object with the fields {listed}, came {_came(value)}")
            before = len(faults)
            for name in islice((str(name) for name in value if name not in takes), MAX_FAULTS):
                _wrong(faults, (at, name), f"this field is not known; known are {listed}")
            values = []
            for name, (take_one, absent) in takes.items():
                if name in value:
                    values.append(take_one(value[name], (at, name), faults))
                elif absent is not None:
                    values.append(absent())
                else:
                    _wrong(faults, (at, name), "this field is missing")
            if len(faults) > before:
                return _UNREAD
            try:
                return make(*values)
            except RecursionError:
                raise
            except MAKING_FAULTS as error:
                return _wrong(faults, at, f"the class refuses these values: {shown(str(error), 200)}")

        return take

    def _take(self, shape: Shape) -> FromJson:  # noqa: PLR0911 - one a shape
        match shape:
            case Scalar():
                return _scalar(shape)
            case Options():
                return _options(shape)
            case Maybe(inner):
                take = self._take(inner)
                return lambda value, at, faults: None if value is None else take(value, at, faults)
            case Items():
                return _items(shape, self._take(shape.item))
            case Table():
                return _table(shape, _scalar(shape.key), self._take(shape.value))
            case Nested(cls):
                return self.of(cls)
            case Variant(classes):
                return self._variant(classes)

    def _variant(self, classes: tuple[type, ...]) -> FromJson:
        named = {cls.__name__: self.of(cls) for cls in classes}
        listed = " or ".join(f'{{"{name}": {{…}}}}' for name in named)

        def take(value: Any, at: Place, faults: list[Fault]) -> Any:
            name = next(iter(value)) if isinstance(value, dict) and len(value) == 1 else None
            if name not in named:
                return _wrong(faults, at, f"expected {listed}, came {_came(value)}")
            return named[name](value[name], (at, name), faults)

        return take


def _scalar(shape: Scalar) -> FromJson:
    from_value = FROM_JSON[shape.kind]
    is_text, is_free = shape.kind is Kind.STR, shape.facets == FREE

    def take(value: Any, at: Place, faults: list[Fault]) -> Any:
        try:
            taken = from_value(value)
        except Unfit as error:
            return _wrong(faults, at, str(error))
        message = (carried_fault(taken) if is_text else None) or (None if is_free else scalar_fault(shape, taken))
        return _wrong(faults, at, message) if message else taken

    return take


def _options(shape: Options) -> FromJson:
    members = dict(zip(shape.values, shape.enum or shape.values, strict=True))
    wanted = int if shape.numeric else str
    listed = ", ".join(map(shown, shape.values))

    def take(value: Any, at: Place, faults: list[Fault]) -> Any:
        if type(value) is wanted and value in members:
            return members[value]
        return _wrong(faults, at, f"expected one of {listed}, came {_came(value)}")

    return take


def _items(shape: Items, take_one: FromJson) -> FromJson:
    def take(value: Any, at: Place, faults: list[Fault]) -> Any:
        if not isinstance(value, list):
            return _wrong(faults, at, f"expected a list, came {_came(value)}")
        if message := length_fault(shape.facets, len(value), "items"):
            _wrong(faults, at, message)
        return [take_one(item, (at, index), faults) for index, item in enumerate(value)]

    return take


def _table(shape: Table, take_key: FromJson, take_one: FromJson) -> FromJson:
    def take(value: Any, at: Place, faults: list[Fault]) -> Any:
        if not isinstance(value, dict):
            return _wrong(faults, at, f"expected an object, came {_came(value)}")
        if message := length_fault(shape.facets, len(value), "items"):
            _wrong(faults, at, message)
        return {take_key(key, (at, key), faults): take_one(item, (at, key), faults) for key, item in value.items()}

    return take


def _wrong(faults: list[Fault], at: Place, message: str) -> object:
    faults.append(Fault(_pointer(at), message))
    return _UNREAD


def _pointer(at: Place) -> str:
    return "" if at is None else step(_pointer(at[0]), at[1])


def _came(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "an object with " + (", ".join(shown(str(name), 30) for name in list(value)[:5]) or "nothing in it")
    return "a list" if isinstance(value, list) else shown(value)
