"""What ``/v1/chat/completions`` takes: of OpenAI's API what is kept here, every other field is refused by name.

A parameter that only says what is so anyway (``n: 1``) is taken, since clients send it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, Strict, with_config

from organism.errors import Fault, InvalidField, MissingField
from organism.server.http.bodies import Name, body

MOST_MESSAGES: Final = 10_000
MOST_TOOLS: Final = 128
FunctionName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$", examples=["find_order"])]
Flag = Annotated[bool, Strict()]
Nothing = Annotated[float, Field(ge=0, le=0)] | None
"""A penalty: none is kept here."""
_OPEN: Final = ConfigDict(extra="ignore", json_schema_extra={"additionalProperties": True})


@body
class TextPart:
    """A part of a message. There are no other parts than text."""

    type: Literal["text"]
    text: str


@body
class CalledFunction:
    """The function of an earlier call; ``arguments`` are JSON text."""

    name: str
    arguments: str


@with_config(_OPEN)
@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierCall:
    """A call of an earlier answer."""

    id: Annotated[str, Field(min_length=1, max_length=200)]
    type: Literal["function"] = "function"
    function: CalledFunction


@with_config(_OPEN)
@dataclass(frozen=True, slots=True, kw_only=True)
class MessageBody:
    """A message of the conversation; what answers say besides, such as ``refusal``, is not read."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[TextPart] | None = None
    name: str | None = None
    tool_calls: list[EarlierCall] | None = None
    tool_call_id: str | None = None

    def faults(self, place: str) -> Iterator[Fault]:
        """What is missing."""
        if self.content is None and not (self.role == "assistant" and self.tool_calls):
            yield Fault(f"{place}/content", "is missing")
        if self.role == "tool" and not self.tool_call_id:
            yield Fault(f"{place}/tool_call_id", "is missing")


@body
class FunctionBody:
    """A function of the caller's; ``parameters`` is the JSON Schema of its arguments."""

    name: FunctionName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: Flag | None = None


@body
class ToolBody:
    """A tool of the caller's, who makes the calls of it."""

    type: Literal["function"]
    function: FunctionBody


@body
class SchemaBody:
    """The JSON Schema that the answer follows."""

    name: FunctionName
    schema: dict[str, Any]
    description: str | None = None
    strict: Flag | None = None


@body
class FormatBody:
    """The form of the answer's text."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: SchemaBody | None = None


@body
class StreamOptions:
    """``include_usage``: a chunk with the usage comes before the last line."""

    include_usage: Flag | None = None


@body
class CompletionBody:
    """``POST /v1/chat/completions``."""

    model: Annotated[Name, Field(examples=["gpt-4.1-mini"])]
    messages: Annotated[
        list[MessageBody],
        Field(min_length=1, max_length=MOST_MESSAGES, examples=[[{"role": "user", "content": "Hello!"}]]),
    ]
    tools: Annotated[list[ToolBody], Field(max_length=MOST_TOOLS)] | None = None
    tool_choice: Literal["auto", "none"] | None = None
    response_format: FormatBody | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, Strict(), Field(ge=1, le=1_000_000)] | None = None
    max_completion_tokens: Annotated[int, Strict(), Field(ge=1, le=1_000_000)] | None = None
    stream: Flag | None = None
    stream_options: StreamOptions | None = None
    n: Literal[1] | None = None
    top_p: Annotated[float, Field(ge=1, le=1)] | None = None
    presence_penalty: Nothing = None
    frequency_penalty: Nothing = None
    logprobs: Literal[False] | None = None
    store: Literal[False] | None = None
    parallel_tool_calls: Literal[True] | None = None
    user: Annotated[str, Field(max_length=1000)] | None = None

    @property
    def includes_usage(self) -> bool:
        """Whether a stream tells its usage."""
        return self.stream_options is not None and bool(self.stream_options.include_usage)


def request_of(asked: CompletionBody) -> dict[str, Any]:
    """The ``request`` of a ``ChatCompletionRequest``. Raises ``MissingField`` or ``InvalidField``."""
    missing = [fault for at, each in enumerate(asked.messages) for fault in each.faults(f"/messages/{at}")]
    if missing:
        raise MissingField(f"{missing[0].pointer}: {missing[0].message}.", details=tuple(missing))
    tools = () if asked.tool_choice == "none" else tuple(tool.function for tool in asked.tools or ())
    names = [tool.name for tool in tools]
    for at, name in enumerate(names):
        if name in names[:at]:
            raise InvalidField(f"Two functions are called {name!r}.", param=f"/tools/{at}/function/name")
    if None not in {asked.max_tokens, asked.max_completion_tokens}:
        raise InvalidField("`max_tokens` is the older name of this; send one of them.", param="/max_completion_tokens")
    if asked.stream_options is not None and not asked.stream:
        raise InvalidField("`stream_options` go with `stream: true`.", param="/stream_options")
    given = {
        "tools": [
            {
                "name": tool.name,
                "description": tool.description or "",
                "parameters": tool.parameters or {"type": "object", "properties": {}},
            }
            for tool in tools
        ],
        "response_format": _format(asked.response_format),
        "temperature": asked.temperature,
        "max_tokens": asked.max_tokens or asked.max_completion_tokens,
    }
    messages = [_without_null(asdict(message)) for message in asked.messages]
    return {"messages": messages, **{name: value for name, value in given.items() if value not in (None, [])}}


def _format(asked: FormatBody | None) -> dict[str, Any] | None:
    if asked is None or asked.type == "text":
        return None
    if asked.type == "json_schema" and asked.json_schema is None:
        raise MissingField("/response_format/json_schema: is missing.", param="/response_format/json_schema")
    schema = {} if asked.json_schema is None else {"json_schema": _without_null(asdict(asked.json_schema))}
    return {"type": asked.type, **schema}


def _without_null(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}
