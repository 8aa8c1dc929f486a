"""What ``/v1/chat/completions`` takes: of OpenAI's API what is kept here, every other field is refused by name.

A parameter that only says what is so anyway (``n: 1``), or that no answer depends on (``metadata``), is taken, since
clients send it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, Strict, with_config

from organism.agents.providers.answer import MOST_CALLS
from organism.errors import Fault, InvalidField, MissingField
from organism.server.http.bodies import Name, body

MOST_MESSAGES: Final = 10_000
MOST_TOOLS: Final = 128
MOST_PARTS: Final = 1000
"""Of one message."""
FunctionName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$", examples=["find_order"])]
Flag = Annotated[bool, Strict()]
Penalty = Annotated[float, Field(ge=-2, le=2)]
Label = Annotated[str, Field(max_length=1000)]
StopText = Annotated[str, Field(min_length=1, max_length=1000)]
_OPEN: Final = ConfigDict(extra="ignore", json_schema_extra={"additionalProperties": True})


@body
class TextPart:
    """Text in a message."""

    type: Literal["text"]
    text: str


@body
class ImageAddress:
    """Where an image lies: in the address itself, or where the model's provider fetches it."""

    url: Annotated[
        str, Field(pattern=r"^(https://|data:image/[a-z.+-]{1,40};base64,)", examples=["https://x.org/a.png"])
    ]
    detail: Literal["auto", "low", "high"] = "auto"


@body
class ImagePart:
    """An image in a user's message, for models of providers that take images."""

    type: Literal["image_url"]
    image_url: ImageAddress


Part = Annotated[TextPart | ImagePart, Field(discriminator="type")]


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
    content: str | Annotated[list[Part], Field(max_length=MOST_PARTS, fail_fast=True)] | None = None
    name: str | None = None
    tool_calls: Annotated[list[EarlierCall], Field(max_length=MOST_CALLS, fail_fast=True)] | None = None
    tool_call_id: str | None = None

    def faults(self, place: str) -> Iterator[Fault]:
        """What is missing."""
        if self.content is None and not (self.role == "assistant" and self.tool_calls):
            yield Fault(f"{place}/content", "is missing")
        if self.role == "tool" and not self.tool_call_id:
            yield Fault(f"{place}/tool_call_id", "is missing")

    def images(self, place: str) -> Iterator[str]:
        """Where its images stand."""
        parts = self.content if isinstance(self.content, list) else ()
        return (f"{place}/content/{at}" for at, part in enumerate(parts) if isinstance(part, ImagePart))


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
class NamedFunction:
    """The function that is to be called."""

    name: FunctionName


@body
class ToolChoice:
    """The model calls this function."""

    type: Literal["function"]
    function: NamedFunction


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
        Field(
            min_length=1,
            max_length=MOST_MESSAGES,
            fail_fast=True,
            examples=[[{"role": "user", "content": "Hello!"}]],
        ),
    ]
    tools: Annotated[list[ToolBody], Field(max_length=MOST_TOOLS, fail_fast=True)] | None = None
    tool_choice: Literal["auto", "none", "required"] | ToolChoice | None = None
    parallel_tool_calls: Flag | None = None
    response_format: FormatBody | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    max_tokens: Annotated[int, Strict(), Field(ge=1, le=1_000_000)] | None = None
    max_completion_tokens: Annotated[int, Strict(), Field(ge=1, le=1_000_000)] | None = None
    stream: Flag | None = None
    stream_options: StreamOptions | None = None
    n: Literal[1] | None = None
    stop: StopText | Annotated[list[StopText], Field(max_length=16, fail_fast=True)] | None = None
    seed: Annotated[int, Strict(), Field(ge=-(1 << 63), lt=1 << 63)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    logit_bias: Annotated[dict[str, Annotated[float, Field(ge=-100, le=100)]], Field(max_length=1024)] | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    verbosity: Literal["low", "medium", "high"] | None = None
    logprobs: Literal[False] | None = None
    store: Literal[False] | None = None
    modalities: Annotated[list[Literal["text"]], Field(max_length=1, fail_fast=True)] | None = None
    service_tier: Literal["auto", "default"] | None = None
    metadata: Annotated[dict[str, Label], Field(max_length=16)] | None = None
    prompt_cache_key: Label | None = None
    safety_identifier: Label | None = None
    user: Label | None = None

    @property
    def includes_usage(self) -> bool:
        """Whether a stream tells its usage."""
        return self.stream_options is not None and bool(self.stream_options.include_usage)


FORWARDED: Final = (
    *("stop", "seed", "top_p", "presence_penalty", "frequency_penalty", "logit_bias", "reasoning_effort", "verbosity"),
)
"""What the model's provider is sent as it came, if its API has it."""


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
                **({} if tool.strict is None else {"strict": tool.strict}),
            }
            for tool in tools
        ],
        "response_format": _format(asked.response_format),
        "temperature": asked.temperature,
        "max_tokens": asked.max_tokens or asked.max_completion_tokens,
        "parameters": _parameters(asked),
    }
    messages = [_without_null(asdict(message)) for message in asked.messages]
    return {"messages": messages, **{name: value for name, value in given.items() if value not in (None, [], {})}}


def _parameters(asked: CompletionBody) -> dict[str, Any]:
    choice = asdict(asked.tool_choice) if isinstance(asked.tool_choice, ToolChoice) else asked.tool_choice
    given = {name: getattr(asked, name) for name in FORWARDED}
    given["tool_choice"] = None if choice in ("auto", "none") else choice
    given["parallel_tool_calls"] = False if asked.parallel_tool_calls is False else None
    return _without_null(given)


def _format(asked: FormatBody | None) -> dict[str, Any] | None:
    if asked is None or asked.type == "text":
        return None
    if asked.type == "json_schema" and asked.json_schema is None:
        raise MissingField("/response_format/json_schema: is missing.", param="/response_format/json_schema")
    schema = {} if asked.json_schema is None else {"json_schema": _without_null(asdict(asked.json_schema))}
    return {"type": asked.type, **schema}


def _without_null(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}
