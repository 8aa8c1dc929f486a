"""Control: what operators decide, as events. A decision that has nothing to do adds no event."""

from __future__ import annotations

from typing import Any

import orjson

from organism.errors import AlreadyResolved
from organism.events.record import Content
from organism.events.vocabulary import (
    AgentPaused,
    AgentResumed,
    OrganismPaused,
    OrganismResumed,
    PausedBy,
    Resolution,
    StepResolved,
)
from organism.model.thread import Step
from organism.pump.decide.decision import Decision, StepEnd


def pause_agent(decision: Decision, agent: str, by: PausedBy = "operator") -> None:
    """Nothing of the agent starts any more."""
    if agent not in decision.state.routing.paused_agents:
        decision.add(AgentPaused(agent, by))


def resume_agent(decision: Decision, agent: str) -> None:
    """The agent goes on, in order."""
    if agent in decision.state.routing.paused_agents:
        decision.add(AgentResumed(agent, "operator"))


def pause_organism(decision: Decision, by: PausedBy = "operator") -> None:
    """Nothing starts any more."""
    if not decision.state.routing.paused:
        decision.add(OrganismPaused(by))


def resume_organism(decision: Decision) -> None:
    """Everything goes on."""
    if decision.state.routing.paused:
        decision.add(OrganismResumed("operator"))


def resolve_effect(decision: Decision, step: Step, outcome: Resolution, result: Any) -> None:
    """What became of an unsafe effect. Raises ``AlreadyResolved``."""
    if not step.unknown:
        raise AlreadyResolved("This effect is not indeterminate any more.")
    message = step.message
    content = Content(message.thread.id, orjson.dumps(result)) if outcome == "done" else None
    resolved = StepResolved(message.id, message.to, step.number, outcome)
    record = decision.add(resolved, content, message.thread.id)
    if content is not None:
        decision.end_step(StepEnd(step, record))
