"""The shapes of the API: objects, lists, answers of acts, errors, what models cost, and the configuration in force."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # pydantic wants this one below Python 3.12

from organism.model import words
from organism.server.http.contract import Injected
from organism.views.threads import Message, Thread


class ToolFunction(TypedDict):
    """A tool as models are shown it."""

    name: Annotated[str, Field(examples=["calculator"])]
    description: str
    parameters: Annotated[words.Object, Field(description="The JSON Schema of its arguments.")]


class Tool(TypedDict):
    """A tool, in the form in which OpenAI-compatible models take it."""

    type: Literal["function"]
    function: ToolFunction
    brings_outside_text: Annotated[bool, Field(description="Its answers may hold text of strangers.")]
    approval: Annotated[bool, Field(description="A person consents to each call.")]
    confirm: Annotated[bool, Field(description="A call is previewed, then confirmed.")]
    read_only: Annotated[bool, Field(description="A call changes nothing.")]
    destructive: Annotated[bool, Field(description="A call may change what is there, as far as it is known.")]
    idempotent: Annotated[bool, Field(description="A repeated call changes nothing more.")]
    open_world: Annotated[bool, Field(description="A call may reach what is outside of the organism.")]
    result: Annotated[words.Object, Field(description="The JSON Schema of its result.")]


class ToolList(TypedDict):
    """The tools that may be called."""

    object: Literal["list"]
    data: list[Tool]


class ModelShown(TypedDict):
    """A model that the token may use, in the form in which OpenAI-compatible clients read it."""

    id: Annotated[str, Field(description="Its name in organism.yaml.", examples=["gpt-4.1-mini"])]
    object: Literal["model"]
    created: Annotated[int, Field(description="Since when it is served: the organism's start, in seconds since 1970.")]
    owned_by: Annotated[str, Field(description="Its provider.", examples=["offline"])]
    context_window: Annotated[int, Field(description="Tokens of a request and its answer together.")]
    description: Annotated[str, Field(description="What it is, unless it is a model of a provider.")]


class ModelList(TypedDict):
    """The models that the token may use."""

    object: Literal["list"]
    data: list[ModelShown]


class CompletionUsage(TypedDict):
    """Tokens of all of the answer's model calls, as the provider counted them."""

    prompt_tokens: words.Count
    completion_tokens: words.Count
    total_tokens: words.Count


class CompletionMessage(TypedDict):
    """What the model said, and the calls of the caller's own functions."""

    role: Literal["assistant"]
    content: Annotated[str | None, Field(examples=["Hello!"])]
    reasoning_content: NotRequired[Annotated[str, Field(description="What the model thought aloud.")]]
    tool_calls: NotRequired[list[words.Object]]


class CompletionChoice(TypedDict):
    """The one answer."""

    index: Annotated[int, Field(examples=[0])]
    message: CompletionMessage
    finish_reason: Literal["stop", "length", "tool_calls", "content_filter"]


class ChatCompleted(TypedDict):
    """The answer in the form of OpenAI's API."""

    id: words.ThreadId
    object: Literal["chat.completion"]
    created: Annotated[int, Field(description="Seconds since 1970.")]
    model: Annotated[str, Field(description="As it was asked for.", examples=["gpt-4.1-mini"])]
    choices: list[CompletionChoice]
    usage: CompletionUsage
    served_by: Annotated[str, Field(description="The provider that answered.", examples=["offline"])]


class EmbeddingShown(TypedDict):
    """The vector of one input."""

    object: Literal["embedding"]
    index: words.Count
    embedding: Annotated[
        list[float] | str, Field(description="Numbers, or as `base64` their bytes: float32, little-endian.")
    ]


class EmbeddingUsage(TypedDict):
    """Tokens, as the provider counted them; those of the built-in model are estimated."""

    prompt_tokens: words.Count
    total_tokens: words.Count


class EmbeddingList(TypedDict):
    """The vectors, in the order of the inputs."""

    object: Literal["list"]
    data: list[EmbeddingShown]
    model: str
    usage: EmbeddingUsage


class RunError(TypedDict):
    """Why a run failed."""

    code: Annotated[str, Field(examples=["upstream_error"])]
    message: str


class ChatTurn(TypedDict):
    """What came of a turn."""

    reply: Annotated[str, Field(description="The agent's last words.", examples=["Tennis."])]
    messages: Annotated[list[dict[str, Any]], Field(examples=[[{"role": "assistant", "content": "Tennis."}]])]
    stop_reason: Annotated[str, Field(examples=["stop"])]
    pending_interaction: NotRequired[dict[str, Any]]
    error: NotRequired[Annotated[RunError, Field(description="Of a turn that failed after it had shown something.")]]
    usage: Annotated[dict[str, int], Field(examples=[{"input": 40, "output": 4, "total": 44}])]
    citations: NotRequired[Annotated[list[str], Field(description="The sources that the answer names.")]]
    agent: words.AgentName
    model: Annotated[str | None, Field(examples=["llama-4-scout"])]
    thread_id: words.ThreadId


class SessionTurn(ChatTurn):
    """What came of a turn of a session."""

    session_id: words.SessionId


class SessionCompacted(TypedDict):
    """A compaction: the source is archived, and its successor begins with the summary."""

    source_session_id: words.SessionId
    successor_session_id: words.SessionId
    summary_id: words.MessageId
    summary_text: str
    tokens: Annotated[words.Count, Field(description="About how many the source had come to.")]


class InjectedAndEnded(Injected):
    """The message's thread has ended; all of it is as it stood at that end."""

    replies: Annotated[list[Message], Field(description="The messages to `console` that this injection caused.")]
    thread: Thread


class Folded(TypedDict):
    """A run as it was in the end: what is null is left out."""

    messages: Annotated[list[dict[str, Any]], Field(examples=[[{"role": "assistant", "content": "Hello"}]])]
    stop_reason: Annotated[str, Field(examples=["stop"])]
    pending_interaction: NotRequired[dict[str, Any]]
    error: NotRequired[Annotated[RunError, Field(description="Of a run that failed after it had shown something.")]]


class Output(TypedDict):
    """What came of it."""

    outputs: Folded


class Invoked(TypedDict):
    """The turn of an agent, all at once."""

    data: Output
    session_id: str | None
    thread_id: words.ThreadId
    position: NotRequired[Annotated[words.Position, Field(description="In a session: where the message was taken up.")]]


class ToolExecuted(TypedDict):
    """What a tool answered."""

    result: Annotated[Any, Field(description="Of the tool's own shape.", examples=[{"value": "42", "exact": True}])]
