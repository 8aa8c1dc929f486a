"""Dataclass → ``Payload``: reads annotations once, at registration, and lists every fault by name.

Constraints (annotated_types, ``pydantic.Field``) become facets; what no XSD can hold is refused.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, replace
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from enum import Enum, Flag
from re import Pattern as Compiled
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NewType, TypeGuard, Union, get_args, get_origin, get_type_hints

from annotated_types import BaseMetadata, Ge, GroupedMetadata, Gt, Le, Lt, MaxLen, MinLen
from pydantic.fields import FieldInfo

from organism.codec.faults import object_as_json
from organism.codec.forms import Forms
from organism.codec.lexical import LEAST_INT, LEXICAL, MOST_INT, Unfit, replaced, uncarried
from organism.codec.limits import UnsupportedPayload, shown
from organism.codec.pattern import Pattern, PatternRefused
from organism.codec.shape import (
    Bound,
    Facets,
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
from organism.model.json_value import JsonMark

_SCALARS = {
    str: Kind.STR,
    int: Kind.INT,
    float: Kind.FLOAT,
    bool: Kind.BOOL,
    Decimal: Kind.DECIMAL,
    bytes: Kind.BYTES,
    date: Kind.DATE,
    datetime: Kind.DATETIME,
}
_BOUNDED = frozenset({Kind.INT, Kind.FLOAT, Kind.DECIMAL, Kind.DATE, Kind.DATETIME})
_FACETS: dict[type, tuple[str, str]] = {
    MinLen: ("min_length", "min_length"),
    MaxLen: ("max_length", "max_length"),
    Ge: ("least", "ge"),
    Gt: ("above", "gt"),
    Le: ("most", "le"),
    Lt: ("below", "lt"),
}
"""Each constraint's facet, and the name of its value."""
_ALIASES = ("alias", "validation_alias", "serialization_alias")
_ALLOWED = (
    "allowed are str, int, float, bool, Decimal, bytes, date, datetime, Enum, Literal, list[T], dict[str, T], "
    "T | None, organism.Json, organism.JsonObject, dataclasses and unions of dataclasses"
)
# What may stand in the name of an element; but for a few letters that XML does not have, all that Python takes.
_NAME = re.compile(r"[A-Za-z_À-ÖØ-öø-˿Ͱ-ͽͿ-῿Ⰰ-⿯、-퟿][\w·\-.]*")


class _Refused(ValueError):
    """An annotation that cannot be a shape, or a constraint that does not fit its type or no XSD can hold."""


def payload_of(cls: type) -> Payload:
    """The shapes of ``cls``; raises ``UnsupportedPayload`` with every fault."""
    reader = _Reader(cls)
    if not reader.faults:
        return Payload(reader.records[cls], reader.records)
    listed = "; ".join(f"{fault.pointer}: {fault.message}" for fault in reader.faults)
    raise UnsupportedPayload(f"{_name(cls)} cannot be a payload: {listed}.", details=tuple(reader.faults))


class _Reader:
    """Walks a class and what it refers to."""

    def __init__(self, root: type) -> None:
        self.records: dict[type, Record] = {}
        self.faults: list[Fault] = []
        self._classes = [root]
        for cls in self._classes:  # which grows as it is walked
            self._read(cls)
        if not self.faults:
            self._check_defaults()

    def _fault(self, where: str, message: str) -> None:
        self.faults.append(Fault(where, message))

    def _read(self, cls: type) -> None:
        name = _name(cls)
        if not _is_dataclass(cls):
            self._fault(name, "expected a class with @dataclass")
            return
        if not cls.__dataclass_params__.init:  # type: ignore[attr-defined]  # every dataclass has them
            self._fault(name, "a dataclass with an __init__ of its own is not allowed; let @dataclass write it")
        if getattr(cls, "__parameters__", ()):
            self._fault(name, "a generic dataclass is not allowed; write one class for each use")
        if not _NAME.fullmatch(cls.__name__):
            self._fault(name, "the name cannot be the name of an XML element")
        try:
            local = {known.__name__: known for known in (cls, self._classes[0])}
            hints = get_type_hints(cls, localns=local, include_extras=True)
        except (NameError, TypeError, AttributeError, SyntaxError) as error:
            advice = "the types must be found in the module of the class"
            self._fault(name, f"its annotations cannot be read: {error}; {advice}")
            return
        fields = [self._field(cls, field, hints[field.name]) for field in dataclasses.fields(cls)]
        for field_name, hint in hints.items():
            if isinstance(hint, dataclasses.InitVar):
                self._fault(f"{name}.{field_name}", "InitVar is not allowed: its value cannot be read back")
        self.records[cls] = Record(cls, cls.__name__, _class_doc(cls), tuple(field for field in fields if field))

    def _field(self, cls: type, field: dataclasses.Field[Any], hint: Any) -> Field | None:
        where = f"{cls.__name__}.{field.name}"
        if not _NAME.fullmatch(field.name):
            self._fault(where, "the name cannot be the name of an XML element")
        if not field.init:
            self._fault(where, "field(init=False) is not allowed: its value cannot be given back; make it a property")
            return None
        if isinstance(field.default, FieldInfo):
            advice = "a dataclass does not read Field(…)"
            self._fault(where, f"write Annotated[…, Field(…)] and the default as a plain value: {advice}")
            return None
        try:
            shape = self._shape(hint)
        except _Refused as error:
            self._fault(where, str(error))
            return None
        has_default = field.default is not MISSING and field.default is not None
        nil = isinstance(shape, Maybe) and (has_default or field.default_factory is not MISSING)
        return Field(field.name, shape, _absent(field, shape), nil, bool(field.kw_only), _field_doc(hint))

    def _shape(self, hint: Any) -> Shape:  # noqa: PLR0911 - one a kind of annotation
        origin = get_origin(hint)
        if origin is Annotated:
            plain, *notes = get_args(hint)
            is_json = any(isinstance(note, JsonMark) for note in notes)
            return _constrained(_json(plain) if is_json else self._shape(plain), notes)
        if isinstance(hint, NewType):
            return self._shape(hint.__supertype__)
        if origin in (Union, UnionType):
            return self._union(get_args(hint))
        if origin is Literal:
            values = tuple(value for value in get_args(hint) if value is not None)
            options = _options(values, "Literal", None)
            return options if len(values) == len(get_args(hint)) else Maybe(options)
        if origin in (list, dict):
            return self._container(hint, origin)
        if isinstance(hint, type) and hint in _SCALARS:
            return Scalar(_SCALARS[hint])
        if isinstance(hint, type) and issubclass(hint, Enum):
            return _options(tuple(member.value for member in hint), hint.__name__, hint)
        if _is_dataclass(hint):
            if hint not in self._classes:
                self._classes.append(hint)
            return Nested(hint)
        raise _Refused(f"{_name(hint)} is not allowed; {_ALLOWED}")

    def _container(self, hint: Any, origin: type) -> Shape:
        given = get_args(hint)
        if not given:
            raise _Refused(f"{_name(hint)} is not allowed; {_ALLOWED}")
        if origin is list:
            return Items(self._shape(given[0]))
        key_hint, value_hint = given
        key = self._shape(key_hint)
        if not isinstance(key, Scalar) or key.kind is not Kind.STR:
            raise _Refused(f"{_name(hint)} is not allowed; the keys of a dict are str")
        return Table(key, self._shape(value_hint))

    def _union(self, members: tuple[Any, ...]) -> Shape:
        rest = [member for member in members if member is not NoneType]
        shapes = [self._shape(member) for member in rest]
        whole = shapes[0] if len(shapes) == 1 else self._variant(rest, shapes)
        return whole if len(rest) == len(members) or isinstance(whole, Maybe) else Maybe(whole)

    def _variant(self, members: list[Any], shapes: list[Shape]) -> Variant:
        classes = [shape.cls for shape in shapes if isinstance(shape, Nested)]
        if len(classes) < len(shapes):
            listed = " | ".join(map(_name, members))
            raise _Refused(f"the union {listed} is not allowed; only dataclasses can be distinguished, and `… | None`")
        names = [cls.__name__ for cls in classes]
        if len(set(names)) < len(names):
            raise _Refused(f"two classes of one name in a union cannot be distinguished: {', '.join(names)}")
        return Variant(tuple(classes))

    def _check_defaults(self) -> None:
        payload = Payload(self.records[self._classes[0]], self.records)
        forms = Forms(payload)
        for cls, record in self.records.items():
            defaults = {field.name: field.default for field in dataclasses.fields(cls)}
            for field in record.fields:
                faults: list[Fault] = []
                if (default := defaults[field.name]) is not MISSING:
                    forms.of(field.shape).from_json(object_as_json(payload, field.shape, default), None, faults)
                advice = "; write `… | None`" if default is None else ""
                for fault in faults:
                    self._fault(f"{cls.__name__}.{field.name}", f"its default does not fit: {fault.message}{advice}")


def _absent(field: dataclasses.Field[Any], shape: Shape) -> Callable[[], object] | None:
    if field.default_factory is not MISSING:
        return field.default_factory
    default = None if field.default is MISSING and isinstance(shape, Maybe) else field.default
    return None if default is MISSING else lambda: default


def _options(values: tuple[Any, ...], what: str, enum: type[Enum] | None) -> Options:
    if enum is not None and issubclass(enum, Flag):
        raise _Refused(f"{what} is a Flag, which is not allowed; write list[…] of an Enum")
    kinds = {type(value) for value in values}
    if kinds not in ({str}, {int}):
        listed = ", ".join(map(shown, values))
        raise _Refused(f"the values of {what} are all text or all whole numbers, came {listed or 'none'}")
    if kinds == {int} and not all(LEAST_INT <= value <= MOST_INT for value in values):
        raise _Refused(f"a value of {what} is beyond ±2⁶³")
    if kinds == {str} and any(uncarried(value) for value in values):
        raise _Refused(f"XML cannot carry a character in a value of {what}")
    return Options(tuple(dict.fromkeys(values)), enum)


def _json(plain: Any) -> Scalar:
    return Scalar(Kind.JSON_OBJECT if get_origin(plain) is dict else Kind.JSON)


def _is_dataclass(cls: object) -> TypeGuard[type]:
    return isinstance(cls, type) and dataclasses.is_dataclass(cls)


def _name(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint).replace("typing.", "")


def _class_doc(cls: type) -> str:
    """The docstring that a person wrote; ``@dataclass`` writes the signature where there is none."""
    text = _text(cls.__dict__.get("__doc__"))
    return "" if text.startswith(f"{cls.__name__}(") else replaced(inspect.cleandoc(text))


def _text(description: object) -> str:
    """What describes a class or a field; one that is no text is left out, since it is only shown."""
    return str.__str__(description) if isinstance(description, str) else ""


def _field_doc(hint: Any) -> str:
    notes = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    texts = [_text(note.description) for note in notes if isinstance(note, FieldInfo)]
    return replaced(inspect.cleandoc(" ".join(text for text in texts if text)))


# ── constraints ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _constrained(shape: Shape, notes: Iterable[object]) -> Shape:
    """``shape`` with the constraints among ``notes``; other notes mean nothing here."""
    if isinstance(shape, Maybe):
        inside = _constrained(shape.inner, notes)
        return inside if isinstance(inside, Maybe) else Maybe(inside)
    for note in _flat(notes):
        shape = _with(shape, note)
    if isinstance(shape, Scalar | Items | Table):
        _refuse_contradiction(shape.facets)
    return shape


def _flat(notes: Iterable[object]) -> Iterator[object]:
    for note in notes:
        if isinstance(note, FieldInfo):
            _refuse_field_options(note)
            yield from _flat(note.metadata)
        elif isinstance(note, GroupedMetadata):
            yield from _flat(note)
        else:
            yield note


def _refuse_field_options(note: FieldInfo) -> None:
    for name in _ALIASES:
        if getattr(note, name) is not None:
            raise _Refused(f"Field({name}=…) is not allowed: a field has one name everywhere")
    if not note.is_required():
        raise _Refused("Field(default=…) is not allowed here: give the default as the field's own, after `=`")


def _with(shape: Shape, note: object) -> Shape:
    """``shape`` with one constraint more."""
    pattern = getattr(note, "pattern", None)
    if pattern is not None:
        return _with_pattern(shape, pattern)
    if type(note) not in _FACETS:
        if isinstance(note, BaseMetadata) or type(note).__module__.startswith("pydantic"):
            raise _Refused(f"{_called(note)} is not allowed; allowed are lengths, ranges and a pattern")
        return shape
    facet, given = _FACETS[type(note)]
    value: Any = getattr(note, given)
    kind = shape.kind if isinstance(shape, Scalar) else None
    if facet in {"min_length", "max_length"}:
        if not isinstance(shape, Items | Table) and kind not in {Kind.STR, Kind.BYTES}:
            raise _Refused(f"{_called(note)} fits str, bytes, list and dict only")
    elif kind not in _BOUNDED:
        raise _Refused(f"{_called(note)} fits int, float, Decimal, date and datetime only")
    else:
        value = _bound(kind, value)
    assert isinstance(shape, Scalar | Items | Table)  # noqa: S101 - said above, in a form that mypy does not follow
    if (before := getattr(shape.facets, facet)) is not None:
        value = max(value, before) if facet in {"min_length", "least", "above"} else min(value, before)
    return replace(shape, facets=replace(shape.facets, **{facet: value}))


def _bound(kind: Kind, given: Any) -> Bound:
    bound: Any = given
    try:
        if kind is Kind.DECIMAL:
            bound = Decimal(str(given))
        elif kind is Kind.FLOAT:
            bound = float(given)
        LEXICAL[kind].text(bound)
    except (Unfit, InvalidOperation, ValueError, TypeError) as error:
        raise _Refused(f"the bound {shown(str(given))} does not fit: {error}") from error
    checked: Bound = bound
    return checked


def _with_pattern(shape: Shape, given: object) -> Shape:
    if not isinstance(shape, Scalar) or shape.kind is not Kind.STR:
        raise _Refused("a pattern fits str only")
    if shape.facets.pattern is not None:
        raise _Refused("two patterns on one field are not allowed; write them as one")
    if isinstance(given, Compiled) and given.flags & ~re.UNICODE:
        raise _Refused("flags of a compiled pattern are not allowed; write the pattern out")
    source = given.pattern if isinstance(given, Compiled) else given
    if not isinstance(source, str):
        raise _Refused(f"a pattern is text, came {type(source).__name__}")
    try:
        return replace(shape, facets=replace(shape.facets, pattern=Pattern.of(source)))
    except PatternRefused as error:
        raise _Refused(f"the pattern {shown(source)} is refused: {error}") from error


def _refuse_contradiction(facets: Facets) -> None:
    """What is left, such as ``ge`` with ``gt``, is no XSD or has no example."""
    pairs: list[tuple[Any, Any]] = [(facets.min_length, facets.max_length)]
    pairs += [(low, high) for low in (facets.least, facets.above) for high in (facets.most, facets.below)]
    for low, high in pairs:
        if low is not None and high is not None and low > high:
            raise _Refused(f"no value can be between {low} and {high}")


def _called(note: object) -> str:
    return f"the constraint {shown(str(note))}"
