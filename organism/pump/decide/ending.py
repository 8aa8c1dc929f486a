"""Failing, as decisions: retries, dead letters, and agents that pause themselves."""

from __future__ import annotations

from typing import Final, NamedTuple

from organism.events.vocabulary import (
    ApprovalCancelled,
    DeathCode,
    MessageDead,
    MessageFailed,
    MessageRetried,
    StepError,
)
from organism.model.thread import Message
from organism.pump.decide import control, runs
from organism.pump.decide.decision import Decision

DEAD_LETTER: Final = StepError("dead_letter", "The message became a dead letter.")


class Failure(NamedTuple):
    """Why a handling failed, as a dead letter says it. ``is_final``: no further attempt can succeed."""

    code: DeathCode
    text: str
    is_final: bool = False


def retry(decision: Decision, message: Message, failure: Failure) -> None:
    """A new attempt follows later: after a delay that doubles, within a bound."""
    rule = decision.state.rules.retry
    next_at = decision.at + int(min(rule.base_delay_s * 2**message.failures, rule.max_delay_s) * 1_000_000)
    _cancel_approvals(decision, message)
    runs.cut(decision, message)
    decision.add(MessageRetried(message.id, message.to, message.starts, failure.text, next_at))
    message.line.push_front(message)


def park(decision: Decision, message: Message, failure: Failure) -> None:
    """The handling failed for good: the message becomes a dead letter."""
    _cancel_approvals(decision, message)
    decision.add(MessageFailed(message.id, message.to, message.starts, failure.text))
    dead(decision, message, failure.code, failure.text)
    most = decision.state.rules.limits.pause_after_failures
    if most and decision.state.routing.failures_in_row.get(message.to, 0) >= most:
        control.pause_agent(decision, message.to, by="failures")


def _cancel_approvals(decision: Decision, message: Message) -> None:
    for step in (message.steps or {}).values():
        if step.approval and step.ok is None:
            decision.add(ApprovalCancelled(step.approval))


def dead(decision: Decision, message: Message, code: DeathCode, reason: str) -> None:
    """The message becomes a dead letter; an ask that nobody else can answer gets that as its error."""
    runs.lose(decision, message, "error")
    letter = MessageDead(
        message.id,
        message.to,
        sender=message.sender,
        type=message.type,
        sent=message.position,
        code=code,
        reason=reason,
        attempts=message.starts,
    )
    decision.add(letter, thread=message.thread.id)
    ask = message.step
    if ask is not None and ask.ok is None and ask.open == 0:
        decision.record(ask, DEAD_LETTER)
    decision.ended.append(message)
