"""What a run shows of a call that a person is asked about."""

from __future__ import annotations

from typing import Any

from organism.events.record import Content
from organism.events.vocabulary import RunEvent, RunInteractionRequest
from organism.model.redact import visible
from organism.model.thread import Message
from organism.pump.decide.decision import Decision
from organism.pump.wording import run_json


def show_request(decision: Decision, message: Message, arguments: Any, why: str) -> None:
    """The run that made this call shows that a person is asked about it."""
    called = {"id": _call_id(message), "name": message.to, "input": visible(arguments)}
    payload = {"toolName": message.to, "toolCall": called, **({"why": why} if why else {})}
    show_to_caller(decision, message, RunInteractionRequest, {"kind": "approval", "payload": payload})


def _call_id(message: Message) -> str:
    return message.step.key if message.step is not None else ""


def show_to_caller(decision: Decision, message: Message, entry: type[RunEvent], data: dict[str, Any]) -> None:
    """An entry of the run whose call the message is, under the call's id, if that run shows the call and goes on."""
    step, call_id = message.step, _call_id(message)
    if step is None or not call_id or step.message.id not in decision.state.routing.messages:
        return
    shown, thread_id = entry(step.message.id, step.message.to, call_id), step.message.thread.id
    decision.add(shown, Content(thread_id, run_json({"id": call_id, **data})), thread_id)
