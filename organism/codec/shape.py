"""The shapes that a payload may have: what ``reflect`` makes of a dataclass, once, and everything else is derived from.

A ``Payload`` is a root class and the ``Record`` of each dataclass in reach of it. Records refer to each other by class
(``Nested``), so a recursive dataclass is no special case.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from operator import ge, gt, le, lt
from typing import Any, NamedTuple

from organism.codec.pattern import Pattern

Bound = int | float | Decimal | date


class Kind(Enum):
    """The scalar types; the value is what a person calls it."""

    STR = "text"
    INT = "whole number"
    FLOAT = "number"
    BOOL = "true or false"
    DECIMAL = "decimal number as text"
    BYTES = "base64 text"
    DATE = "date (YYYY-MM-DD)"
    DATETIME = "date and time with offset (ISO 8601)"
    JSON = "JSON"
    JSON_OBJECT = "JSON object"


@dataclass(frozen=True, slots=True)
class Facets:
    """Constraints of a value. Lengths count characters, bytes or items; ``above`` and ``below`` exclude the bound."""

    min_length: int | None = None
    max_length: int | None = None
    pattern: Pattern | None = None
    least: Bound | None = None
    above: Bound | None = None
    most: Bound | None = None
    below: Bound | None = None


FREE = Facets()


class Limit(NamedTuple):
    """A facet that bounds a length or a value: its names, its words, and the test for a violation."""

    name: str
    words: str
    is_broken: Callable[[Any, Any], bool]
    xsd: str
    json: str

    def of(self, facets: Facets) -> Any:
        """The bound, or None."""
        return getattr(facets, self.name)


LENGTHS = (
    Limit("min_length", "at least {} {}", lt, "minLength", "min"),
    Limit("max_length", "at most {} {}", gt, "maxLength", "max"),
)
RANGES = (
    Limit("least", "{} or more", lt, "minInclusive", "minimum"),
    Limit("above", "more than {}", le, "minExclusive", "exclusiveMinimum"),
    Limit("most", "{} or less", gt, "maxInclusive", "maximum"),
    Limit("below", "less than {}", ge, "maxExclusive", "exclusiveMaximum"),
)


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value with a text form."""

    kind: Kind
    facets: Facets = FREE


@dataclass(frozen=True, slots=True)
class Options:
    """One of a few values, all text or all whole numbers; members of ``enum`` if that is given, else a Literal's."""

    values: tuple[str, ...] | tuple[int, ...]
    enum: type[Enum] | None = None

    @property
    def numeric(self) -> bool:
        """Whether the values are whole numbers."""
        return isinstance(self.values[0], int)


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    item: Shape
    facets: Facets = FREE


@dataclass(frozen=True, slots=True)
class Table:
    """A dict with text keys, in the order of its insertion."""

    key: Scalar
    value: Shape
    facets: Facets = FREE


@dataclass(frozen=True, slots=True)
class Nested:
    """A dataclass within a payload."""

    cls: type


@dataclass(frozen=True, slots=True)
class Variant:
    """One of several dataclasses, distinguished by name."""

    classes: tuple[type, ...]


@dataclass(frozen=True, slots=True)
class Maybe:
    """The inner shape, or None."""

    inner: Scalar | Options | Items | Table | Nested | Variant


Shape = Scalar | Options | Items | Table | Nested | Variant | Maybe


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record.

    ``absent`` gives the value for a field that is left out; None means that it must be there. ``nil`` says that None is
    written as ``xsi:nil``: an optional field with a default of its own, where a missing element means the default.
    """

    name: str
    shape: Shape
    absent: Callable[[], object] | None
    nil: bool
    keyword: bool
    doc: str


@dataclass(frozen=True, slots=True)
class Record:
    """A dataclass: its name is the element's or type's name, its fields stand in order."""

    cls: type
    name: str
    doc: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Payload:
    """A root class with every record in reach, the root's first."""

    root: Record
    records: dict[type, Record]


def inner(shape: Shape) -> Scalar | Options | Items | Table | Nested | Variant:
    """The shape without its ``| None``."""
    return shape.inner if isinstance(shape, Maybe) else shape


def type_names(payload: Payload) -> dict[type, str]:
    """A name for each record's type; two classes of one name get a number."""
    names: dict[type, str] = {}
    for record in payload.records.values():
        same = sum(known.__name__ == record.name for known in names)
        names[record.cls] = record.name + (f"-{same + 1}" if same else "")
    return names
