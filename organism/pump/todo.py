"""``system.todo``: reminders that stay until a message of a type has passed in the thread."""

from __future__ import annotations

from typing import Any

from organism.codec import Sealed
from organism.model.events import Content
from organism.model.handler import TodoComplete, TodoRegistered, TodoUntil
from organism.model.ids import SYSTEM_TODO, token_of
from organism.model.thread import Message, Step
from organism.pump.decision import Decision, message_data
from organism.pump.route import Refused


def refusal(payload: object) -> Refused | None:
    """What ``system.todo`` does not take."""
    if isinstance(payload, TodoUntil | TodoComplete):
        return None
    reason = f"{SYSTEM_TODO} takes TodoUntil or TodoComplete; {type(payload).__name__} came."
    return Refused("validation", "schema", reason)


def take(
    decision: Decision, message: Message, sealed: Sealed, step: Step | None, authors: dict[str, Any]
) -> TodoRegistered | None:
    """Record the message and what it does; gives the answer to a ``TodoUntil``."""
    request = decision.state.ids.message()
    ends = (message.to, SYSTEM_TODO)
    data = message_data(request, ends, sealed.type_name, message.depth + 1, token_of(request)) | authors
    if step is not None:
        data["step"] = [step.message.id, step.number]
    decision.add("message_sent", data, Content(message.thread.id, sealed.json, sealed.xml))
    decision.handled(decision.state.routing.messages[request], "done")
    payload = sealed.payload
    if isinstance(payload, TodoUntil):
        return _register(decision, message, payload, authors)
    known = message.thread.todos or {}
    if payload.id in known and known[payload.id]["agent"] == message.to:
        decision.add("todo_closed", {"todo": payload.id, "agent": message.to})
    return None


def _register(decision: Decision, message: Message, wanted: TodoUntil, authors: dict[str, Any]) -> TodoRegistered:
    todo_id = decision.state.ids.bare()
    data = {
        "todo": todo_id,
        "agent": message.to,
        "wait_for": wanted.wait_for,
        "from_listener": wanted.from_listener,
        "description": wanted.description,
        **authors,
    }
    decision.add("todo_registered", data)
    return TodoRegistered(todo_id)


def answer(decision: Decision, message: Message, sealed: Sealed, step: Step | None) -> None:
    """The answer goes to the ask that waits for it; without one it is recorded and ends unread."""
    reply = decision.state.ids.message()
    token = token_of(message.id)
    data = message_data(reply, (SYSTEM_TODO, message.to), sealed.type_name, message.depth + 1, token)
    data |= {"call": message.call.id if message.call is not None else message.id, "reply": True}
    if step is not None:
        data["answers"] = [step.message.id, step.number]
    event = decision.add("message_sent", data, Content(message.thread.id, sealed.json, sealed.xml))
    if step is None:
        decision.handled(decision.state.routing.messages[reply], "unread")
    else:
        decision.answer(step, event, sealed.payload)


def nudge(message: Message) -> str:
    """What ``metadata.todo_nudge`` says to the receiver of ``message``: its reminders whose message has passed."""
    todos = message.thread.todos
    if not todos:
        return ""
    met = [todo for todo in todos.values() if todo["agent"] == message.to and todo["met"]]
    lines = [
        f"{todo['description'] or todo['wait_for']} (it came; send TodoComplete(id={todo['todo']!r}) when done)"
        for todo in met
    ]
    return "\n".join(lines)
