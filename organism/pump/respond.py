"""Respond: a handler's answer and the call it stands in → the next messages, or why they are not sent."""

from __future__ import annotations

from typing import Any

import orjson

from organism.codec import Mended, Sealed, UnsupportedPayload
from organism.config.settings import Listener
from organism.errors import InvalidPayload
from organism.model.events import Content, Event
from organism.model.handler import FACTS, HandlerResponse, Recorded, TodoComplete, TodoRegistered, TodoUntil
from organism.model.handler import SystemError as SystemErrorPayload
from organism.model.ids import CONSOLE, SYSTEM_TODO, token_of
from organism.model.thread import NOBODY, Call, Step
from organism.pump.decision import Decision, message_data
from organism.pump.handling import Handling
from organism.pump.route import GENERIC, Refused, Sender, receivers, within_limits
from organism.pump.rules import Rules
from organism.pump.wording import described, readable, shown


def respond(decision: Decision, handling: Handling, responses: tuple[HandlerResponse, ...]) -> None:
    """Add the messages that the responses make."""
    for response in responses:
        more = NOBODY
        if type(response) is Recorded and handling.listener.is_shipped:
            record(decision, handling, response)
            more = response.authors
        if response.to is None:
            reply(decision, handling, response.payload, more)
        else:
            refused = send(decision, handling, response.to, response.payload)
            if refused is not None:
                tell_refused(decision, handling, refused)


def record(decision: Decision, handling: Handling, response: Recorded) -> None:
    """Add what a shipped tool made so. What another listener claims to have made so is nothing."""
    for fact in response.facts:
        if fact.type in FACTS:
            content = Content(handling.message.thread.id, fact.content) if fact.content is not None else None
            decision.add(fact.type, signed(handling, dict(fact.data)), content)


def signed(handling: Handling, data: dict[str, Any], more: frozenset[str] = NOBODY) -> dict[str, Any]:
    """The data of what a handling sends or stores, with whose text it may hold (S20)."""
    message, listener = handling.message, handling.listener
    authors = message.authors | message.read | more
    if listener.is_agent or listener.brings_outside_text:
        authors |= {listener.name}
    if authors:
        data["authors"] = sorted(authors)
    return data


def send(decision: Decision, handling: Handling, to: str, payload: object, step: Step | None = None) -> Refused | None:
    """Send a request to ``to``, to each of its group; with ``step``, as that ask's. Notes what was ``Mended``."""
    message, (plain, _) = handling.message, unmended(payload)
    sender = Sender(handling.listener, message.depth + 1, message.thread.open)
    if to == SYSTEM_TODO:
        return _to_todo(decision, handling, plain, step)
    found = receivers(decision.state.rules, sender, to, plain)
    if isinstance(found, Refused):
        _refuse(decision, handling, to, plain, found)
        return found
    for name in [member.name for member in found] or [CONSOLE]:
        refused = _send_one(decision, handling, name, payload, step)
        if refused is not None:
            return refused
    return None


def _to_todo(decision: Decision, handling: Handling, payload: object, step: Step | None) -> Refused | None:
    """``system.todo`` is no listener: what is sent to it is done in the unit that sends it."""
    message = handling.message
    sealed = seal(handling, SYSTEM_TODO, token_of(message.id), payload)
    if isinstance(sealed, Sealed) and not isinstance(sealed.payload, TodoUntil | TodoComplete):
        reason = f"{SYSTEM_TODO} takes TodoUntil or TodoComplete; {type(sealed.payload).__name__} came."
        sealed = Refused("validation", "schema", reason)
    if isinstance(sealed, Refused):
        _refuse(decision, handling, SYSTEM_TODO, payload, sealed)
        return sealed
    answer = _take_todo(decision, handling, sealed, step)
    if answer is not None:
        _answer_todo(decision, handling, answer, step)
    return None


def _take_todo(decision: Decision, handling: Handling, sealed: Sealed, step: Step | None) -> TodoRegistered | None:
    """Record the message and the reminder that it makes or closes; gives the answer to a ``TodoUntil``."""
    message, authors = handling.message, signed(handling, {})
    request = decision.state.ids.message()
    ends = (message.to, SYSTEM_TODO)
    data = message_data(request, ends, sealed.type_name, message.depth + 1, token_of(request)) | authors
    if step is not None:
        data["step"] = [step.message.id, step.number]
    decision.add("message_sent", data, Content(message.thread.id, sealed.json, sealed.xml))
    decision.handled(decision.state.routing.messages[request], "done")
    payload = sealed.payload
    if isinstance(payload, TodoUntil):
        todo_id = decision.state.ids.bare()
        registered = {
            "todo": todo_id,
            "agent": message.to,
            "wait_for": payload.wait_for,
            "from_listener": payload.from_listener,
            "description": payload.description,
            **authors,
        }
        decision.add("todo_registered", registered)
        return TodoRegistered(todo_id)
    known = message.thread.todos or {}
    if payload.id in known and known[payload.id]["agent"] == message.to:
        decision.add("todo_closed", {"todo": payload.id, "agent": message.to})
    return None


def _answer_todo(decision: Decision, handling: Handling, answer: TodoRegistered, step: Step | None) -> None:
    """The answer goes to the ask that waits for it; without one it is recorded and ends unread."""
    message = handling.message
    token = token_of(message.id)
    sealed = handling.rules.codec.seal(SYSTEM_TODO, message.to, token, answer)
    reply_id = decision.state.ids.message()
    data = message_data(reply_id, (SYSTEM_TODO, message.to), sealed.type_name, message.depth + 1, token)
    data |= {"call": message.call.id if message.call is not None else message.id, "reply": True}
    if step is not None:
        data["answers"] = [step.message.id, step.number]
    event = decision.add("message_sent", data, Content(message.thread.id, sealed.json, sealed.xml))
    if step is None:
        decision.handled(decision.state.routing.messages[reply_id], "unread")
    else:
        decision.answer(step, event, sealed.payload)


def unmended(payload: object) -> tuple[Any, tuple[str, ...]]:
    """A payload, and the notes of what was mended in it."""
    return payload if type(payload) is Mended else (payload, ())


def _send_one(decision: Decision, handling: Handling, to: str, payload: object, step: Step | None) -> Refused | None:
    payload, notes = unmended(payload)
    message_id = decision.state.ids.message()
    token = token_of(message_id)
    sealed = seal(handling, to, token, payload)
    if isinstance(sealed, Refused):
        _refuse(decision, handling, to, payload, sealed)
        return sealed
    message = handling.message
    data = message_data(message_id, (message.to, to), sealed.type_name, message.depth + 1, token)
    if step is not None:
        data["step"] = [step.message.id, step.number]
    if notes:
        data["notes"] = list(notes)
    content = Content(message.thread.id, sealed.json, sealed.xml)
    event = decision.add("message_sent", signed(handling, data), content)
    if to == CONSOLE:
        _deliver_outside(decision, message_id)
    else:
        decision.put(event, sealed.payload, handling.rules.generation)
    return None


def seal(handling: Handling, to: str, token: str, payload: object) -> Sealed | Refused:
    """Encode, validate and decode again, by the rules that the handling began with."""
    rules = handling.rules
    try:
        rules.learn(type(payload))
        return rules.codec.seal(handling.message.to, to, token, payload, rules.terms(to))
    except (InvalidPayload, UnsupportedPayload) as error:
        return Refused("validation", "schema", str(error))
    except BaseException as error:  # noqa: BLE001 - what is in the payload may raise anything when it is read or made
        return Refused("validation", "schema", f"The payload cannot be read: {described(error)}")


def _deliver_outside(decision: Decision, message_id: str) -> None:
    """A message to the console ends in the unit that sent it."""
    decision.add("message_handled", {"message": message_id, "agent": CONSOLE, "outcome": "delivered", "duration": 0})


def reply(decision: Decision, handling: Handling, payload: object, more: frozenset[str] = NOBODY) -> None:
    """Answer the caller of the call that the message is handled in; ``more`` are authors besides the handling's."""
    call = handling.message.call
    if call is None:
        return
    payload, notes = unmended(payload)
    bounded = within_limits(decision.state.rules, Sender(handling.listener, handling.message.depth + 1, 0))
    if bounded is not None:
        _refuse(decision, handling, call.caller, payload, bounded)
        tell_refused(decision, handling, bounded)
        return
    token = _token_of(call)
    sealed = seal(handling, call.caller, token, payload)
    if isinstance(sealed, Refused):
        _refuse(decision, handling, call.caller, payload, sealed)
        tell_refused(decision, handling, sealed)
        return
    sealed.notes = notes
    _send_reply(decision, handling, sealed, token, more)


def _token_of(call: Call) -> str:
    """The call token under which the caller handles: its own call's."""
    return token_of(call.parent.id if call.parent is not None else call.id)


def _send_reply(decision: Decision, handling: Handling, sealed: Sealed, token: str, more: frozenset[str]) -> None:
    call = handling.message.call
    assert call is not None  # noqa: S101 - checked by the caller; narrows the type
    message_id = decision.state.ids.message()
    message = handling.message
    data = message_data(message_id, (message.to, call.caller), sealed.type_name, message.depth + 1, token)
    data["call"] = call.parent.id if call.parent is not None else call.id
    data["reply"] = True
    cls = type(sealed.payload)
    data["class"] = f"{cls.__module__}:{cls.__qualname__}"  # where it is found again after a restart
    if sealed.notes:
        data["notes"] = list(sealed.notes)
    step = call.step
    answers = step is not None and step.ok is None and step.message.id in decision.state.routing.messages
    if answers and step is not None:
        data["answers"] = [step.message.id, step.number]
    content = Content(message.thread.id, sealed.json, sealed.xml)
    event = decision.add("message_sent", signed(handling, data, more), content)
    if answers and step is not None:
        decision.answer(step, event, sealed.payload)
    elif call.caller == CONSOLE:
        _deliver_outside(decision, message_id)
    else:
        _put_or_unread(decision, event, call, sealed, handling)


def _put_or_unread(decision: Decision, event: Event, call: Call, sealed: Sealed, handling: Handling) -> None:
    """A reply of a class that the receiver's annotation does not name, or to an ask that is over, ends unread."""
    receiver = decision.state.rules.listeners.get(call.caller)
    wanted = receiver is not None and call.step is None and accepts(receiver, sealed.type_name)
    if wanted:
        decision.put(event, sealed.payload, handling.rules.generation)
    else:
        decision.handled(decision.state.routing.messages[event.data["message"]], "unread")


def accepts(listener: Listener, type_name: str) -> bool:
    """Whether the handler's annotation names a class of this name."""
    return any(cls.__name__ == type_name for cls in listener.accepts)


def _refuse(decision: Decision, handling: Handling, to: str, payload: object, refused: Refused) -> None:
    """The dead letter of a send that was not made."""
    message = handling.message
    data = {
        "message": decision.state.ids.message(),
        "from": message.to,
        "to": readable(to),
        "type": type(payload).__name__,
        "code": refused.code,
        "why": refused.why,
        "reason": readable(refused.reason),
    }
    decision.add(
        "message_refused", signed(handling, data), Content(message.thread.id, _json_of(handling.rules, payload))
    )


def _json_of(rules: Rules, payload: object) -> bytes:
    """The payload as JSON, or as much of it as can be shown."""
    try:
        return rules.codec.json(payload)
    except BaseException as error:  # noqa: BLE001 - as in ``seal``
        return orjson.dumps({"repr": shown(payload), "error": described(error)})


def tell_refused(decision: Decision, handling: Handling, refused: Refused) -> None:
    """One generic ``SystemError`` to the agent whose send was refused, handled in the call in which it sent."""
    message = handling.message
    error = SystemErrorPayload(refused.code, GENERIC[refused.code], retry_allowed=False)
    call_id = message.call.id if message.call is not None else message.id
    token = token_of(call_id)
    sealed = handling.rules.codec.seal("system", message.to, token, error)
    message_id = decision.state.ids.message()
    data = message_data(message_id, ("system", message.to), sealed.type_name, message.depth + 1, token)
    data |= {"call": call_id, "reply": True}
    event = decision.add("message_sent", signed(handling, data), Content(message.thread.id, sealed.json, sealed.xml))
    too_deep = message.depth >= decision.state.rules.limits.max_depth
    if accepts(handling.listener, sealed.type_name) and not too_deep:
        decision.put(event, sealed.payload, handling.rules.generation)
    else:
        decision.handled(decision.state.routing.messages[message_id], "unread")
