"""The words that shapes are made of: ids, positions, times and states, each with its bounds and an example."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypeAliasType  # the one of typing comes with Python 3.12

from organism.events.vocabulary import EVENTS
from organism.model.run import REQUIRED
from organism.server.push.frames import FRAMES

AgentName = Annotated[str, Field(min_length=1, examples=["greeter"])]
ThreadId = Annotated[str, Field(examples=["thr-01a2b3c4"])]
SessionId = Annotated[str, Field(examples=["ses-01a2b3c4"])]
MessageId = Annotated[str, Field(examples=["msg-01a2b3c4"])]
Position = Annotated[int, Field(ge=0, lt=1 << 63, description="Where it stands in the log.", examples=[3])]
Count = Annotated[int, Field(ge=0, examples=[4])]
Time = Annotated[
    str,
    Field(description="UTC, ISO 8601.", examples=["2026-01-15T10:00:00Z"], json_schema_extra={"format": "date-time"}),
]
Digest = Annotated[str, Field(description="SHA-256.", examples=["9f86d081884c7d65"])]
Payload = Annotated[
    Any,
    Field(description='Of the receiver\'s schema; `{"erased":true}` once it was erased.', examples=[{"name": "Dan"}]),
]
Cursor = Annotated[str, Field(examples=["AAAAAAAyq1b5-0dV8yQb"])]
PayloadType = Annotated[str, Field(examples=["Greeting"])]
Reason = Annotated[str, Field(examples=["ValueError: no such name"])]
Version = Annotated[str, Field(description="Changes with the configuration and the code.", examples=["5f2c9a01"])]


def _one_of(names: Iterable[str], description: str, example: str) -> Any:
    """The description of a field that has one of these names."""
    return Field(description=description, json_schema_extra={"enum": [*sorted(names)]}, examples=[example])


EventType = TypeAliasType("EventType", Annotated[str, _one_of(EVENTS, "The type of an event.", "message_sent")])
EventData = TypeAliasType("EventData", dict[str, Any])
"""The fields of any event. ``documents/events.py`` makes its schema of the vocabulary."""
EntryType = TypeAliasType("EntryType", Annotated[str, _one_of(REQUIRED, "The type of an entry of a run.", "tool_call")])
FrameName = TypeAliasType("FrameName", Annotated[str, _one_of(FRAMES, "The name of a frame.", "message")])
FrameNames = Annotated[list[FrameName], Field(min_length=1, description="Only frames of these, parted by commas.")]
Object = Annotated[dict[str, Any], Field(examples=[{}])]

AgentState = TypeAliasType(
    "AgentState",
    Annotated[Literal["idle", "processing", "waiting", "paused", "error"], Field(description="What an agent does.")],
)
ThreadStatus = TypeAliasType(
    "ThreadStatus",
    Annotated[Literal["completed", "active", "error", "killed"], Field(description="How a thread stands.")],
)
OrganismStatus = TypeAliasType(
    "OrganismStatus",
    Annotated[Literal["running", "starting", "paused", "stopping"], Field(description="How the organism stands.")],
)
ApprovalStatus = TypeAliasType(
    "ApprovalStatus",
    Annotated[
        Literal["pending", "approved", "rejected", "expired", "cancelled"], Field(description="How an approval stands.")
    ],
)
ErrorType = TypeAliasType(
    "ErrorType",
    Annotated[
        Literal[
            "invalid_request_error",
            "authentication_error",
            "permission_denied",
            "not_found",
            "conflict",
            "rate_limit_exceeded",
            "upstream_error",
            "internal_error",
        ],
        Field(description="The kind of an error."),
    ],
)
