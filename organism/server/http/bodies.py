"""The bodies of commands, over REST and WebSocket alike: parsed into frozen records, every fault named at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import TracebackType
from typing import Annotated, Any, Final, TypeVar, dataclass_transform

from pydantic import (
    ConfigDict,
    Field,
    Strict,
    TypeAdapter,
    ValidationError,
    with_config,
)
from pydantic.config import JsonDict
from pydantic_core import ErrorDetails

from organism.errors import (
    Fault,
    InvalidField,
    InvalidPayload,
    InvalidRequest,
    MessageTooLarge,
    MissingField,
    OrganismError,
    UnknownField,
)
from organism.server.http.contract import MOST_NAME_CHARS, MOST_NAMES
from organism.server.http.problems import MOST_DETAILS, cut

MAX_WAIT_SECONDS: Final = 60.0
NULL: Final[JsonDict] = {"type": "null"}
SOMETHING: Final[JsonDict] = {"not": NULL}

Body = TypeVar("Body")
Name = Annotated[str, Field(min_length=1, max_length=MOST_NAME_CHARS)]
Names = Annotated[list[Name], Field(max_length=MOST_NAMES, fail_fast=True)]
Wait = Annotated[float, Strict(), Field(gt=0, le=MAX_WAIT_SECONDS, allow_inf_nan=False)]
Position = Annotated[int, Strict(), Field(ge=0, lt=1 << 63)]


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def body(kind: type[Body]) -> type[Body]:
    """Make a class a record that takes no other fields than its own."""
    record: type[Body] = dataclass(frozen=True, slots=True, kw_only=True)(kind)
    return with_config(ConfigDict(extra="forbid"))(record)


@body
class NoBody:
    """A command that needs no fields."""


Places = Mapping[str, str | None]
"""Where a request has the fields of a command, by their pointers."""

_KINDS: Final = {
    **dict.fromkeys(("missing", "union_tag_not_found"), MissingField),
    **dict.fromkeys(("extra_forbidden", "unexpected_keyword_argument"), UnknownField),
}
_SAID: Final = {MissingField: "is missing", UnknownField: "is not known here"}
_TAGGED: Final = frozenset({"union_tag_not_found", "union_tag_invalid"})
"""An object may be of several kinds, and the field that says of which is missing or wrong."""
_SHOULD_BE: Final = "input should be "
_Way = tuple[str | int, ...]


def parsed(kind: type[Body], value: Any) -> Body:
    """``value`` (JSON) as a ``kind``. Raises the error of the first fault, with all of them in ``details``.

    Of a list the first wrong element is the only one: a list of a record has a ``max_length`` and is ``fail_fast``.
    """
    hashable: Any = kind
    adapter: TypeAdapter[Body] = _adapter(hashable)
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        raise refusal(error.errors(include_url=False), value) from None


def refusal(errors: Sequence[ErrorDetails], value: Any) -> InvalidRequest:
    """The error that names the first faults of ``value``, and says how many more there are.

    Its class is that of the first. What fits none of several types is one fault; where it has the form of one of them,
    what is wrong within is named instead.
    """
    found: dict[_Way, list[ErrorDetails]] = {}
    for error in errors:
        found.setdefault(_way(error, value), []).append(error)
    around = {way[:length] for way in found for length in range(len(way))}
    named = [(way, wrong) for way, wrong in found.items() if way not in around]
    faults = tuple(Fault("".join(map(_step, way)), _explained(wrong)) for way, wrong in named[:MOST_DETAILS])
    raised = _KINDS.get(named[0][1][0]["type"], InvalidField)
    listed = "; ".join(f"{fault.pointer or '/'}: {fault.message}" for fault in faults)
    more = f"; and {len(named) - len(faults)} more" if len(named) > len(faults) else ""
    return raised(f"{listed}{more}.", details=faults)


def _way(error: ErrorDetails, value: Any) -> _Way:
    """The keys and indices that lead to what is wrong. Pydantic's ``loc`` names the types that were tried as well."""
    steps, wanted = error["loc"], error["input"]
    last: _Way = ()
    if error["type"] == "missing":
        steps, last = steps[:-1], steps[-1:]
    elif error["type"] in _TAGGED:
        last = (error["ctx"]["discriminator"].strip("'"),)
    ways = list(_ways(steps, value))
    way = next((way for way, end in ways if end is wanted or end == wanted), ways[0][0])
    return way + last


def _ways(steps: _Way, value: Any) -> Iterator[tuple[_Way, Any]]:
    """Where those of the steps lead that ``value`` has, which may be of the same name as a type: the longest first."""
    if not steps:
        yield (), value
        return
    step, *rest = steps
    there = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    if step in there:
        yield from (((step, *way), end) for way, end in _ways(tuple(rest), value[step]))
    yield from _ways(tuple(rest), value)


def _step(part: str | int) -> str:
    """A step of a pointer; a name that the client made up may be as long as its request."""
    return "/" + cut(str(part)).replace("~", "~0").replace("/", "~1")


def _explained(errors: Sequence[ErrorDetails]) -> str:
    """What was expected in one place, by each of the types that were tried there, and what came."""
    first = errors[0]
    if (kind := _KINDS.get(first["type"])) is not None:
        return _SAID[kind]
    of_its_type = [error for error in errors if not error["type"].endswith("_type")]
    text, *others = dict.fromkeys(map(_expected, of_its_type or errors))
    expected = " or ".join((text, *(other.removeprefix(_SHOULD_BE) for other in others)))
    came = first["ctx"]["tag"] if first["type"] in _TAGGED else first["input"]
    if isinstance(came, dict | list):
        return expected
    return f"{expected}; came {repr(came[:40]) if isinstance(came, str) else json.dumps(came)[:40]}"


def _expected(error: ErrorDetails) -> str:
    if error["type"] in {"dataclass_type", "dict_type"}:
        return f"{_SHOULD_BE}a JSON object"
    if error["type"] in _TAGGED:
        return f"{_SHOULD_BE}{error['ctx']['expected_tags'].replace(', ', ' or ')}"
    message = error["msg"].replace(" after validation", "")
    return message[0].lower() + message[1:]


@contextmanager
def payload_at(place: str) -> Iterator[None]:
    """Faults of a payload point into the body that holds it at ``place``."""
    try:
        yield
    except InvalidPayload as error:
        error.details = tuple(Fault(place + fault.pointer, fault.message) for fault in error.details)
        error.param = error.details[0].pointer if error.details else error.param or place or None
        raise
    except MessageTooLarge as error:
        error.param = place or "/message"
        raise


@contextmanager
def named_in(places: Places) -> Iterator[None]:
    """Faults of a command's fields point to where the request has them; None: in the path, where no pointer leads."""
    try:
        yield
    except OrganismError as error:
        error.param = places.get(error.param or "", error.param)
        raise


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


class Faults:
    """Looks at parts one after the other: ``with faults: …``, and in the end ``raise_found``."""

    def __init__(self) -> None:
        self._found: list[InvalidRequest] = []

    def __enter__(self) -> None:
        """Look at one part."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: TracebackType | None) -> bool:
        if isinstance(error, InvalidRequest):
            self._found.append(error)
            return True
        return False

    def raise_found(self) -> None:
        """Raise what was found: the only fault as it is; of several the first, with all of them in ``details``."""
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            each = [error.details or (Fault(error.param or "", error.message),) for error in self._found]
            raise type(self._found[0])(" ".join(error.message for error in self._found), details=sum(each, ()))


def refuse_unknown(query: Iterable[str], names: Sequence[str]) -> None:
    """Raise ``UnknownField`` for parameters not among ``names``: ignoring them silently would mislead."""
    faults = Faults()
    for name in query:
        if name not in names:
            takes = f"it takes {', '.join(names)}" if names else "it takes none"
            with faults:
                raise UnknownField(f"The parameter {name!r} is not known here; {takes}.", param=f"query.{name}")
    faults.raise_found()
