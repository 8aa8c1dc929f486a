"""Lists and pages."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # pydantic wants this one below Python 3.12

from organism.server.shapes.objects import Agent, Approval, DeadLetter, Indeterminate, Message, Thread
from organism.server.shapes.words import Count, Cursor, EventType, MessageId, Object, Position, ThreadId, Time, shape


@shape
class Page(TypedDict):
    """What every list says besides its rows."""

    count: Annotated[Count, Field(description="How many are here.")]
    total: Annotated[Count, Field(description="How many there are.")]
    limit: Annotated[int, Field(ge=1, le=500, examples=[50])]
    offset: Annotated[int, Field(ge=0, description="How many come before these.", examples=[0])]
    next: Annotated[Cursor | None, Field(description="The `cursor` of the next page; null on the last.")]


@shape
class AgentList(Page):
    """The listeners, in the order of organism.yaml."""

    agents: list[Agent]


@shape
class ThreadList(Page):
    """Threads, newest activity first."""

    threads: list[Thread]


@shape
class MessageList(Page):
    """Messages, oldest first."""

    messages: list[Message]


@shape
class DeadLetterList(Page):
    """Open dead letters, newest first."""

    dead_letters: list[DeadLetter]


@shape
class ApprovalList(Page):
    """Approvals, oldest first."""

    approvals: list[Approval]


@shape
class IndeterminateList(Page):
    """Open questions, oldest first."""

    indeterminate: list[Indeterminate]


@shape
class ToolFunction(TypedDict):
    """What a model is told of a tool."""

    name: Annotated[str, Field(examples=["calculator"])]
    description: str
    parameters: Annotated[Object, Field(description="The JSON Schema of its arguments.")]


@shape
class Tool(TypedDict):
    """A tool, in the form in which OpenAI-compatible models take it."""

    type: Literal["function"]
    function: ToolFunction
    brings_outside_text: Annotated[bool, Field(description="Its answers may hold text of strangers.")]
    approval: Annotated[bool, Field(description="A person consents to each call.")]
    confirm: Annotated[bool, Field(description="A call is previewed, then confirmed.")]


@shape
class ToolList(TypedDict):
    """The tools that may be called."""

    object: Literal["list"]
    data: list[Tool]


@shape
class ModelShown(TypedDict):
    """A model that the token may use, in the form in which OpenAI-compatible clients read it."""

    id: Annotated[str, Field(description="Its name in organism.yaml.", examples=["gpt-4.1-mini"])]
    object: Literal["model"]
    created: Annotated[int, Field(description="Since when it is served: the organism's start, in seconds since 1970.")]
    owned_by: Annotated[str, Field(description="Its provider.", examples=["offline"])]
    context_window: Annotated[int, Field(description="Tokens of a request and its answer together.")]
    description: Annotated[str, Field(description="What it is, where no one else is asked.")]


@shape
class ModelList(TypedDict):
    """The models that the token may use."""

    object: Literal["list"]
    data: list[ModelShown]


@shape
class Why(TypedDict):
    """How a message came about: it, the one whose handling led to it, and so on; the injection comes last."""

    messages: list[Message]
    count: Count
    next: Annotated[MessageId | None, Field(description="Where the path goes on, if it is longer than 500.")]


@shape
class Actor(TypedDict):
    """Who caused it."""

    tenant: Annotated[str, Field(examples=["default"])]
    user: str | None
    request_id: Annotated[str, Field(examples=["req-5f2c9a01d7e84b36"])] | None
    principal: Annotated[str, Field(description="Who holds the token.", examples=["operator"])] | None


@shape
class Event(TypedDict):
    """One event of the log."""

    position: Position
    type: EventType
    at: Time
    thread_id: Annotated[ThreadId | None, Field(description="Null for what concerns the whole organism.")]
    cause: Annotated[MessageId | None, Field(description="The message whose handling led to it.")]
    correlation: Annotated[MessageId | None, Field(description="The message of the injection at the root.")]
    actor: Actor | None
    data: Annotated[Object, Field(description="What belongs to this type; docs/design.md lists it to the field.")]
    content: NotRequired[Annotated[Any, Field(description="With `content=true`: the text that was kept beside it.")]]


@shape
class Events(TypedDict):
    """A page of the log."""

    events: list[Event]
    next: Annotated[Position | None, Field(description="The `after` of the next page; null at the end.")]
