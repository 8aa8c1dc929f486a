"""What answers the commands of ``/ws``, and what its address may say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from organism.model import words
from organism.server.http.contract import PayloadBytes
from organism.server.http.problems import Fault
from organism.server.push.frames import FrameName, FrameOf, Timeline
from organism.views.who import Resolved

Echo = Annotated[Any, Meta(description="That of the command, if it had one.", examples=[1])]


class FilterSaid(Struct):
    """What was sent of it."""

    threads: list[words.ThreadId] | UnsetType = UNSET
    agents: list[words.AgentName] | UnsetType = UNSET
    events: list[FrameName] | UnsetType = UNSET
    payloads: PayloadBytes | UnsetType = UNSET


class Subscribed(FrameOf, kw_only=True, tag="subscribed"):
    """The filter holds from this position on."""

    id: Echo = UNSET
    filter: FilterSaid
    position: words.Position


class CommandInjected(FrameOf, kw_only=True, tag="injected"):
    """The message is on disk."""

    id: Echo = UNSET
    thread_id: words.ThreadId
    message_id: words.MessageId
    position: words.Position


class CommandDone(FrameOf, kw_only=True, tag="ok"):
    """It is done."""

    id: Echo = UNSET
    position: words.Position


class CommandRefused(FrameOf, kw_only=True, tag="error"):
    """What was wrong. Its `code` distinguishes it from a failed attempt."""

    id: Annotated[Any, Meta(description="That of the command, or null.", examples=[1])]
    code: Annotated[str, Meta(examples=["not_found"])]
    error: Annotated[str, Meta(examples=["There is no agent 'nobody'."])]
    param: str | None
    details: list[Fault] | UnsetType = UNSET
    resolved: Annotated[Resolved | UnsetType, Meta(description="Who was first, if it is resolved already.")] = UNSET
    request_id: Annotated[str, Meta(examples=["ws-5f2c9a01d7e84b36"])]


ANSWERED: Final[Mapping[str, Any]] = {
    "subscribe": Subscribed,
    "inject": CommandInjected,
    "kill": CommandDone,
    "pause": CommandDone,
    "resume": CommandDone,
    "resolve": CommandDone,
    "auth": CommandDone,
    "ping": CommandDone,
}
"""What answers each command that is not refused."""

UNTIL: Final = Annotated[
    words.Position, Meta(description="With `since`: what happened up to this position, then `caught_up`, then the end.")
]
ADDRESS: Final[Mapping[str, Any]] = {
    "since": Annotated[words.Position, Meta(description="Go on after this position; the client has the state.")],
    "until": UNTIL,
    "log": Annotated[Timeline, Meta(description="The timeline that `since` belongs to.")],
    "threads": Annotated[str, Meta(description="Only these threads, separated by commas.")],
    "agents": Annotated[str, Meta(description="Only these agents, separated by commas.")],
    "events": Annotated[str, Meta(description="Only frames of these names, separated by commas.")],
    "payloads": PayloadBytes,
    "batch": Annotated[Literal["true", "false"], Meta(description="What is pushed comes as arrays.")],
    "ticket": Annotated[str, Meta(description="Of `POST /api/v1/ws-ticket`: once, within 30 seconds.")],
}
"""What may stand in the query of the socket's address."""
