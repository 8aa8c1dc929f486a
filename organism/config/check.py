"""Holding a section of the file against its table: each key, type and bound that is wrong becomes a fault."""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import GenericAlias, NoneType
from typing import Any, Final, TypeVar, get_args, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from organism.config.faults import Faults, Place
from organism.config.fields import PATTERNS
from organism.config.text import near
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
    "string_too_long": "at most {max_length} characters",
    "literal_error": "{expected}",
}


def held(kind: type[Kind], node: Node, place: Place, faults: Faults) -> Kind:
    """The section at ``place`` as a record of its kind.

    What is wrong goes to ``faults`` and is left out of the record, which then has the default in its place.
    """
    plain = node.plain()
    if isinstance(plain, dict):
        for key in getattr(kind, "REQUIRED", ()):
            if key not in plain:
                faults.add(node.line, (*place, key), f"`{key}` is missing")
    try:
        return _record(kind, plain)
    except ValidationError as error:
        note(kind, error, node, place, faults)
        wrong = error.errors(include_url=False)
    return _record(kind, _without(plain, wrong))


def note(kind: type, error: ValidationError, node: Node, place: Place, faults: Faults) -> None:
    """Note each fault in a record of that kind, which was validated as the only item of a tuple."""
    for detail in error.errors(include_url=False):
        inner = detail["loc"][1:]
        faults.add(node.nearest(inner).line, (*place, *inner), _message(kind, inner, detail))


def came(value: Any) -> str:
    """The value and what it is, in few words: ``true (a boolean)``, ``"five" (text)``, ``a list``."""
    if value is None:
        return "nothing"
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a mapping"
    text = json.dumps(value, ensure_ascii=False)
    shown = text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"
    kind = "a boolean" if isinstance(value, bool) else "text" if isinstance(value, str) else "a number"
    return f"{shown} ({kind})"


def _record(kind: type[Kind], plain: Any) -> Kind:
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
    if problem == "string_pattern_mismatch":
        return f"expected {PATTERNS[context['pattern']]}; came {came(value)}"
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
    """The type of a container's members, or the one type that may be None besides."""
    return [each for each in get_args(kind) if each not in (NoneType, ...)][-1]


def _without(plain: Any, wrong: Sequence[ErrorDetails]) -> Any:
    """The section without its faulty values; of lists the last goes first, so that indexes stay true."""
    places = {detail["loc"][1:] for detail in wrong}
    for place in sorted(places, key=lambda place: [(isinstance(step, int), step) for step in place], reverse=True):
        if not place:
            return {}
        owner = plain
        for step in place[:-1]:
            owner = owner[step]
        del owner[place[-1]]
    return plain
