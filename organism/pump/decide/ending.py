"""The end of handlings: answered, failed (another attempt, or a dead letter), or killed with their thread.

A handling's run ends with it: ``run_done`` is its last entry. What the handling has gathered and not yet written must
be added to the decision before.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from organism.events import vocabulary as events
from organism.model.thread import Message, Thread
from organism.pump.decide import spend
from organism.pump.decide.decision import Decision
from organism.pump.state import State

KILLED: Final = events.StepError("killed", "The thread was killed.")
UNKNOWN_AFTER_KILL: Final = events.StepError("unknown", "The thread was killed while this effect was under way.")


class Failure(NamedTuple):
    """Why a handling failed, as a dead letter says it. ``is_final``: no further attempt can succeed.

    ``traceback`` are the handler's own lines, the one that raised first; ``root`` is the dead letter that an ask of it
    failed with.
    """

    code: events.DeathCode
    text: str
    is_final: bool = False
    traceback: tuple[events.CodeLine, ...] = ()
    root: str = ""

    @property
    def line(self) -> events.CodeLine | None:
        """The handler's line that raised."""
        return self.traceback[0] if self.traceback else None


def finish(decision: Decision, message: Message, stop_reason: str) -> None:
    """The handler answered: end its run, if there is one, for the given reason, and its message."""
    if any(step.kind == "complete" and step.ok is None for step in (message.steps or {}).values()):
        spend.settle_lost(decision, message)
    if message.shown is not None or stop_reason:
        _end_run(decision, message, stop_reason or "stop")
    decision.handled(message, "done")


def _end_run(decision: Decision, message: Message, reason: str) -> None:
    for name in tuple(message.shows().open):
        kind, _, block_id = name.partition(" ")
        decision.add(events.RUN_ENTRIES[f"{kind}_end"](message.id, message.to, block_id), thread=message.thread.id)
    decision.add(events.RunDone(message.id, message.to, stop_reason=reason), thread=message.thread.id)


def retry(decision: Decision, message: Message, failure: Failure) -> None:
    """Schedule another attempt, after a delay that doubles up to a limit."""
    rule = decision.state.rules.retry
    next_at = decision.at + int(min(rule.base_delay_s * 2**message.failures, rule.max_delay_s) * 1_000_000)
    _cancel_approvals(decision, message)
    spend.settle_lost(decision, message)
    took_us = decision.at - message.started_at
    decision.add(
        events.MessageRetried(message.id, message.to, message.starts, failure.text, next_at, took_us, failure.line)
    )


def park(decision: Decision, message: Message, failure: Failure) -> None:
    """The handling failed for good: make the message a dead letter."""
    _cancel_approvals(decision, message)
    dead(decision, message, failure)
    most, folded = decision.state.rules.limits.pause_after_failures, decision.state.folded
    if most and folded.failures_in_row.get(message.to, 0) >= most and message.to not in folded.paused_agents:
        decision.add(events.AgentPaused(message.to, "failures"))


def _cancel_approvals(decision: Decision, message: Message) -> None:
    for step in (message.steps or {}).values():
        if step.approval and step.ok is None:
            decision.add(events.ApprovalCancelled(step.approval))


def dead(decision: Decision, message: Message, failure: Failure) -> None:
    """The message becomes a dead letter; an ask without another possible answer gets that as its error."""
    if message.running:
        took_us = decision.at - message.started_at
        failed = events.MessageFailed(message.id, message.to, message.starts, failure.text, took_us, failure.line)
        decision.add(failed, thread=message.thread.id)
    spend.settle_lost(decision, message)
    if message.shown is not None:
        _end_run(decision, message, "error")
    letter = events.MessageDead(
        message.id,
        message.to,
        sender=message.sender,
        type=message.type,
        sent=message.position,
        code=failure.code,
        reason=failure.text,
        attempts=message.starts,
        traceback=failure.traceback,
        root=failure.root,
        reply=message.reply,
    )
    decision.add(letter, thread=message.thread.id)
    decision.ended.append(message)


def tree(state: State, root: Thread) -> list[Thread]:
    """The thread and its child threads, children first, so that the root's end comes last."""
    children = state.folded.children.get(root.id, {}).values()
    return [*(each for child in children for each in tree(state, child)), root]


def kill(decision: Decision, threads: list[Thread]) -> list[Message]:
    """End these threads in one unit; gives the messages whose handlers are to be cancelled."""
    running: list[Message] = []
    for thread in threads:
        _kill_one(decision, thread, running)
    return running


def _kill_one(decision: Decision, thread: Thread, running: list[Message]) -> None:
    state = decision.state
    for message in tuple(state.folded.open_in(thread)):
        spend.settle_lost(decision, message)
        if message.shown is not None:
            _end_run(decision, message, "killed")
        _close_steps(decision, message)
        if message.running:
            running.append(message)
            decision.handled(message, "killed")
        else:
            decision.add_of(message, events.MessageDropped(message.id, message.to, message.starts))
    decision.ended.clear()
    decision.add(events.ThreadKilled(ended=thread.id not in state.folded.threads), thread=thread.id)
    decision.end_turn(thread, "killed")


def _close_steps(decision: Decision, message: Message) -> None:
    for step in list((message.steps or {}).values()):
        if step.ok is not None:
            continue
        if step.approval:
            decision.add(events.ApprovalCancelled(step.approval), thread=message.thread.id)
        error = UNKNOWN_AFTER_KILL if step.effect == "unsafe" else KILLED
        decision.add(step.recorded(error), thread=message.thread.id)
