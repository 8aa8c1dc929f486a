"""Handlings that are under way: what each is of, and what it waits for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final, Literal

from msgspec import Meta

from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Record
from organism.model import words
from organism.model.times import iso

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
