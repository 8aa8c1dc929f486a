"""Failing: retries, dead letters, and what came to its end by the clock."""

from __future__ import annotations

from typing import Any, Final, Protocol

from organism.config.settings import Retry
from organism.model.thread import Message, Step
from organism.pump import control, runs
from organism.pump.outgoing import Failure
from organism.pump.steps import Handling
from organism.pump.timers import Due, Timers
from organism.pump.unit import Decision, State

DEAD_LETTER: Final = {"code": "dead_letter", "message": "The message became a dead letter."}


class Line(Protocol):
    """What failing asks of the pump."""

    state: State
    timers: Timers
    handlings: set[Handling]

    def write(self, decision: Decision) -> None:
        """Append the decision."""

    def leave(self, handling: Handling) -> None:
        """The handling is over."""

    def is_paused(self, message: Message) -> bool:
        """Whether the message may not go on now."""


def delay_us(retry: Retry, failures: int) -> int:
    """How long to wait before the attempt after ``failures`` failures: doubling, bounded."""
    seconds = min(retry.base_delay_s * 2 ** (failures - 1), retry.max_delay_s)
    return int(seconds * 1_000_000)


def failed(pump: Line, handling: Handling, failure: Failure) -> None:
    """A new attempt later, or a dead letter if there were enough.

    An unsafe effect under way waits for an operator first.
    """
    message = handling.message
    retry = pump.state.rules.retry
    decision = pump.state.decide(message.thread, message)
    if not decision.find_unknown(message) and message.failures + 1 >= retry.attempts:
        park(pump, handling, failure.code, failure.text)
        return
    next_at = decision.at + delay_us(retry, message.failures + 1)
    data = {
        "message": message.id,
        "agent": message.to,
        "attempt": message.starts,
        "error": failure.text,
        "next_at": next_at,
    }
    _cancel_approvals(decision, message)
    runs.cut(decision, message)
    decision.add("message_retried", data)
    message.line.push_front(message)
    pump.leave(handling)
    pump.write(decision)
    pump.timers.add(next_at, message)


def _cancel_approvals(decision: Decision, message: Message) -> None:
    for step in (message.steps or {}).values():
        if step.approval and step.ok is None:
            decision.add("approval_cancelled", {"approval": step.approval})


def park(pump: Line, handling: Handling, code: str, reason: str) -> None:
    """The handling failed for good."""
    message = handling.message
    decision = pump.state.decide(message.thread, message)
    _cancel_approvals(decision, message)
    failure = {"message": message.id, "agent": message.to, "attempt": message.starts, "error": reason}
    decision.add("message_failed", failure)
    dead(decision, message, code, reason)
    pump.leave(handling)
    pause_if_failing(decision, message.to)
    pump.write(decision)


def gone(pump: Line, message: Message) -> None:
    """The receiver was removed by a reload while the message waited."""
    decision = pump.state.decide(message.thread, message)
    dead(decision, message, "listener_gone", f"There is no listener named {message.to} any more.")
    pump.state.boxes.release(message)
    pump.write(decision)


def dead(decision: Decision, message: Message, code: str, reason: str) -> None:
    """The message becomes a dead letter; an ask that nobody else can answer is told so."""
    runs.lose(decision, message, "error")
    data: dict[str, Any] = {
        "message": message.id,
        "agent": message.to,
        "from": message.sender,
        "type": message.type,
        "sent": message.position,
        "code": code,
        "reason": reason,
        "attempts": message.starts,
    }
    decision.add("message_dead", data, thread=message.thread.id)
    ask = message.step
    if ask is not None and ask.ok is None and ask.open == 0:
        decision.record(ask, DEAD_LETTER)
    decision.ended.append(message)


def pause_if_failing(decision: Decision, agent: str) -> None:
    """``limits.pause_after_failures``: an agent whose last handlings all failed for good pauses itself."""
    most = decision.state.rules.limits.pause_after_failures
    if most and decision.state.routing.failures_in_row.get(agent, 0) >= most:
        control.pause_agent(decision, agent, by="failures")


def tick(pump: Line, now: int, passed_us: int, due: list[Due]) -> None:
    """What came due: retries start, asks and approvals expire, handlers that ran too long are stopped."""
    for item in due:
        if isinstance(item, Message):
            _retry_due(pump, item)
        elif not isinstance(item, Step):
            item.due()
        elif item.ok is None and item.message.id in pump.state.routing.messages:
            _step_due(pump, item, now)
    for handling in tuple(pump.handlings):
        if pump.is_paused(handling.message):  # its running time stands still too
            handling.ran_at += passed_us
        elif handling.spent(now):
            _stop_spent(pump, handling)


def _retry_due(pump: Line, message: Message) -> None:
    if message.running or not message.next_at or message.id not in pump.state.routing.messages:
        return
    message.next_at = 0
    pump.state.boxes.wake(message)
    pump.write(pump.state.decide(message.thread, message))


def _step_due(pump: Line, step: Step, now: int) -> None:
    if step.held_at or step.expires > now:
        pump.timers.add(max(step.expires, now + 1), step)
        return
    decision = pump.state.decide(step.message.thread, step.message)
    control.expire(decision, step)
    pump.write(decision)


def _stop_spent(pump: Line, handling: Handling) -> None:
    """What the handler still does comes to nothing, also where it swallows the cancellation."""
    text = f"TimedOut: The handler ran longer than {handling.listener.timeout_s:g} s."
    failed(pump, handling, Failure("timeout", text))
    if handling.task is not None:
        handling.task.cancel()
