"""What fields are made of: ids, positions, times and states, each with its bounds and an example.

A word with a title is a type of its own in the documents.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from msgspec import Meta, Raw, UnsetType

from organism.events import vocabulary as events
from organism.model.run import REQUIRED

AgentName = Annotated[str, Meta(min_length=1, examples=["greeter"])]
ThreadId = Annotated[str, Meta(examples=["thr-01a2b3c4"])]
SessionId = Annotated[str, Meta(examples=["ses-01a2b3c4"])]
MessageId = Annotated[str, Meta(examples=["msg-01a2b3c4"])]
ApprovalId = Annotated[str, Meta(examples=["apr-01a2b3c4"])]
Position = Annotated[int, Meta(ge=0, le=(1 << 63) - 1, description="Where it stands in the log.", examples=[3])]
Count = Annotated[int, Meta(ge=0, examples=[4])]
Time = Annotated[
    str,
    Meta(description="UTC, ISO 8601.", examples=["2026-01-15T10:00:00Z"], extra_json_schema={"format": "date-time"}),
]
Milliseconds = Annotated[float, Meta(ge=0, description="In milliseconds, to the microsecond.", examples=[29.412])]
Digest = Annotated[str, Meta(description="SHA-256.", examples=["9f86d081884c7d65"])]
_PAYLOAD = Meta(
    description='Of the receiver\'s schema; `{"erased":true}` once it was erased.', examples=[{"name": "Dan"}]
)
Payload = Annotated[Any, _PAYLOAD]
COMPLETED = Meta(extra={"is_completed": True})
"""Of a field that may be unset in the stored row: it is always there when the row is shown."""
Content = Annotated[Raw | UnsetType, _PAYLOAD, COMPLETED]
"""The content of a row's event, finished JSON."""
Cursor = Annotated[str, Meta(examples=["AAAAAAAyq1b5-0dV8yQb"])]
PayloadType = Annotated[str, Meta(examples=["Greeting"])]
Reason = Annotated[str, Meta(examples=["ValueError: no such name"])]
Version = Annotated[str, Meta(description="Changes with the configuration and the code.", examples=["5f2c9a01"])]
Object = Annotated[dict[str, Any], Meta(examples=[{}])]


def one_of(names: Iterable[str], title: str, description: str, example: str) -> Meta:
    """The description of a text that is one of these names."""
    return Meta(title=title, description=description, examples=[example], extra_json_schema={"enum": sorted(names)})


EventType = Annotated[str, one_of(events.EVENTS, "EventType", "The type of an event.", "message_sent")]
EventData = Annotated[dict[str, Any], Meta(title="EventData")]
"""The fields of any event. ``documents/events.py`` makes its schema of the vocabulary."""
EntryType = Annotated[str, one_of(REQUIRED, "EntryType", "The type of an entry of a run.", "tool_call")]

AgentState = Annotated[
    Literal["idle", "processing", "waiting", "paused", "error"],
    Meta(title="AgentState", description="What an agent does."),
]
ThreadStatus = Annotated[
    Literal["completed", "active", "error", "killed"],
    Meta(title="ThreadStatus", description="How a thread stands."),
]
OrganismStatus = Annotated[
    Literal["running", "starting", "paused", "stopping"],
    Meta(title="OrganismStatus", description="How the organism stands."),
]
ApprovalStatus = Annotated[
    Literal["pending", "approved", "rejected", "expired", "cancelled"],
    Meta(title="ApprovalStatus", description="How an approval stands."),
]
ErrorType = Annotated[
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
    Meta(title="ErrorType", description="The kind of an error."),
]

Money = Annotated[
    str, Meta(description="Exact, as text.", pattern=r"^[0-9]+(\.[0-9]+)?$", examples=["0.0123"], max_length=64)
]
ServedBy = Annotated[
    str, Meta(description="The provider that answered, whatever model was requested.", examples=["openai", "offline"])
]
ModelName = Annotated[str, Meta(description="Its name in organism.yaml.", examples=["gpt-4.1-mini"])]
