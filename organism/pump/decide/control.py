"""Control: what operators decide, as events. A decision that has nothing to do adds no event."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

from organism.errors import AlreadyResolved
from organism.events.record import Content
from organism.events.vocabulary import (
    AgentPaused,
    AgentResumed,
    ApprovalExpired,
    ApprovalResolved,
    OrganismPaused,
    OrganismResumed,
    PausedBy,
    Resolution,
    RunInteractionResponse,
    StepError,
    StepResolved,
)
from organism.model.commands import ResolveApproval
from organism.model.handler import Approval
from organism.model.thread import CONSENT, Step
from organism.pump.decide import runs
from organism.pump.decide.decision import Decision, State, StepEnd
from organism.pump.wording import json_of


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


def canonical(value: Any) -> bytes:
    """The canonical bytes of what a human is shown: compact JSON, its keys in order."""
    return json_of(value, orjson.OPT_SORT_KEYS)


def resolve_approval(decision: Decision, step: Step, command: ResolveApproval) -> None:
    """What a human decided. Raises ``AlreadyResolved``."""
    if step.ok is not None:
        raise AlreadyResolved("This approval was resolved already.")
    by = command.actor.user or command.actor.tenant
    owner = step.message.thread.id
    edits = Content(owner, canonical(command.edits)) if command.edits is not None else None
    digest = hashlib.sha256(edits.json).hexdigest() if edits is not None else ""
    resolved = ApprovalResolved(step.approval, command.decision, command.comment, by, digest)
    decision.add(resolved, edits, owner)
    _answer_approval(decision, step, Approval(command.decision, command.edits, command.comment, by))


def expire(decision: Decision, step: Step) -> None:
    """An ask or an approval is over without an answer."""
    owner = step.message.thread.id
    if step.kind == "approve":
        decision.add(ApprovalExpired(step.approval), thread=owner)
        _answer_approval(decision, step, Approval("expired"))
    else:
        decision.record(step, StepError("timeout", "There was no answer in time."))


def _answer_approval(decision: Decision, step: Step, answer: Approval) -> None:
    if step.number == CONSENT:
        runs.show_to_caller(decision, step.message, RunInteractionResponse, {"decision": answer.decision})
    decision.record(step, None, Content(step.message.thread.id, orjson.dumps(answer)))


def find_approval(state: State, approval: str) -> Step | None:
    """The step behind an approval, while its message is open."""
    for message in state.routing.messages.values():
        for step in (message.steps or {}).values():
            if step.approval == approval:
                return step
    return None
