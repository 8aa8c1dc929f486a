"""What acts are answered with, where it is no object."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # pydantic wants this one below Python 3.12

from organism.server.shapes.objects import Message, Thread
from organism.server.shapes.words import AgentName, MessageId, Position, ThreadId, shape


@shape
class Injected(TypedDict):
    """The message is on disk."""

    thread_id: ThreadId
    message_id: MessageId
    position: Position


@shape
class InjectedAndEnded(Injected):
    """The message's thread has ended; all of it is as it stood at that end."""

    replies: Annotated[list[Message], Field(description="The messages to `console` that this injection caused.")]
    thread: Thread


@shape
class Folded(TypedDict):
    """A run as it was in the end: what is null is left out."""

    messages: Annotated[list[dict[str, Any]], Field(examples=[[{"role": "assistant", "content": "Hello"}]])]
    stop_reason: Annotated[str, Field(examples=["stop"])]
    pending_interaction: NotRequired[dict[str, Any]]


@shape
class Output(TypedDict):
    """What came of it."""

    outputs: Folded


@shape
class Invoked(TypedDict):
    """The turn of an agent, all at once."""

    data: Output
    session_id: str | None
    thread_id: ThreadId


@shape
class ToolResult(TypedDict):
    """What a tool answered."""

    result: Annotated[Any, Field(description="Of the tool's own shape.", examples=[{"value": "42", "exact": True}])]


@shape
class Reloaded(TypedDict):
    """What a reload changed: the names of listeners."""

    added: list[AgentName]
    removed: list[AgentName]
    updated: list[AgentName]
    position: Position


@shape
class StopBegun(TypedDict):
    """The graceful stop has begun."""

    status: Literal["stopping"]
    position: Position


@shape
class Ticket(TypedDict):
    """Opens `/ws?ticket=…`, once."""

    ticket: Annotated[str, Field(examples=["ticket_GyXq1b5T0dV8yQb"])]
    expires_in_seconds: Annotated[int, Field(examples=[30])]
