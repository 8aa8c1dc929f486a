"""The objects of the API: the organism, its agents, threads and messages, and what waits for people."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # pydantic wants this one below Python 3.12

from organism.server.shapes.words import (
    AgentName,
    AgentState,
    ApprovalStatus,
    Count,
    Cursor,
    Digest,
    MessageId,
    Object,
    OrganismStatus,
    Payload,
    PayloadType,
    Position,
    Reason,
    ThreadId,
    ThreadStatus,
    Time,
    Version,
    shape,
)


@shape
class Organism(TypedDict):
    """The organism as a whole."""

    name: Annotated[str, Field(examples=["hello-world"])]
    status: OrganismStatus
    uptime_seconds: Count
    agent_count: Count
    active_threads: Count
    total_messages: Count
    version: Version
    position: Annotated[Position, Field(description="The head of the log.")]


@shape
class Agent(TypedDict):
    """A listener, and what it does now."""

    name: AgentName
    description: Annotated[str, Field(examples=["Greets whoever is named"])]
    is_agent: bool
    peers: Annotated[list[AgentName], Field(description="Whom it may write to.")]
    payload_class: Annotated[str, Field(examples=["handlers.hello.Greeting"])]
    state: AgentState
    current_thread: Annotated[ThreadId | None, Field(description="That of the latest start still open.")]
    queue_depth: Annotated[Count, Field(description="What waits for a start, retries too.")]
    last_activity: Time | None
    paused: Annotated[bool, Field(description="True from the pause on, though something may still run.")]
    message_count: Count
    model: Annotated[str, Field(examples=["default"])] | None
    version: Version | None


@shape
class ControlledAgent(Agent):
    """The agent as it stands after the act, and where the act stands in the log."""

    position: Position


@shape
class Message(TypedDict):
    """A message."""

    id: MessageId
    thread_id: ThreadId
    from_: Annotated[AgentName, Field(alias="from", description="Who sent it; `console` is the outside.")]
    to: AgentName
    payload_type: PayloadType
    payload: Payload
    timestamp: Time
    position: Position
    cause: Annotated[MessageId | None, Field(description="The message whose handling led to it.")]
    xml: NotRequired[
        Annotated[
            Annotated[str, Field(examples=["<message/>"])] | None,
            Field(description="With `?xml=true`: the recorded envelope, byte for byte; null once it was erased."),
        ]
    ]


@shape
class Thread(TypedDict):
    """A thread."""

    id: ThreadId
    status: ThreadStatus
    paused: bool
    participants: Annotated[list[AgentName], Field(description="Who takes part, in the order in which they came.")]
    message_count: Count
    created_at: Time
    last_activity: Time
    error: Annotated[Reason | None, Field(description="Why it failed, if it did.")]
    session_id: str | None
    tokens: Count
    cost_usd: Annotated[str, Field(description="A decimal number.", examples=["0"])]
    position: Annotated[Position, Field(description="That of its last event: its ETag, what `If-Match` compares.")]


@shape
class ThreadWithMessages(Thread):
    """A thread with its first 500 messages."""

    messages: list[Message]
    next: Annotated[Cursor | None, Field(description="The `cursor` for `/threads/{id}/messages` to go on with.")]


@shape
class DeadLetterHead(TypedDict):
    """A message that failed for good, or a send that was refused."""

    id: MessageId
    thread_id: ThreadId
    agent: Annotated[AgentName, Field(description="Who was to handle it, or wanted to send it.")]
    from_: Annotated[AgentName, Field(alias="from")]
    to: AgentName
    payload_type: PayloadType
    code: Annotated[str, Field(examples=["handler_error"])]
    reason: Reason
    attempts: Count
    timestamp: Annotated[Time, Field(description="When it died. UTC, ISO 8601.")]
    position: Position


@shape
class DeadLetter(DeadLetterHead):
    """A message that failed for good, or a send that was refused, with its payload."""

    payload: Payload


@shape
class Approval(TypedDict):
    """What waits, or waited, for a human's word."""

    id: Annotated[str, Field(examples=["apr-01a2b3c4"])]
    thread_id: ThreadId
    message_id: MessageId
    agent: AgentName
    payload_type: Annotated[
        PayloadType | None, Field(description="Of a call that waits for consent: its payload is the preview.")
    ]
    why: Annotated[str | None, Field(description="Of a tainted run's call that cannot be undone: why you are asked.")]
    preview: Payload
    form_schema: NotRequired[Annotated[Object, Field(description="What `edits` of the payload may be.")]]
    digest: Annotated[Digest, Field(description="Of the preview's canonical bytes, to which a decision is bound.")]
    status: ApprovalStatus
    requested_at: Time
    expires_at: Time
    position: Position


@shape
class Indeterminate(TypedDict):
    """An unsafe effect of which nobody knows whether it happened."""

    id: Annotated[str, Field(description="`MESSAGE:STEP`.", examples=["msg-01a2b3c4:1"])]
    thread_id: ThreadId
    message_id: MessageId
    agent: AgentName
    step: Count
    key: Annotated[str, Field(description="The key that the effect got.", examples=["msg-01a2b3c4/pay"])]
    since: Time
    position: Position
