"""Runs, as decisions: what a person is asked, and the end. ``done`` is last, in the unit that ends the message."""

from __future__ import annotations

import json
from typing import Any

from organism.events.record import Content
from organism.events.vocabulary import RUN_ENTRIES, RunDone, RunEvent, RunInteractionRequest
from organism.model.redact import visible
from organism.model.thread import Message
from organism.pump.decide import spend
from organism.pump.decide.decision import Decision
from organism.pump.wording import json_of


def run_json(value: Any) -> bytes:
    """JSON of what a model or a handler said: halves of characters, which no UTF-8 holds, become question marks."""
    try:
        return json_of(value)
    except TypeError:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


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


def finish(decision: Decision, message: Message) -> None:
    """The handler gave its answer: its run is over, for the reason that it gave."""
    stream = message.handling.stream
    if stream is not None and stream.calls:
        spend.settle_all_lost(decision, message)
    _end(decision, message, stream.stop_reason if stream is not None and stream.stop_reason else "stop")


def cut(decision: Decision, message: Message) -> None:
    """An attempt is over, and another one follows: it goes on with the run."""
    spend.settle_all_lost(decision, message)
    if message.handling is not None and message.handling.stream is not None:
        message.handling.stream.cut(decision)


def lose(decision: Decision, message: Message, reason: str) -> None:
    """A handling ends that gave no answer: calls under way are lost, what was shown stays, and its run is over."""
    cut(decision, message)
    _end(decision, message, reason)


def _end(decision: Decision, message: Message, reason: str) -> None:
    """The run is over, if there is one: its blocks end, and ``done`` is its last entry."""
    stream = message.handling.stream if message.handling is not None else None
    if stream is not None:
        stream.cut(decision)
    if message.shown is None and (stream is None or not stream.stop_reason):
        return
    for name in tuple(message.shown.open) if message.shown is not None else ():
        kind, _, block_id = name.partition(" ")
        decision.add(RUN_ENTRIES[f"{kind}_end"](message.id, message.to, block_id), thread=message.thread.id)
    decision.add(RunDone(message.id, message.to, stop_reason=reason), thread=message.thread.id)
