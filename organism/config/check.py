"""Reads the sections of a file into typed records; each wrong key, type or bound is a fault."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from functools import cache
from types import GenericAlias, NoneType
from typing import Annotated, Any, Final, Literal, TypeVar, get_args, get_type_hints

from pydantic import AfterValidator, ConfigDict, Field, GetCoreSchemaHandler, TypeAdapter, ValidationError
from pydantic_core import CoreSchema, ErrorDetails, core_schema

from organism.config.faults import Faults, Place, near
from organism.config.yaml import Node

Kind = TypeVar("Kind")

MAX_SHOWN: Final = 60

_STRICT: Final = ConfigDict(extra="forbid", strict=True)
_EXPECTED: Final = {
    "int_type": "a whole number",
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "decimal_type": "a number",
    "decimal_parsing": 'a number such as "0.0021"',
    "dataclass_type": "a mapping",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than_equal": "at most {le:.0f}",
    "string_too_short": "text that is not empty",
    "string_pattern_mismatch": "text that is not blank",
    "string_too_long": "at most {max_length} characters",
    "literal_error": "{expected}",
}


def matching(pattern: str, called: str, most: int = 256) -> AfterValidator:
    """Refuses text that is too long or does not match as a whole."""
    compiled = re.compile(pattern)

    def check(text: str) -> str:
        if len(text) > most:
            raise ValueError(f"expected at most {most} characters, came {came(text)}")
        if not compiled.fullmatch(text):
            raise ValueError(f"expected {called}; came {came(text)}")
        return text

    return AfterValidator(check)


class Made:
    """A value that is a ``kind`` in the file; the record holds ``make(value)``."""

    def __init__(self, kind: Any, make: Callable[[Any], object]) -> None:
        self._kind = kind
        self._make = make

    def __get_pydantic_core_schema__(self, _source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._make, handler.generate_schema(self._kind))


class _NotNull:
    """The key may be left out, but null is not accepted."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        nullable: Any = handler(source)
        schema: CoreSchema = nullable["schema"]
        return schema


def money(amount: float) -> Decimal:
    """The amount exactly as written: 0.1 is a tenth."""
    return Decimal(repr(amount))


_MODULE: Final = r"[^\W\d]\w*"

Value = TypeVar("Value")
Given = Annotated[Value | None, _NotNull()]
"""A key that may be left out: then it is None."""
Amount = Annotated[float, Field(ge=0, le=1_000_000_000)]
Number = Annotated[int, Field(ge=0, le=1_000_000_000)]
Money = Annotated[Decimal, Made(Amount, money)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Seconds = Annotated[float, Field(gt=0, le=31_536_000)]
PayloadBytes = Annotated[int, Field(ge=1, le=16 * 1024 * 1024)]
Text = Annotated[str, Field(min_length=1, pattern=r"\S")]
Name = Annotated[
    str, matching(r"[A-Za-z][A-Za-z0-9_.-]*", "a name: a letter, then letters, digits, `_`, `.` or `-`", 128)
]
Title = Annotated[str, Field(min_length=1), matching(r"[^\x00-\x1f\x7f\x85\u2028\u2029]*", "one line of text", 128)]
DottedPath = Annotated[str, matching(rf"{_MODULE}(\.{_MODULE})+", "a dotted path such as `handlers.hello.greet`")]
Prefix = Annotated[str, matching(rf"{_MODULE}(\.{_MODULE})*", "the name of a module such as `handlers`")]
_VARIABLE: Final = "the name of an environment variable such as `SEARCH_TOKEN`, never a key itself"
Variable = Annotated[str, matching(r"[A-Za-z_][A-Za-z0-9_]*", _VARIABLE, 128)]
InvokeMode = Literal["batch", "stream", "force"]


# ── holding a section against its table ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a file: its node, its path from the root, and where its faults go."""

    node: Node
    place: Place
    faults: Faults

    def add(self, message: str, *way: str | int) -> None:
        """Note a fault of what is at ``way`` within, or is missing there."""
        self.faults.add(self.node.nearest(way).line, (*self.place, *way), message)

    def has(self, key: str) -> bool:
        """Whether the key is given, with a right value or a wrong one."""
        return isinstance(self.node.value, dict) and key in self.node.value

    def at(self, *way: str | int) -> Section | None:
        """The section at ``way`` within, or None."""
        node = self.node
        for step in way:
            inner = dict(node.items()).get(step)
            if inner is None:
                return None
            node = inner
        return Section(node, (*self.place, *way), self.faults)

    def mappings(self, *way: str | int, listed: bool = False) -> Iterator[Section]:
        """The mappings in the mapping, or list, at ``way``; the owner's record reports what is no mapping."""
        owner = self.at(*way)
        if owner is None or not isinstance(owner.node.value, tuple if listed else dict):
            return
        for step, node in owner.node.items():
            if isinstance(node.value, dict):
                yield Section(node, (*self.place, *way, step), self.faults)

    def record(self, kind: type[Kind]) -> Kind:
        """The section as a record of that kind. A faulty value is noted and has its default in the record."""
        plain = self.node.plain()
        if isinstance(plain, dict):
            for key in getattr(kind, "REQUIRED", ()):
                if key not in plain:
                    self.add(f"`{key}` is missing", key)
        try:
            return record_of(kind, plain)
        except ValidationError as error:
            note(kind, error, self)
            wrong = error.errors(include_url=False)
        return record_of(kind, without(plain, wrong))


def note(kind: type, error: ValidationError, section: Section) -> None:
    """Note each fault in a record of that kind, which was validated as the only item of a tuple."""
    for detail in error.errors(include_url=False):
        inner = detail["loc"][1:]
        section.add(_message(kind, inner, detail), *inner)


def came(value: Any) -> str:
    """The value and its kind, for an error text: ``true (a boolean)``, ``"five" (text)``, ``a list``."""
    if value is None:
        return "nothing"
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a mapping"
    text = json.dumps(value, ensure_ascii=False)
    shown = text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
    kind = "a boolean" if isinstance(value, bool) else "text" if isinstance(value, str) else "a number"
    return f"{shown} ({kind})"


def record_of(kind: type[Kind], plain: Any) -> Kind:
    """JSON as a record of that kind. Raises ``ValidationError``, whose places begin with a 0."""
    record: Kind
    (record,) = _adapter(kind).validate_json(json.dumps([plain]))  # type: ignore[arg-type]  # a class is hashable
    return record


@cache
def _adapter(kind: Hashable) -> TypeAdapter[Any]:
    of_one: Any = GenericAlias(tuple, (kind,))  # hands its config down
    return TypeAdapter(of_one, config=_STRICT)


def _message(kind: type, inner: Place, detail: ErrorDetails) -> str:
    problem, value, context = detail["type"], detail["input"], detail.get("ctx", {})
    if problem == "unexpected_keyword_argument":
        known = _known_keys(kind, inner[:-1])
        unknown = str(inner[-1])
        return f"unknown key `{unknown}`" + (near(unknown, known) or f"; known here: {', '.join(known)}")
    if problem == "missing":
        return f"`{inner[-1]}` is missing"
    if problem == "value_error":
        return str(context["error"])
    expected = _EXPECTED[problem].format(**context) if problem in _EXPECTED else detail["msg"]
    quotes = "; put it in quotes to make it text" if problem == "string_type" and isinstance(value, int | float) else ""
    return f"expected {expected}, came {came(value)}{quotes}"


def _known_keys(kind: Any, way: Place) -> list[str]:
    """The keys of the table that is reached from ``kind`` by ``way``."""
    for step in way:
        kind = get_type_hints(kind)[str(step)] if is_dataclass(kind) else _inner(kind)
        kind = _inner(kind) if NoneType in get_args(kind) else kind
    return sorted(each.name for each in fields(kind)) if is_dataclass(kind) else []


def _inner(kind: Any) -> Any:
    """The type of a container's members, or the one type that may also be None."""
    return [each for each in get_args(kind) if each not in (NoneType, ...)][-1]


def without(plain: Any, wrong: Sequence[ErrorDetails]) -> Any:
    """Remove the faulty values from ``plain``; in a list from the end, so that indexes stay valid."""
    places = {detail["loc"][1:] for detail in wrong}
    for place in sorted(places, key=lambda place: [(isinstance(step, int), step) for step in place], reverse=True):
        if not place:
            return {}
        owner = plain
        for step in place[:-1]:
            owner = owner[step]
        del owner[place[-1]]
    return plain
