"""Control: what operators decide, as events. A decision that has nothing to do adds no event."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import orjson

from organism.errors import AlreadyResolved
from organism.model.commands import ResolveApproval
from organism.model.events import Content
from organism.model.thread import CONSENT, Message, Step, Thread
from organism.pump import runs
from organism.pump.decision import Decision, State
from organism.pump.wording import json_of

KILLED: Final = {"code": "killed", "message": "The thread was killed."}
UNKNOWN_AFTER_KILL: Final = {"code": "unknown", "message": "The thread was killed while this effect was under way."}


def pause_agent(decision: Decision, agent: str, by: str = "operator") -> None:
    """Nothing of the agent starts any more."""
    box = decision.state.boxes.boxes[agent]
    if not box.paused:
        box.paused = True
        decision.add("agent_paused", {"agent": agent, "by": by})


def resume_agent(decision: Decision, agent: str) -> None:
    """The agent goes on, in order."""
    boxes = decision.state.boxes
    if boxes.boxes[agent].paused:
        boxes.boxes[agent].paused = False
        decision.add("agent_resumed", {"agent": agent, "by": "operator"})
        boxes.wake_agent(agent)


def pause_organism(decision: Decision, by: str = "operator") -> None:
    """Nothing starts any more."""
    if not decision.state.routing.paused:
        decision.state.boxes.paused = True
        decision.add("organism_paused", {"by": by})


def resume_organism(decision: Decision) -> None:
    """Everything goes on."""
    if decision.state.routing.paused:
        decision.state.boxes.paused = False
        decision.add("organism_resumed", {"by": "operator"})


def tree(state: State, root: Thread) -> list[Thread]:
    """The thread and its child threads, children first, so that the root's end comes last."""
    children = [thread for thread in state.routing.threads.values() if thread.parent == root.id]
    return [member for child in children for member in tree(state, child)] + [root]


def kill(decision: Decision, root: Thread) -> list[Message]:
    """End the whole tree in one unit; gives the messages whose handlers are to be cancelled."""
    running: list[Message] = []
    for thread in tree(decision.state, root):
        _kill_one(decision, thread, running)
    return running


def _kill_one(decision: Decision, thread: Thread, running: list[Message]) -> None:
    state = decision.state
    state.boxes.clear_thread(thread)
    for message in [message for message in state.routing.messages.values() if message.thread is thread]:
        runs.lose(decision, message, "killed")
        _close_steps(decision, message)
        if message.running:
            running.append(message)
            decision.handled(message, "killed")
        else:
            decision.add("message_dropped", {"message": message.id, "agent": message.to}, thread=thread.id)
    decision.ended.clear()
    was_active = thread.id in state.routing.threads
    decision.add("thread_killed", {} if was_active else {"ended": True}, thread=thread.id)


def _close_steps(decision: Decision, message: Message) -> None:
    for step in list((message.steps or {}).values()):
        if step.ok is not None:
            continue
        if step.approval:
            decision.add("approval_cancelled", {"approval": step.approval}, thread=message.thread.id)
        error = UNKNOWN_AFTER_KILL if step.effect == "unsafe" else KILLED
        decision.add("step_recorded", {**step.named(), "error": error}, thread=message.thread.id)


def resolve_effect(decision: Decision, step: Step, outcome: str, result: Any) -> None:
    """What became of an unsafe effect. Raises ``AlreadyResolved``."""
    if not step.unknown:
        raise AlreadyResolved("This effect is not indeterminate any more.")
    message = step.message
    content = Content(message.thread.id, orjson.dumps(result)) if outcome == "done" else None
    data = {"message": message.id, "agent": message.to, "step": step.number, "outcome": outcome}
    event = decision.add("step_resolved", data, content, message.thread.id)
    if content is not None:
        decision.set_result(step, event)
        decision.end_step(step)
    decision.state.boxes.wake(message)


def canonical(value: Any) -> bytes:
    """The canonical bytes of what a human is shown: compact JSON, its keys in order."""
    return json_of(value, orjson.OPT_SORT_KEYS)


def resolve_approval(decision: Decision, step: Step, command: ResolveApproval) -> None:
    """What a human decided. Raises ``AlreadyResolved``."""
    if step.ok is not None:
        raise AlreadyResolved("This approval was resolved already.")
    by = command.actor.user or command.actor.tenant
    data = {"approval": step.approval, "decision": command.decision, "comment": command.comment, "by": by}
    owner = step.message.thread.id
    edits = Content(owner, canonical(command.edits)) if command.edits is not None else None
    if edits is not None:
        data["digest"] = hashlib.sha256(edits.json).hexdigest()
    decision.add("approval_resolved", data, edits, owner)
    answer = {"decision": command.decision, "edits": command.edits, "comment": command.comment, "by": by}
    _answer_approval(decision, step, answer)


def expire(decision: Decision, step: Step) -> None:
    """An ask or an approval is over without an answer."""
    owner = step.message.thread.id
    if step.kind == "approve":
        decision.add("approval_expired", {"approval": step.approval}, thread=owner)
        answer = {"decision": "expired", "edits": None, "comment": "", "by": ""}
        _answer_approval(decision, step, answer)
    else:
        decision.record(step, {"code": "timeout", "message": "There was no answer in time."})


def _answer_approval(decision: Decision, step: Step, answer: dict[str, Any]) -> None:
    if step.number == CONSENT:
        runs.show_to_caller(decision, step.message, "interaction_response", {"decision": answer["decision"]})
    decision.record(step, None, Content(step.message.thread.id, orjson.dumps(answer)))


def find_approval(state: State, approval: str) -> Step | None:
    """The step behind an approval, while its message is open."""
    for message in state.routing.messages.values():
        for step in (message.steps or {}).values():
            if step.approval == approval:
                return step
    return None
