"""What decisions rest on: open messages, what they have shown, what was spent, what is confirmed; and its snapshot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
import orjson

from organism.model.events import Event
from organism.model.thread import Call, Message, Root, Step, Thread
from organism.projections import routing
from organism.projections.approvals import Confirmation, Confirms
from organism.projections.routing import Routing
from organism.projections.spend import Spend


class Folded(Routing, eq=False):
    """Routing, spending and confirmations. Only ``apply`` and the pump's decisions change it."""

    spend: Spend = msgspec.field(default_factory=Spend)
    confirms: Confirms = msgspec.field(default_factory=Confirms)

    def apply(self, event: Event) -> None:
        """Take one event."""
        fold = FOLDS.get(event.type)
        if fold is not None:
            fold(self, event)
        self.position = event.position
        self.last_at = event.at


def _reserved(state: Folded, event: Event) -> None:
    if state.spend.is_full():
        state.spend.forget(state.messages, state.threads)
    state.spend.reserved(event)


def _thread_reopened(state: Folded, event: Event) -> None:
    routing.FOLDS["thread_reopened"](state, event)
    state.spend.thread_reopened(event)


FOLDS: Final[dict[str, Callable[[Any, Event], None]]] = {
    **routing.FOLDS,
    "budget_reserved": _reserved,
    "budget_settled": lambda state, event: state.spend.settled(event),
    "confirm_requested": lambda state, event: state.confirms.requested(event),
    "confirm_redeemed": lambda state, event: state.confirms.redeemed(event),
    "thread_reopened": _thread_reopened,
}
"""The fold of each type that changes the state, as ``Decision.add`` applies it to a ``Folded``."""

THREAD_FIELDS: Final = ("open", "failed", "reason", "paused", "head", "parent", "todos")
STATE_FIELDS: Final = (
    "paused",
    "position",
    "last_at",
    "life",
    "life_at",
    "life_started",
    "life_ended",
    "clean",
    "short_lives",
)
MESSAGE_FIELDS: Final = ("position", "correlation", "starts", "failures", "deaths", "running", "next_at", "after")
STEP_FIELDS: Final = ("ok", "error", "content_at", "open", "effect", "key", "approval", "expires", "held_at", "unknown")


def dump(state: Folded) -> bytes:
    """The state as bytes."""
    calls: dict[str, dict[str, Any]] = {}
    body = {
        "state": {name: getattr(state, name) for name in STATE_FIELDS},
        "paused_agents": sorted(state.paused_agents),
        "failures_in_row": state.failures_in_row,
        "threads": {thread.id: _dump_thread(thread) for thread in state.threads.values()},
        "messages": [_dump_message(message, calls) for message in state.messages.values()],
        "calls": calls,
        "spend": state.spend,
        "confirms": state.confirms.by_token,
    }
    return msgspec.json.encode(body)


def _fields(item: object, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: getattr(item, name) for name in names}


def _dump_thread(thread: Thread) -> dict[str, Any]:
    roots = {key: list(root) for key, root in (thread.roots or {}).items()}
    return {**_fields(thread, THREAD_FIELDS), "roots": roots}


def _dump_message(message: Message, calls: dict[str, dict[str, Any]]) -> dict[str, Any]:
    dumped = _fields(message, MESSAGE_FIELDS)
    sent = {
        "message": message.id,
        "from": message.sender,
        "to": message.to,
        "type": message.type,
        "depth": message.depth,
        "content": message.digest,
        "authors": sorted(message.authors),
    }
    dumped["sent"] = {**sent, "reply": True} if message.reply else sent
    dumped["read"] = sorted(message.read)
    dumped["thread"] = message.thread.id
    dumped["call"] = _dump_call(message.call, calls)
    dumped["step"] = _name(message.step)
    dumped["ask"] = _name(message.ask)
    dumped["steps"] = [
        [step.number, step.kind, step.input, _fields(step, STEP_FIELDS)] for step in (message.steps or {}).values()
    ]
    if message.shown is not None:
        dumped["shown"] = [message.shown.counts, list(message.shown.open)]
    return dumped


def _dump_call(call: Call | None, calls: dict[str, dict[str, Any]]) -> str | None:
    """Calls are named by their request, and dumped once each."""
    current = call
    while current is not None and current.id not in calls:
        parent = current.parent.id if current.parent is not None else None
        calls[current.id] = {
            "caller": current.caller,
            "parent": parent,
            "step": _name(current.step),
            "ask": _name(current.ask),
        }
        current = current.parent
    return call.id if call is not None else None


def _name(step: Step | None) -> list[Any] | None:
    return [step.message.id, step.number] if step is not None else None


def load(body: bytes) -> Folded:
    """The state again."""
    dumped = orjson.loads(body)
    state = Folded()
    _set(state, dumped["state"])
    state.paused_agents = set(dumped["paused_agents"])
    state.failures_in_row = dumped["failures_in_row"]
    state.spend = msgspec.convert(dumped["spend"], Spend)
    state.confirms = Confirms(msgspec.convert(dumped.get("confirms", {}), dict[str, Confirmation]))
    for thread_id, fields in dumped["threads"].items():
        state.threads[thread_id] = thread = Thread(thread_id)
        _set(thread, fields)
        thread.roots = {key: Root(*root) for key, root in fields["roots"].items()} or None
    for message in dumped["messages"]:
        _load_message(state, message)
    calls = _load_calls(state, dumped["calls"])
    for each in dumped["messages"]:
        message = state.messages[each["sent"]["message"]]
        message.call = calls.get(each["call"])
        message.step = _step(state, each["step"])
        message.ask = _step(state, each["ask"])
    return state


def _set(item: object, fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        setattr(item, name, value)


def _load_message(state: Folded, dumped: dict[str, Any]) -> None:
    message = Message.sent(Event("message_sent", dumped["sent"]), state.threads[dumped["thread"]])
    _set(message, {name: dumped[name] for name in MESSAGE_FIELDS})
    message.read = frozenset(dumped["read"])
    for number, kind, digest, fields in dumped["steps"]:
        step = Step(message, number, kind, digest)
        _set(step, fields)
        message.steps = {**(message.steps or {}), number: step}
    if "shown" in dumped:
        counts, begun = dumped["shown"]
        shown = message.shows()
        shown.counts, shown.open = counts, dict.fromkeys(begun)
    state.messages[message.id] = message


def _load_calls(state: Folded, dumped: dict[str, dict[str, Any]]) -> dict[str | None, Call]:
    calls: dict[str | None, Call] = {
        call_id: Call(call_id, fields["caller"], None) for call_id, fields in dumped.items()
    }
    for call_id, fields in dumped.items():
        call = calls[call_id]
        call.parent = calls.get(fields["parent"])
        call.step = _step(state, fields["step"])
        call.ask = _step(state, fields["ask"])
    return calls


def _step(state: Folded, name: list[Any] | None) -> Step | None:
    """The step of that name; one whose message has ended is closed, and stays known as an ask."""
    if name is None:
        return None
    return state.step(name[0], name[1]) or _closed(name[0], name[1])


def _closed(message_id: str, number: int) -> Step:
    gone = {"message": message_id, "from": "", "to": "", "type": "", "depth": 0}
    step = Step(Message.sent(Event("message_sent", gone), Thread("")), number, "ask", "")
    step.ok = False
    return step
