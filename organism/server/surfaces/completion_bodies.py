"""What ``/v1/chat/completions`` takes: of OpenAI's API what is kept here, every other parameter is refused by name.

A parameter that only says what is so anyway (``n: 1``) is taken, as is one that no answer depends on (``metadata``):
clients send them. Messages may say more than is read, since clients pass answers back as they got them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, Strict, model_validator, with_config

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
Unused = dict[str, Any] | None
StopText = Annotated[str, Field(min_length=1, max_length=1000)]
_OPEN: Final = ConfigDict(extra="ignore", json_schema_extra={"additionalProperties": True})


@with_config(_OPEN)
@dataclass(frozen=True, slots=True, kw_only=True)
class TextPart:
    """Text in a message."""

    type: Literal["text"]
    text: str
    cache_control: Unused = None


@body
class ImageAddress:
    """Where an image lies: in the address itself, or where the model's provider fetches it."""

    url: Annotated[
        str, Field(pattern=r"^(https://|data:image/[a-z.+-]{1,40};base64,)", examples=["https://x.org/a.png"])
    ]
    detail: Literal["auto", "low", "high"] | None = None


@with_config(_OPEN)
@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePart:
    """An image in a user's message, for models of providers that take images."""

    type: Literal["image_url"]
    image_url: ImageAddress
    cache_control: Unused = None


@with_config(_OPEN)
@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalPart:
    """What the model said instead of an answer; it is read as text."""

    type: Literal["refusal"]
    refusal: str


@with_config(_OPEN)
@dataclass(frozen=True, slots=True, kw_only=True)
class ThoughtPart:
    """What a model thought before an earlier answer; it is not read."""

    type: Literal["thinking", "redacted_thinking", "reasoning"]


Part = Annotated[TextPart | ImagePart | RefusalPart | ThoughtPart, Field(discriminator="type")]


@with_config(_OPEN)
@dataclass(frozen=True, slots=True, kw_only=True)
class CalledFunction:
    """The function of an earlier call; ``arguments`` are JSON text."""

    name: str
    arguments: str | None = None


@with_config(_OPEN)
@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierCall:
    """A call of an earlier answer."""

    id: Annotated[str, Field(min_length=1, max_length=200)]
    type: Literal["function"] | None = None
    function: CalledFunction


@with_config(_OPEN)
@dataclass(frozen=True, slots=True, kw_only=True)
class MessageBody:
    """A message of the conversation; what answers say besides, such as ``reasoning_content``, is not read."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | Annotated[list[Part], Field(max_length=MOST_PARTS, fail_fast=True)] | None = None
    name: str | None = None
    tool_calls: Annotated[list[EarlierCall], Field(max_length=MOST_CALLS, fail_fast=True)] | None = None
    tool_call_id: str | None = None
    refusal: Annotated[str | None, Field(description="Read where there is no `content`.")] = None
    audio: Any = None
    function_call: Any = None
    cache_control: Unused = None

    def faults(self, place: str) -> Iterator[Fault]:
        """What is missing, and what says something that is not read."""
        if self.content is None and self.role != "assistant":
            yield Fault(f"{place}/content", "is missing")
        elif self.content is None and not self.tool_calls:
            if self.audio is not None:
                yield Fault(f"{place}/content", "is missing: of an answer in `audio` send the transcript")
            if self.function_call is not None:
                yield Fault(f"{place}/tool_calls", "is missing: `function_call` is its older form, which is not read")
        if self.role == "tool" and not self.tool_call_id:
            yield Fault(f"{place}/tool_call_id", "is missing")

    def images(self, place: str) -> Iterator[str]:
        """Where its images stand."""
        parts = self.content if isinstance(self.content, list) else ()
        return (f"{place}/content/{at}" for at, part in enumerate(parts) if isinstance(part, ImagePart))

    def sent(self) -> dict[str, Any]:
        """The message as the model's provider is sent it. An answer that said nothing is an empty text."""
        content: Any = self.content
        if isinstance(content, list):
            content = [sent for sent in map(_part, content) if sent is not None]
        calls = [_call(call) for call in self.tool_calls or ()]
        if self.role == "assistant" and not content:
            content = None if calls else self.refusal or ""
        more = {"name": self.name, "tool_calls": calls or None, "tool_call_id": self.tool_call_id}
        return _without_null({"role": self.role, "content": content, **more})


def _part(part: TextPart | ImagePart | RefusalPart | ThoughtPart) -> dict[str, Any] | None:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text}
        case RefusalPart():
            return {"type": "text", "text": part.refusal}
        case ImagePart():
            return {"type": "image_url", "image_url": _without_null(asdict(part.image_url))}
        case ThoughtPart():
            return None


def _call(call: EarlierCall) -> dict[str, Any]:
    function = {"name": call.function.name, "arguments": call.function.arguments or "{}"}
    return {"id": call.id, "type": "function", "function": function}


@body
class FunctionBody:
    """A function of the caller's; ``parameters`` is the JSON Schema of its arguments."""

    name: FunctionName
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: Flag | None = None
    cache_control: Unused = None


@body
class ToolBody:
    """A tool of the caller's, who makes the calls of it."""

    type: Literal["function"]
    function: FunctionBody
    cache_control: Unused = None


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
    include_obfuscation: Flag | None = None


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
    top_logprobs: Literal[0] | None = None
    modalities: Annotated[list[Literal["text"]], Field(max_length=1, fail_fast=True)] | None = None
    store: Flag | None = None
    service_tier: Label | None = None
    metadata: Annotated[dict[str, Label], Field(max_length=16)] | None = None
    user: Label | None = None
    safety_identifier: Label | None = None
    prompt_cache_key: Label | None = None
    prompt_cache_retention: Label | None = None
    prompt_cache_options: Unused = None
    cache_control: Unused = None

    @model_validator(mode="before")
    @classmethod
    def _asked(cls, given: Any) -> Any:
        """Without what is null and would be refused otherwise: it asks for nothing."""
        if not isinstance(given, dict):
            return given
        return {name: value for name, value in given.items() if value is not None or name not in REFUSED}

    @property
    def includes_usage(self) -> bool:
        """Whether a stream tells its usage."""
        return self.stream_options is not None and bool(self.stream_options.include_usage)


REFUSED: Final = frozenset({"audio", "function_call", "functions", "moderation", "prediction", "web_search_options"})
"""What that API has and nobody does here; some clients send each parameter that there is, most of them as null."""
UNUSED: Final = (
    *("store", "service_tier", "metadata", "user", "safety_identifier"),
    *("prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "cache_control"),
)
"""What is taken without effect: no answer depends on it."""
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
        "max_tokens": min(filter(None, (asked.max_tokens, asked.max_completion_tokens)), default=None),
        "parameters": _parameters(asked),
    }
    messages = [message.sent() for message in asked.messages]
    return {"messages": messages, **{name: value for name, value in given.items() if value not in (None, [], {})}}


def unused_in(asked: CompletionBody) -> tuple[str, ...]:
    """The parameters that were sent and have no effect, wherever they stand."""
    options = asked.stream_options
    parts = [part for message in asked.messages if isinstance(message.content, list) for part in message.content]
    functions = [tool.function for tool in asked.tools or ()]
    marked = (asked, *asked.messages, *parts, *(asked.tools or ()), *functions)
    found = {name for name in UNUSED if getattr(asked, name) is not None}
    found |= {"cache_control" for each in marked if getattr(each, "cache_control", None) is not None}
    if options is not None and options.include_obfuscation is not None:
        found.add("stream_options.include_obfuscation")
    return tuple(sorted(found))


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
