"""Dataclass ⇄ JSON values by closures compiled once a class.

``to_json`` trusts its payload: it is one that the codec made. ``from_json`` trusts nothing and reports every fault.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from operator import attrgetter
from typing import Any

import orjson

from organism.codec.explain import carried_fault, step
from organism.codec.lexical import FROM_JSON, TEXT_OF, Unfit, length_fault, scalar_fault
from organism.codec.payload import later, maker
from organism.codec.refusal import MAX_FAULTS, shown
from organism.codec.shape import (
    Field,
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
FromJson = Callable[[Any, str, list[Fault]], Any]

MAKING_FAULTS = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, AssertionError, RuntimeError)
"""What a ``__post_init__`` may be expected to raise when it does not like its values."""

_NATIVE = frozenset({Kind.STR, Kind.INT, Kind.FLOAT, Kind.BOOL})
_UNREAD = object()


def to_json(payload: Payload) -> ToJson:
    """A function from a payload that the codec made to a dict that ``orjson`` can write."""
    return _Givers(payload).of(payload.root.cls)


def dumper(payload: Payload) -> Callable[[Any], bytes]:
    """A function from a payload that the codec made to compact JSON."""
    if all(map(_is_plain, payload.records.values())):
        return orjson.dumps  # knows dataclasses, and makes the same of these
    give = to_json(payload)
    return lambda value: orjson.dumps(give(value))


def _is_plain(record: Record) -> bool:
    """Whether orjson alone makes the right JSON of it: native values, and no attribute but the fields."""
    cls = record.cls
    odd = hasattr(cls, "__post_init__") or len(cls.__dict__.get("__dataclass_fields__", ())) != len(record.fields)
    return not odd and not any(field.name.startswith("_") or not _is_native(field.shape) for field in record.fields)


def _is_native(shape: Shape) -> bool:
    match shape:
        case Scalar(kind):
            return kind in _NATIVE
        case Options(_, enum):
            return enum is None
        case Maybe(inner) | Items(inner) | Table(_, inner):
            return _is_native(inner)
        case Nested():
            return True
        case Variant():
            return False


class _Givers:
    def __init__(self, payload: Payload) -> None:
        self._by_class: dict[type, ToJson] = {}
        for cls, record in payload.records.items():
            self._by_class[cls] = self._record(record)

    def of(self, cls: type) -> ToJson:
        return self._by_class[cls]

    def _record(self, record: Record) -> ToJson:
        names = [field.name for field in record.fields]
        if len(names) <= 1:
            get_one = attrgetter(*names) if names else None
            give_one = self._give(record.fields[0].shape) or _same if names else _same
            return lambda value: {names[0]: give_one(get_one(value))} if get_one else {}
        gives = [self._give(field.shape) for field in record.fields]
        get = attrgetter(*names)
        if not any(gives):
            return lambda value: dict(zip(names, get(value), strict=True))
        full = [give or _same for give in gives]
        return lambda value: {name: give(item) for name, give, item in zip(names, full, get(value), strict=True)}

    def _give(self, shape: Shape) -> ToJson | None:  # noqa: PLR0911 - one a shape
        """None where the value is its own JSON."""
        match shape:
            case Scalar(kind):
                return None if kind in _NATIVE else TEXT_OF[kind]
            case Options(_, enum):
                return attrgetter("value") if enum else None
            case Maybe(inner):
                give = self._give(inner)
                return give and _optional(give)
            case Items(item):
                give = self._give(item)
                return give and _listed(give)
            case Table(_, value):
                give = self._give(value)
                return give and _tabled(give)
            case Nested(cls):
                return later(self._by_class, cls)
            case Variant():
                return lambda value: {type(value).__name__: self._by_class[type(value)](value)}


def _same(value: Any) -> Any:
    return value


def _optional(give: ToJson) -> ToJson:
    return lambda value: None if value is None else give(value)


def _listed(give: ToJson) -> ToJson:
    return lambda value: [give(item) for item in value]


def _tabled(give: ToJson) -> ToJson:
    return lambda value: {key: give(item) for key, item in value.items()}


# ── JSON → dataclass ─────────────────────────────────────────────────────────────────────────────────────────────────


def from_json(payload: Payload) -> Callable[[Any], tuple[Any, list[Fault]]]:
    """A function from a JSON value to (payload, []) or (anything, every fault)."""
    take = _Takers(payload).of(payload.root.cls)

    def read(value: Any) -> tuple[Any, list[Fault]]:
        faults: list[Fault] = []
        return take(value, "", faults), faults

    return read


class _Takers:
    def __init__(self, payload: Payload) -> None:
        self._by_class: dict[type, FromJson] = {}
        for cls, record in payload.records.items():
            self._by_class[cls] = self._record(record)

    def of(self, cls: type) -> FromJson:
        return self._by_class[cls]

    def _record(self, record: Record) -> FromJson:
        make = maker(record)
        takes = {field.name: self._take(field.shape) for field in record.fields}
        listed = ", ".join(takes) or "none"

        def take(value: Any, at: str, faults: list[Fault]) -> Any:
            if not isinstance(value, dict):
                faults.append(Fault(at, f"expected an object with the fields {listed}, came {_came(value)}"))
                return _UNREAD
            before = len(faults)
            strange = islice((str(name) for name in value if name not in takes), MAX_FAULTS)
            faults += [Fault(step(at, name), f"this field is not known; known are {listed}") for name in strange]
            values = [_field(field, takes[field.name], value, at, faults) for field in record.fields]
            return _UNREAD if len(faults) > before else _made(make, values, at, faults)

        return take

    def _take(self, shape: Shape) -> FromJson:  # noqa: PLR0911 - one a shape
        match shape:
            case Scalar():
                return _scalar(shape)
            case Options():
                return _options(shape)
            case Maybe(inner):
                return _or_null(self._take(inner))
            case Items():
                return _items(shape, self._take(shape.item))
            case Table():
                return _table(shape, _scalar(shape.key), self._take(shape.value))
            case Nested(cls):
                return self._later(cls)
            case Variant(classes):
                return self._variant(classes)

    def _later(self, cls: type) -> FromJson:
        def take(value: Any, at: str, faults: list[Fault]) -> Any:
            return self._by_class[cls](value, at, faults)

        return take

    def _variant(self, classes: tuple[type, ...]) -> FromJson:
        named = {cls.__name__: cls for cls in classes}
        listed = " or ".join(f'{{"{name}": {{…}}}}' for name in named)

        def take(value: Any, at: str, faults: list[Fault]) -> Any:
            name = next(iter(value)) if isinstance(value, dict) and len(value) == 1 else None
            if name not in named:
                faults.append(Fault(at, f"expected {listed}, came {_came(value)}"))
                return _UNREAD
            return self._by_class[named[name]](value[name], step(at, name), faults)

        return take


def _field(field: Field, take: FromJson, value: dict[str, Any], at: str, faults: list[Fault]) -> Any:
    if field.name in value:
        return take(value[field.name], step(at, field.name), faults)
    if field.absent is None:
        faults.append(Fault(step(at, field.name), "this field is missing"))
        return _UNREAD
    return field.absent()


def _made(make: Callable[[list[Any]], Any], values: list[Any], at: str, faults: list[Fault]) -> Any:
    try:
        return make(values)
    except RecursionError:
        raise
    except MAKING_FAULTS as error:
        faults.append(Fault(at, f"the class refuses these values: {shown(str(error), 200)}"))
        return _UNREAD


def _scalar(shape: Scalar) -> FromJson:
    from_value = FROM_JSON[shape.kind]
    is_text = shape.kind is Kind.STR

    def take(value: Any, at: str, faults: list[Fault]) -> Any:
        try:
            taken = from_value(value)
        except Unfit as error:
            faults.append(Fault(at, str(error)))
            return _UNREAD
        message = (carried_fault(taken) if is_text else None) or scalar_fault(shape, taken)
        if message:
            faults.append(Fault(at, message))
        return taken

    return take


def _options(shape: Options) -> FromJson:
    members = dict(zip(shape.values, shape.enum or shape.values, strict=True))
    wanted = int if shape.numeric else str
    listed = ", ".join(map(shown, shape.values))

    def take(value: Any, at: str, faults: list[Fault]) -> Any:
        if type(value) is wanted and value in members:
            return members[value]
        faults.append(Fault(at, f"expected one of {listed}, came {_came(value)}"))
        return _UNREAD

    return take


def _or_null(take: FromJson) -> FromJson:
    return lambda value, at, faults: None if value is None else take(value, at, faults)


def _items(shape: Items, take_one: FromJson) -> FromJson:
    def take(value: Any, at: str, faults: list[Fault]) -> Any:
        if not isinstance(value, list):
            faults.append(Fault(at, f"expected a list, came {_came(value)}"))
            return _UNREAD
        length = length_fault(shape.facets, len(value), "items")
        if length:
            faults.append(Fault(at, length))
        return [take_one(item, f"{at}/{index}", faults) for index, item in enumerate(value)]

    return take


def _table(shape: Table, take_key: FromJson, take_one: FromJson) -> FromJson:
    def take(value: Any, at: str, faults: list[Fault]) -> Any:
        if not isinstance(value, dict):
            faults.append(Fault(at, f"expected an object, came {_came(value)}"))
            return _UNREAD
        length = length_fault(shape.facets, len(value), "items")
        if length:
            faults.append(Fault(at, length))
        table = {}
        for key, item in value.items():
            place = step(at, str(key))
            table[take_key(key, place, faults)] = take_one(item, place, faults)
        return table

    return take


def _came(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "an object with " + (", ".join(shown(str(name), 30) for name in list(value)[:5]) or "nothing in it")
    return "a list" if isinstance(value, list) else shown(value)
