"""The frames of ``/ws`` and the events of ``GET /events``: one record for each form that a frame may have.

The tables at the end say which frames there are; the tests hold them to those of ``frames.MAKERS`` and to what is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # pydantic wants this one below Python 3.12

from organism.model import words
from organism.server.http.problems import Fault
from organism.server.push.frames import FrameNames
from organism.views import approvals, dead_letters, threads
from organism.views.organism import Agent, Organism

Timeline = Annotated[str, Field(description="The name of this log's timeline.", examples=["9f86d081884c7d65"])]
Echo = Annotated[Any, Field(description="That of the command, if it had one.", examples=[1])]


class MessageSent(TypedDict):
    """A message was sent."""

    event: Literal["message"]
    position: words.Position
    message: threads.Message


class ThreadCreated(TypedDict):
    """A thread begins."""

    event: Literal["thread_created"]
    position: words.Position
    thread: threads.Thread


class ThreadUpdated(TypedDict):
    """A thread ended, goes on, was paused, resumed or killed."""

    event: Literal["thread_updated"]
    position: words.Position
    thread_id: words.ThreadId
    status: words.ThreadStatus
    message_count: words.Count
    paused: bool
    error: words.Reason | None
    last_activity: words.Time


class AttemptFailed(TypedDict):
    """An attempt to handle a message failed; `next_at` is when the next one begins, null after the last."""

    event: Literal["error"]
    position: words.Position
    thread_id: words.ThreadId
    agent: words.AgentName
    error: words.Reason
    timestamp: words.Time
    message_id: words.MessageId
    attempt: words.Count
    next_at: words.Time | None


class DeadLetterOpened(TypedDict):
    """A message failed for good, or a send was refused."""

    event: Literal["dead_letter"]
    position: words.Position
    thread_id: words.ThreadId
    agent: words.AgentName
    status: Literal["open"]
    dead_letter: dead_letters.DeadLetterHead


class ClosedDeadLetter(TypedDict):
    """Which one it was."""

    id: words.MessageId


class DeadLetterClosed(TypedDict):
    """A dead letter was sent again or discarded."""

    event: Literal["dead_letter"]
    position: words.Position
    thread_id: words.ThreadId
    status: Literal["replayed", "discarded"]
    dead_letter: ClosedDeadLetter


class ApprovalRequested(TypedDict):
    """Something waits for a human's word."""

    event: Literal["approval"]
    position: words.Position
    thread_id: words.ThreadId
    agent: words.AgentName
    approval: approvals.Approval


class ClosedApproval(TypedDict):
    """Which one it was, and what became of it."""

    id: words.ApprovalId
    status: approvals.Closed


class ApprovalClosed(TypedDict):
    """An approval waits no more."""

    event: Literal["approval"]
    position: words.Position
    thread_id: words.ThreadId
    approval: ClosedApproval


class Question(TypedDict):
    """An unsafe effect of which it is unknown whether it happened, or how an operator resolved it."""

    id: Annotated[str, Field(description="`MESSAGE:STEP`.", examples=["msg-01a2b3c4:1"])]
    message_id: words.MessageId
    step: words.Count
    status: Literal["open", "done", "redo", "fail"]


class EffectInDoubt(TypedDict):
    """An effect was found begun and not finished, or an operator resolved it."""

    event: Literal["indeterminate"]
    position: words.Position
    thread_id: words.ThreadId
    agent: words.AgentName
    indeterminate: Question


class OrganismChanged(TypedDict):
    """The organism was started, paused, resumed or stopped."""

    event: Literal["organism_state"]
    position: words.Position
    status: Literal["running", "paused", "stopping"]


class ReloadDone(TypedDict):
    """The configuration was read again: the names of listeners."""

    event: Literal["reload"]
    position: words.Position
    added: list[words.AgentName]
    removed: list[words.AgentName]
    updated: list[words.AgentName]


class RunShown(TypedDict):
    """An entry of the run of a handling: what people see of it."""

    event: Literal["run"]
    position: words.Position
    thread_id: words.ThreadId
    message_id: words.MessageId
    agent: words.AgentName
    type: words.EntryType
    data: Annotated[
        dict[str, Any],
        Field(
            description='What the entry says, by its type; `{"erased":true}` once it was erased.',
            examples=[{"id": "call-1", "name": "calculator", "input": {"expression": "2*21"}}],
        ),
    ]


class TextPiece(TypedDict):
    """The next characters of a message or a thought; `offset` counts those before them (Unicode code points)."""

    id: Annotated[str, Field(examples=["m1"])]
    delta: Annotated[str, Field(examples=["Hello"])]
    offset: words.Count


class TextHeard(TypedDict):
    """Text of a run as it comes, before it is in the log: it comes again from there, gathered and with a position."""

    event: Literal["run"]
    thread_id: words.ThreadId
    message_id: words.MessageId
    agent: words.AgentName
    type: Literal["message_delta", "thought_delta"]
    data: TextPiece


class ModelCalled(TypedDict):
    """A call of a model is over: what it used and cost."""

    event: Literal["usage"]
    position: words.Position
    thread_id: words.ThreadId
    agent: words.AgentName
    message_id: words.MessageId
    step: words.Count
    model: words.ModelName
    served_by: words.ServedBy
    input_tokens: words.Count
    output_tokens: words.Count
    cost_usd: words.Money
    cost_source: Annotated[
        Literal["upstream", "price", "zero"], Field(description="The provider's own figure, the price, or nothing.")
    ]
    attempts: words.Count
    error: Annotated[str, Field(description="Why it gave no answer.", examples=["upstream_timeout"])] | None


class AgentChanged(TypedDict):
    """What an agent does now. It is a view and no event of the log: the latest wins."""

    event: Literal["agent_state"]
    agent: words.AgentName
    state: words.AgentState
    current_thread: words.ThreadId | None
    paused: bool
    queue_depth: words.Count


class Connected(TypedDict):
    """The first frame: how everything stands at this position."""

    event: Literal["connected"]
    position: words.Position
    log: Timeline
    organism: Organism
    agents: list[Agent]
    threads: Annotated[list[threads.Thread], Field(description="The newest 500 active ones and the newest 100 others.")]
    threads_total: words.Count


class Resumed(TypedDict):
    """The first frame for a client that has the state already."""

    event: Literal["connected"]
    position: words.Position
    log: Timeline


class Checkpoint(TypedDict):
    """So far the log has come, where the filter is quiet."""

    event: Literal["checkpoint"]
    position: words.Position


class FellBehind(TypedDict):
    """You read slowly, and are served from the log now."""

    event: Literal["fell_behind"]
    position: words.Position


class CaughtUp(TypedDict):
    """You are live."""

    event: Literal["caught_up"]
    position: words.Position


class FilterSaid(TypedDict, total=False):
    """The lists that were sent."""

    threads: list[words.ThreadId]
    agents: list[words.AgentName]
    events: FrameNames


class Subscribed(TypedDict):
    """The filter holds from this position on."""

    event: Literal["subscribed"]
    id: NotRequired[Echo]
    filter: FilterSaid
    position: words.Position


class CommandInjected(TypedDict):
    """The message is on disk."""

    event: Literal["injected"]
    id: NotRequired[Echo]
    thread_id: words.ThreadId
    message_id: words.MessageId
    position: words.Position


class CommandDone(TypedDict):
    """It is done."""

    event: Literal["ok"]
    id: NotRequired[Echo]
    position: words.Position


class CommandRefused(TypedDict):
    """What was wrong. Its `code` distinguishes it from a failed attempt."""

    event: Literal["error"]
    id: Annotated[Any, Field(description="That of the command, or null.", examples=[1])]
    code: Annotated[str, Field(examples=["not_found"])]
    error: Annotated[str, Field(examples=["There is no agent 'nobody'."])]
    param: str | None
    details: NotRequired[list[Fault]]
    request_id: Annotated[str, Field(examples=["ws-5f2c9a01d7e84b36"])]


PUSHED: Final[Mapping[str, tuple[Any, ...]]] = {
    "message": (MessageSent,),
    "thread_created": (ThreadCreated,),
    "thread_updated": (ThreadUpdated,),
    "error": (AttemptFailed,),
    "dead_letter": (DeadLetterOpened, DeadLetterClosed),
    "approval": (ApprovalRequested, ApprovalClosed),
    "indeterminate": (EffectInDoubt,),
    "organism_state": (OrganismChanged,),
    "reload": (ReloadDone,),
    "run": (RunShown, TextHeard),
    "usage": (ModelCalled,),
    "agent_state": (AgentChanged,),
}
"""What is pushed to all whose filter it passes, by the name of its event."""

PERSONAL: Final[Mapping[str, tuple[Any, ...]]] = {
    "connected": (Connected, Resumed),
    "checkpoint": (Checkpoint,),
    "fell_behind": (FellBehind,),
    "caught_up": (CaughtUp,),
}
"""What is sent to one connection alone."""

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

ADDRESS: Final[Mapping[str, Any]] = {
    "since": Annotated[words.Position, Field(description="Go on after this position; the client has the state.")],
    "log": Annotated[Timeline, Field(description="The timeline that `since` belongs to.")],
    "threads": Annotated[str, Field(description="Only these threads, parted by commas.")],
    "agents": Annotated[str, Field(description="Only these agents, parted by commas.")],
    "events": Annotated[str, Field(description="Only frames of these names, parted by commas.")],
    "batch": Annotated[Literal["true", "false"], Field(description="What is pushed comes as arrays.")],
    "ticket": Annotated[str, Field(description="Of `POST /api/v1/ws-ticket`: once, within 30 seconds.")],
}
"""What may stand in the query of the socket's address."""
