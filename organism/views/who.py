"""Who did something, as rows and frames say it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Record
from organism.model import words

Reason = Literal["failures", "crash_loop", "removal"]
_BY_ITSELF = (events.OrganismPaused, events.OrganismResumed, events.AgentPaused, events.AgentResumed)


class By(Entity, kw_only=True):
    """Who did it: a person, or the organism itself for a `reason`."""

    principal: Annotated[str | None, Meta(description="Whose token it was.", examples=["operator"])]
    user: Annotated[str | None, Meta(description="The user for whom it was done.", examples=["dan"])]
    reason: Annotated[Reason | None, Meta(description="Why, if it was the organism itself.")]


class Resolved(Entity, kw_only=True):
    """Who has resolved what waited for a person."""

    by: By | None
    at: words.Time
    decision: Annotated[str, Meta(description="What it was.", examples=["approve"])]


def by(record: Record[Any]) -> By | None:
    """Who caused the event; None if that is not known."""
    event, actor = record.event, record.actor
    principal, user = (None, None) if actor is None else (actor.principal, actor.user)
    reason = event.by if isinstance(event, _BY_ITSELF) and event.by != "operator" else None
    if principal is None and user is None and reason is None:
        return None
    return By(principal=principal, user=user, reason=reason)
