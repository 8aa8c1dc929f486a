"""The bodies of commands, over REST and WebSocket alike: parsed into frozen records, every fault named at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import TracebackType
from typing import Annotated, Any, Final, Literal, TypeVar, dataclass_transform

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    TypeAdapter,
    ValidationError,
    with_config,
)
from pydantic.config import JsonDict
from pydantic_core import ErrorDetails

from organism.config.tenant import CompactStrategy, OnBusy
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
from organism.rag.documents import ID_PATTERN, MOST_CONDITIONS, MOST_DOCUMENTS, MOST_TOP_K
from organism.server.http.problems import MOST_DETAILS, cut

MAX_WAIT_SECONDS: Final = 60.0
NULL: Final[JsonDict] = {"type": "null"}
SOMETHING: Final[JsonDict] = {"not": NULL}
_RESULT_OF_DONE: Final[JsonDict] = {
    "not": {
        "properties": {"outcome": {"enum": ["redo", "fail"]}, "result": SOMETHING},
        "required": ["outcome", "result"],
    }
}
"""The rule of ``IndeterminateBody`` for readers of its schema. Of an ``anyOf`` generators of clients make classes."""
_TEXT_OR_METADATA: Final[JsonDict] = {
    "not": {"properties": {"text": NULL, "metadata": NULL}},
    "examples": [{"metadata": {"category": "sights"}}],
}
"""That of ``PatchDocumentBody``."""

Body = TypeVar("Body")
Name = Annotated[str, Field(min_length=1, max_length=200)]
Names = Annotated[list[Name], Field(max_length=1000, fail_fast=True)]
Wait = Annotated[float, Strict(), Field(gt=0, le=MAX_WAIT_SECONDS, allow_inf_nan=False)]
Bound = Annotated[int, Strict(), Field(ge=0, le=1_000_000_000)]
Amount = Annotated[float, Field(ge=0, le=1_000_000_000, allow_inf_nan=False)]
Position = Annotated[int, Strict(), Field(ge=0, lt=1 << 63)]


def _as_whole(value: Any) -> Any:
    """A whole number may be written as 5.0 in JSON."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def body(kind: type[Body]) -> type[Body]:
    """Make a class a record that takes no other fields than its own."""
    record: type[Body] = dataclass(frozen=True, slots=True, kw_only=True)(kind)
    return with_config(ConfigDict(extra="forbid"))(record)


@body
class NoBody:
    """A command that needs no fields."""


@body
class InjectBody:
    """``POST /inject``: ``wait`` is in seconds."""

    to: Annotated[Name, Field(examples=["greeter"])]
    payload: Annotated[Any, Field(examples=[{"name": "Dan"}])]
    thread_id: Name | None = None
    wait: Wait | None = None


@body
class ChatTurnBody:
    """``POST /a1/agents/{name}/chat``."""

    message: Annotated[str, Field(min_length=1, examples=["What can you do?"])]
    stream: Annotated[bool, Strict()] | None = None


@body
class SpendBody:
    """What may be spent at most; what is left out has no bound, 0 forbids."""

    tokens: Bound | None = None
    usd: Amount | None = None
    calls: Bound | None = None
    seconds: Amount | None = None


@body
class BudgetBody:
    """What each turn of a session may spend, and what all its turns of a day may."""

    run: SpendBody | None = None
    day: SpendBody | None = None


@body
class SessionBody:
    """``POST /a1/agents/{name}/sessions``: what is left out is as the tenant's configuration says."""

    compact_strategy: CompactStrategy | None = None
    compact_keep_last_n: Annotated[int, Strict(), Field(ge=0, le=200)] | None = None
    compact_observation_mask: Annotated[bool, Strict()] | None = None
    budget: BudgetBody | None = None


@body
class SessionTurnBody(ChatTurnBody):
    """``POST /a1/agents/{name}/sessions/{sid}/messages``.

    ``on_busy``: what becomes of it while another turn is open, if not what the tenant's configuration says.
    ``on_disconnect``: ``kill`` ends the turn if the client leaves before its end.
    """

    on_busy: OnBusy | None = None
    on_disconnect: Literal["continue", "kill"] = "continue"


@body
class DocumentBody:
    """A document of the library; the library's own limits are checked by it, since tools have them too."""

    id: Annotated[str, Strict(), Field(json_schema_extra={"pattern": ID_PATTERN}, examples=["d1"])]
    text: Annotated[
        str,
        Strict(),
        Field(json_schema_extra={"minLength": 1}, examples=["Der Tiergarten ist der größte Park Berlins."]),
    ]
    metadata: Annotated[dict[str, Any], Field(examples=[{"lang": "de"}])] = field(default_factory=dict)


@body
class IngestBody:
    """``POST /a1/rag/indices/{index_id}/documents`` and ``…/append``."""

    documents: Annotated[list[DocumentBody], Field(max_length=MOST_DOCUMENTS, fail_fast=True)]
    embedding_model: Annotated[Name | None, Field(description="Of a new index; by default the default one.")] = None


@with_config(ConfigDict(extra="forbid", json_schema_extra=_TEXT_OR_METADATA))
@dataclass(frozen=True, slots=True, kw_only=True)
class PatchDocumentBody:
    """``PATCH /a1/rag/indices/{index_id}/documents/{doc_id}``: at least one of the two."""

    text: Annotated[str, Strict(), Field(json_schema_extra={"minLength": 1})] | None = None
    metadata: dict[str, Any] | None = None


@body
class ReembedBody:
    """``POST /a1/rag/indices/{index_id}/reembed``."""

    embedding_model: Annotated[Name, Field(description="One of `embeddings`, or `builtin`.", examples=["builtin"])]


@body
class RetrieveBody:
    """``POST /a1/rag/indices/{index_id}/query``: ``filter`` names metadata and the values that they must have."""

    query: Annotated[str, Strict(), Field(json_schema_extra={"minLength": 1}, examples=["Wo ist der größte Park?"])]
    top_k: Annotated[int, Strict(), Field(ge=1, le=MOST_TOP_K), BeforeValidator(_as_whole)] = 5
    mode: Literal["vector", "keyword", "hybrid"] = "hybrid"
    filter: Annotated[
        dict[str, StrictStr | StrictInt | StrictFloat | StrictBool | None],
        Field(max_length=MOST_CONDITIONS, examples=[{"lang": "de"}]),
    ] = field(default_factory=dict)


@body
class ExecuteBody:
    """``POST /tools/execute``: ``arguments`` are of the tool's ``parameters``."""

    name: Annotated[Name, Field(examples=["calculator"])]
    arguments: Annotated[dict[str, Any], Field(examples=[{"expression": "2 * 21"}])] = field(default_factory=dict)


@body
class McpBody:
    """``POST /mcp``: a message of JSON-RPC 2.0; what the method takes, the Model Context Protocol says."""

    jsonrpc: Annotated[Literal["2.0"], Field(examples=["2.0"])]
    method: Annotated[str | None, Field(examples=["tools/list"])] = None
    id: Annotated[str | int | None, Field(examples=[1])] = None
    params: dict[str, Any] | None = None
    result: Any = None
    error: dict[str, Any] | None = None


@body
class ReplayBody:
    """``POST /dead-letters/{id}/replay``: without ``payload`` it is sent again as it was."""

    payload: Any = None


@body
class ApprovalBody:
    """``POST /approvals/{id}/resolve``."""

    decision: Literal["approve", "reject"]
    edits: Any = None
    comment: Annotated[str, Field(max_length=10_000)] = ""


@body
class AcceptToolBody:
    """``POST /foreign-tools/{name}/accept``: ``digest`` is that of what was looked at, its ``offered``."""

    digest: Annotated[str, Field(pattern="^[0-9a-f]{64}$", examples=["9f" * 32])]


@with_config(ConfigDict(extra="forbid", json_schema_extra=_RESULT_OF_DONE))
@dataclass(frozen=True, slots=True, kw_only=True)
class IndeterminateBody:
    """``POST /indeterminate/{id}/resolve``: ``result`` belongs to ``done``."""

    outcome: Literal["done", "redo", "fail"]
    result: Any = None


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
