"""``Annotated[…]`` constraints (annotated_types, ``pydantic.Field``) → facets; what no XSD can hold is refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from re import UNICODE
from re import Pattern as Compiled
from typing import Any

from annotated_types import BaseMetadata, Ge, GroupedMetadata, Gt, Le, Lt, MaxLen, MinLen
from pydantic.fields import FieldInfo

from organism.codec.lexical import TEXT_OF, Unfit
from organism.codec.pattern import Pattern
from organism.codec.pattern_reader import PatternRefused
from organism.codec.refusal import shown
from organism.codec.shape import Bound, Facets, Items, Kind, Maybe, Scalar, Shape, Table

_BOUNDED = frozenset({Kind.INT, Kind.FLOAT, Kind.DECIMAL, Kind.DATE, Kind.DATETIME})
_ALIASES = ("alias", "validation_alias", "serialization_alias")


class ConstraintRefused(ValueError):
    """A constraint that does not fit its type, or that an XSD cannot hold."""


def constrained(shape: Shape, notes: Iterable[object]) -> Shape:
    """``shape`` with the constraints among ``notes``; other notes mean nothing here."""
    if isinstance(shape, Maybe):
        inside = constrained(shape.inner, notes)
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
            raise ConstraintRefused(f"Field({name}=…) is not allowed: a field has one name everywhere")
    if not note.is_required():
        raise ConstraintRefused("Field(default=…) is not allowed here: give the default as the field's own, after `=`")


def _with(shape: Shape, note: object) -> Shape:
    if isinstance(note, MinLen | MaxLen):
        return _with_length(shape, note)
    if isinstance(note, Ge | Gt | Le | Lt):
        return _with_bound(shape, note)
    pattern = getattr(note, "pattern", None)
    if pattern is not None:
        return _with_pattern(shape, pattern)
    if isinstance(note, BaseMetadata) or type(note).__module__.startswith("pydantic"):
        raise ConstraintRefused(f"{_called(note)} is not allowed; allowed are lengths, ranges and a pattern")
    return shape


def _with_length(shape: Shape, note: MinLen | MaxLen) -> Shape:
    countable = isinstance(shape, Items | Table) or (isinstance(shape, Scalar) and shape.kind in (Kind.STR, Kind.BYTES))
    if not countable:
        raise ConstraintRefused(f"{_called(note)} fits str, bytes, list and dict only")
    assert isinstance(shape, Items | Table | Scalar)  # noqa: S101 - said above, in a form that mypy does not follow
    facets = shape.facets
    if isinstance(note, MinLen):
        return replace(shape, facets=replace(facets, min_length=max(note.min_length, facets.min_length or 0)))
    most = note.max_length if facets.max_length is None else min(note.max_length, facets.max_length)
    return replace(shape, facets=replace(facets, max_length=most))


def _with_bound(shape: Shape, note: Ge | Gt | Le | Lt) -> Shape:
    if not isinstance(shape, Scalar) or shape.kind not in _BOUNDED:
        raise ConstraintRefused(f"{_called(note)} fits int, float, Decimal, date and datetime only")
    facets = shape.facets
    match note:
        case Ge():
            facets = replace(facets, least=_bound(shape.kind, note.ge))
        case Gt():
            facets = replace(facets, above=_bound(shape.kind, note.gt))
        case Le():
            facets = replace(facets, most=_bound(shape.kind, note.le))
        case Lt():
            facets = replace(facets, below=_bound(shape.kind, note.lt))
    return replace(shape, facets=facets)


def _bound(kind: Kind, given: Any) -> Bound:
    bound: Any = given
    try:
        if kind is Kind.DECIMAL:
            bound = Decimal(str(given))
        elif kind is Kind.FLOAT:
            bound = float(given)
        TEXT_OF[kind](bound)
    except (Unfit, InvalidOperation, ValueError, TypeError) as error:
        raise ConstraintRefused(f"the bound {shown(str(given))} does not fit: {error}") from error
    checked: Bound = bound
    return checked


def _with_pattern(shape: Shape, given: object) -> Shape:
    if not isinstance(shape, Scalar) or shape.kind is not Kind.STR:
        raise ConstraintRefused("a pattern fits str only")
    if shape.facets.pattern is not None:
        raise ConstraintRefused("two patterns on one field are not allowed; write them as one")
    if isinstance(given, Compiled) and given.flags & ~UNICODE:
        raise ConstraintRefused("flags of a compiled pattern are not allowed; write the pattern out")
    source = given.pattern if isinstance(given, Compiled) else given
    if not isinstance(source, str):
        raise ConstraintRefused(f"a pattern is text, came {type(source).__name__}")
    try:
        return replace(shape, facets=replace(shape.facets, pattern=Pattern.of(source)))
    except PatternRefused as error:
        raise ConstraintRefused(f"the pattern {shown(source)} is refused: {error}") from error


def _refuse_contradiction(facets: Facets) -> None:
    least, most = facets.min_length, facets.max_length
    if least is not None and most is not None and least > most:
        raise ConstraintRefused(f"no value can have at least {least} and at most {most}")
    lows: list[Any] = [low for low in (facets.least, facets.above) if low is not None]
    highs: list[Any] = [high for high in (facets.most, facets.below) if high is not None]
    if len(lows) > 1 or len(highs) > 1:
        raise ConstraintRefused("ge with gt, or le with lt, says the same twice; keep one of them")
    exclusive = (facets.above, facets.below) != (None, None)
    if lows and highs and (lows[0] > highs[0] or (lows[0] == highs[0] and exclusive)):
        raise ConstraintRefused(f"no value can be between {lows[0]} and {highs[0]}")


def _called(note: object) -> str:
    return f"the constraint {shown(str(note))}"
