"""What a route promises: the parameters and the body that it takes, what it gives, what it may refuse.

A line of the route table carries its contract; ``documents`` makes OpenAPI of them. A parameter that has no line here
cannot be named, so none can be taken without a description.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from organism.errors import (
    AlreadyResolved,
    InvalidPayload,
    MailboxFull,
    NotFound,
    OrganismError,
    PayloadTooLarge,
    StalePosition,
    ThreadKilled,
)
from organism.server.shapes.words import AgentName, EventType, Position, Time

JSON: Final = "application/json"
XML: Final = "application/xml"


@dataclass(frozen=True, slots=True)
class Gives:
    """One form in which an answer may come: a shape, ``str`` for text, or None for no body at all."""

    shape: Any
    status: int = 200
    kind: str = JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """A route's promise.

    ``query`` names parameters of ``QUERY``; ``narrow`` says more of one than is said there. ``headers`` names those of
    ``HEADERS``. ``takes`` is the record of its JSON body. ``refuses`` are the errors of this route alone: what any
    request may meet stands in ``documents/openapi.py``. ``is_tagged``: it gives an ETag, and 304 to who has it.
    """

    gives: tuple[Gives, ...]
    query: tuple[str, ...] = ()
    narrow: Mapping[str, Any] = field(default_factory=dict)
    headers: tuple[str, ...] = ()
    takes: Any = None
    takes_xml: bool = False
    refuses: tuple[type[OrganismError], ...] = ()
    is_tagged: bool = False

    def parameters(self) -> Mapping[str, Any]:
        """The query's parameters with their types. Raises ``LookupError`` for one that is described nowhere."""
        return {name: self.narrow.get(name) or QUERY[name] for name in self.query}


def gives(shape: Any, *more: Gives, status: int = 200) -> tuple[Gives, ...]:
    """JSON of a shape, and other forms that the answer may come in."""
    return (Gives(shape, status), *more)


QUERY: Final[Mapping[str, Any]] = {
    "limit": Annotated[int, Field(ge=1, le=500, description="How many at most.", examples=[50])],
    "offset": Annotated[int, Field(ge=0, le=1 << 40, description="How many to pass over.", examples=[0])],
    "cursor": Annotated[
        str,
        Field(min_length=1, description="`next` of the page before, of this list and filter."),
    ],
    "status": Annotated[str, Field(min_length=1, description="Only what stands so.")],
    "at": Annotated[Position | Time, Field(description="As it stood at this position, or the last one of this time.")],
    "agent": Annotated[AgentName, Field(description="Only what this one takes part in, sent or got.")],
    "thread_id": Annotated[str, Field(min_length=1, description="Only what belongs to this thread.")],
    "since": Annotated[Time, Field(description="Only what was sent, or last active, at this time or later.")],
    "q": Annotated[str, Field(min_length=1, description="Only what has this text in its payload.", examples=["Dan"])],
    "xml": Annotated[bool, Field(description="With the recorded envelopes.")],
    "after": Annotated[Position, Field(description="What follows this position.")],
    "until": Annotated[Position, Field(description="Up to this position; by default to the head.")],
    "thread": Annotated[str, Field(min_length=1, description="Only events of this thread.")],
    "type": Annotated[EventType, Field(description="Only events of this type.")],
    "content": Annotated[bool, Field(description="With the text that is kept beside the events.")],
    "format": Annotated[Literal["json", "mermaid"], Field(description="As data, or as the text of a flowchart.")],
    "to": Annotated[AgentName, Field(description="The receiver; with an XML body alone, where it must be there.")],
    "wait": Annotated[
        float, Field(gt=0, le=60, description="Seconds to wait for the thread's end; with an XML body.", examples=[10])
    ],
    "log": Annotated[str, Field(min_length=1, description="The timeline of `since`, as `connected` named it.")],
    "threads": Annotated[list[str], Field(min_length=1, description="Only these threads, parted by commas.")],
    "agents": Annotated[list[AgentName], Field(min_length=1, description="Only these agents, parted by commas.")],
}
"""Every parameter that a query may have. Which a route takes is said by its contract."""

HEADERS: Final[Mapping[str, Any]] = {
    "Idempotency-Key": Annotated[
        str,
        Field(
            pattern=r"^[\x21-\x7e]{1,255}$",
            description="The same key and body get the first answer again, byte for byte, for 24 hours.",
            examples=["order-17"],
        ),
    ],
    "If-Match": Annotated[
        str,
        Field(
            pattern=r'^(\*|(W/)?"?[0-9]{1,19}"?)$',
            description="The thread's ETag: if it has moved on since, 409 `stale_position`, and nothing is done.",
            examples=['"3"'],
        ),
    ],
    "If-None-Match": Annotated[
        str, Field(description="An ETag; while it is still that, the answer is 304.", examples=['"3"'])
    ],
    "SPASS-Caller-Depth": Annotated[
        str,
        Field(
            pattern=r"^[0-9]{1,7}$",
            description="How many runs of agents the caller lies in: three are too deep for another model's call.",
            examples=["1"],
        ),
    ],
    "SPASS-Parent-Request-Id": Annotated[
        str,
        Field(
            pattern=r"^[\x21-\x7e]{1,255}$",
            description="The request in which this one is made; it is kept with the message.",
            examples=["req-17"],
        ),
    ],
    "x-ag-messages-transcript": Annotated[
        str, Field(description="`last`: only the last unit of the turn; `full`, or another value: all of it.")
    ],
    "x-ag-session-control": Annotated[str, Field(description="`force`: take over the turn that runs.")],
    "x-ag-messages-format": Annotated[
        str, Field(description="`vercel`: as the AI SDK's UI messages; `agenta`, or another value: as they are.")
    ],
    "x-ag-workflow-embeds": Annotated[str, Field(description="`resolve`, which is also the default.")],
    "x-ag-session-id": Annotated[str, Field(description="The session; that of the body wins.")],
    "Last-Event-ID": Annotated[
        str, Field(description="The position that the client has; goes before `since`.", examples=["3"])
    ],
}
"""Every header of a request that a route looks at, besides those of authentication and of content and its forms."""

ACT: Final = ("Idempotency-Key",)
ACT_ON_THREAD: Final = ("Idempotency-Key", "If-Match")
ACT_REFUSED: Final = (NotFound,)
THREAD_REFUSED: Final = (NotFound, StalePosition, ThreadKilled)
QUESTION_REFUSED: Final = (*THREAD_REFUSED, AlreadyResolved)
SENDING_REFUSED: Final = (*THREAD_REFUSED, InvalidPayload, PayloadTooLarge, MailboxFull)
"""What acts refuse: any, one on a thread, one that answers a question, one that sends a payload."""
