"""Handlings: what is under way and what it waits for; and of any message the attempts to handle it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, field

from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Record
from organism.model import words
from organism.model.times import iso, milliseconds

_KINDS: Final = {"ask": "agent", "complete": "model", "approve": "person", "effect": "effect"}


class WaitsFor(Entity, kw_only=True):
    """What a handling waits for."""

    kind: Literal["agent", "model", "effect", "person"]
    name: Annotated[
        str | None,
        Meta(
            description="The agent, the model, the effect's key, or the id of the approval or the uncertain effect.",
            examples=["shouter"],
        ),
    ]
    since: words.Time
    step: words.Count
    effect: Annotated[
        Literal["pure", "idempotent", "unsafe"] | None, Meta(description="Of an effect, an uncertain one too.")
    ]


class OpenHandling(Entity):
    """A handling that is under way."""

    message_id: words.MessageId
    thread_id: words.ThreadId
    agent: words.AgentName
    payload_type: words.PayloadType | None
    attempt: words.Count
    started_at: words.Time
    waits_for: Annotated[
        WaitsFor | None, Meta(description="Of several a person's word, else what it has waited for longest.")
    ] = None


def waits_for(record: Record[events.StepStarted]) -> WaitsFor | None:
    """What the step waits for, None if for nothing. Whom it asks is in no older log."""
    event = record.event
    kind = _KINDS.get(event.kind)
    if kind is None:
        return None
    name = {"agent": event.to, "model": event.model, "person": event.approval, "effect": event.key}[kind]
    if event.unknown:
        kind, name = "person", f"{event.message}:{event.step}"
    return WaitsFor(
        kind=kind,  # type: ignore[arg-type]  # the values of `_KINDS`
        name=name or None,
        since=iso(record.at),
        step=event.step,
        effect=event.effect or None,
    )


def foremost(steps: Iterable[WaitsFor]) -> WaitsFor | None:
    """What is shown of all that a handling waits for."""
    found = sorted(steps, key=lambda each: (each.kind != "person", each.since, each.step))
    return found[0] if found else None


# The attempts to handle a message, as the log tells them.


class CodeLine(Entity):
    """A line of a handler's own code; no values."""

    file: Annotated[str, Meta(examples=["handlers/hello.py"])]
    line: words.Count
    function: Annotated[str, Meta(examples=["greet"])]
    code: Annotated[str, Meta(description="The line as it was loaded.", examples=["name = NAMES[payload.name]"])]


def code_line(line: events.CodeLine) -> CodeLine:
    """The line as it is shown."""
    return CodeLine(line.file, line.line, line.function, line.code)


class Attempt(Entity, kw_only=True):
    """An attempt to handle a message. What has not ended is null, and so is the end that a crash left out."""

    attempt: words.Count
    started_at: words.Time
    ended_at: words.Time | None = None
    duration_ms: words.Milliseconds | None = None
    outcome: Literal["done", "killed", "retried", "failed"] | None = None
    error: words.Reason | None = None
    line: Annotated[CodeLine, Meta(description="The handler's own line that raised.")] | None = None


HandlingState = Literal["queued", "running", "retrying", "done", "failed", "killed", "unread"]


class MessageHandling(Entity):
    """What has become of a message."""

    state: HandlingState = "queued"
    attempts: list[Attempt] = field(default_factory=list)


_STATES: Final[Mapping[events.Outcome, HandlingState]] = {"killed": "killed", "unread": "unread"}
"""What a message is for good that was handled so; by any other outcome it is ``done``."""
ATTEMPT_EVENTS: Final[tuple[type[events.Event], ...]] = (
    events.MessageStarted,
    events.MessageRetried,
    events.MessageFailed,
    events.MessageDead,
    events.MessageDropped,
    events.MessageHandled,
)
ENDED: Final[frozenset[HandlingState]] = frozenset({"done", "failed", "killed", "unread"})
"""The states in which a message stays."""


def take(handlings: Mapping[str, MessageHandling], record: Record[Any]) -> None:
    """Take one of ``ATTEMPT_EVENTS`` if it is about one of these messages."""
    event = record.event
    handling = handlings.get(event.message)
    if handling is None:
        return
    attempts = handling.attempts
    if isinstance(event, events.MessageStarted):
        attempts.append(Attempt(attempt=event.attempt, started_at=iso(record.at)))
        handling.state = "running"
    elif isinstance(event, events.MessageHandled):
        handling.state = _STATES.get(event.outcome, "done")
        if attempts and event.outcome in {"done", "killed"}:
            _end(attempts[-1], record, "killed" if event.outcome == "killed" else "done")
    elif isinstance(event, events.MessageDropped):
        handling.state = "killed"
    elif isinstance(event, events.MessageDead):
        handling.state = "failed"
    elif attempts:
        is_retried = isinstance(event, events.MessageRetried)
        handling.state = "retrying" if is_retried else "failed"
        _end(attempts[-1], record, "retried" if is_retried else "failed")
        attempts[-1].error = event.error
        attempts[-1].line = None if event.line is None else code_line(event.line)


def _end(attempt: Attempt, record: Record[Any], outcome: Literal["done", "killed", "retried", "failed"]) -> None:
    duration = record.event.duration
    attempt.ended_at, attempt.outcome = iso(record.at), outcome
    attempt.duration_ms = None if duration is None else milliseconds(duration)


def settle(handlings: Mapping[str, MessageHandling], running: Collection[str]) -> None:
    """What does not run now waits for a start again: the process has died with it."""
    for message, handling in handlings.items():
        if handling.state == "running" and message not in running:
            handling.state = "queued"
