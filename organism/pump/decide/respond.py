"""Respond: a handler's answer and the call it stands in → the next messages, or why they are not sent."""

from __future__ import annotations

from typing import Any

import orjson
from msgspec.structs import replace

from organism.codec import Mended, Sealed, UnsupportedPayload
from organism.config.settings import Listener
from organism.errors import InvalidPayload
from organism.events.record import Content, Record
from organism.events.vocabulary import MessageHandled, MessageRefused, MessageSent, TodoClosed
from organism.events.vocabulary import TodoRegistered as TodoRegisteredEvent
from organism.model.handler import HandlerResponse, TodoComplete, TodoRegistered, TodoUntil
from organism.model.handler import SystemError as SystemErrorPayload
from organism.model.ids import CONSOLE, SYSTEM_TODO, token_of
from organism.model.recorded import Recorded
from organism.model.thread import NOBODY, Call, Step
from organism.pump.decide.decision import Decision
from organism.pump.decide.route import GENERIC, Refused, Sender, receivers, within_limits
from organism.pump.rules import Rules
from organism.pump.run.handling import Handling
from organism.pump.wording import described, readable, shown


def respond(decision: Decision, handling: Handling, responses: tuple[HandlerResponse, ...]) -> None:
    """Add the messages that the responses make."""
    for response in responses:
        more = NOBODY
        if type(response) is Recorded and handling.listener.is_shipped:
            _add_facts(decision, handling, response)
            more = response.authors
        if response.to is None:
            reply(decision, handling, response.payload, more)
        else:
            refused = send(decision, handling, response.to, response.payload)
            if refused is not None:
                tell_refused(decision, handling, refused)


def _add_facts(decision: Decision, handling: Handling, response: Recorded) -> None:
    """Add what a shipped tool made so. What another listener claims to have made so is nothing."""
    for event, json in response.facts:
        content = Content(handling.message.thread.id, json) if json is not None else None
        decision.add(replace(event, authors=authors_of(handling)), content)


def authors_of(handling: Handling, more: frozenset[str] = NOBODY) -> tuple[str, ...]:
    """Whose text may be in what a handling sends or stores (S20)."""
    message, listener = handling.message, handling.listener
    authors = message.authors | message.read | more
    if listener.is_agent or listener.brings_outside_text:
        authors |= {listener.name}
    return tuple(sorted(authors))


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
    message, authors = handling.message, authors_of(handling)
    request = decision.state.ids.message()
    sent = MessageSent(
        request,
        sender=message.to,
        to=SYSTEM_TODO,
        type=sealed.type_name,
        depth=message.depth + 1,
        token=token_of(request),
        step=_name_of(step),
        authors=authors,
    )
    decision.add(sent, _content(handling, sealed))
    decision.handled(decision.state.routing.messages[request], "done")
    payload = sealed.payload
    if isinstance(payload, TodoUntil):
        todo_id = decision.state.ids.bare()
        decision.add(
            TodoRegisteredEvent(
                todo_id, message.to, payload.wait_for, payload.from_listener, payload.description, authors
            )
        )
        return TodoRegistered(todo_id)
    known = (message.thread.todos or {}).get(payload.id)
    if known is not None and known.agent == message.to:
        decision.add(TodoClosed(payload.id, message.to))
    return None


def _answer_todo(decision: Decision, handling: Handling, answer: TodoRegistered, step: Step | None) -> None:
    """The answer goes to the ask that waits for it; without one it is recorded and ends unread."""
    message = handling.message
    token = token_of(message.id)
    sealed = handling.rules.codec.seal(SYSTEM_TODO, message.to, token, answer)
    sent = MessageSent(
        decision.state.ids.message(),
        sender=SYSTEM_TODO,
        to=message.to,
        type=sealed.type_name,
        depth=message.depth + 1,
        token=token,
        call=message.call.id if message.call is not None else message.id,
        reply=True,
        answers=_name_of(step),
    )
    record = decision.add(sent, _content(handling, sealed))
    if step is None:
        decision.handled(decision.state.routing.messages[sent.message], "unread")
    else:
        decision.answer(step, record, sealed.payload)


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
    sent = MessageSent(
        message_id,
        sender=message.to,
        to=to,
        type=sealed.type_name,
        depth=message.depth + 1,
        token=token,
        step=_name_of(step),
        authors=authors_of(handling),
        notes=notes,
    )
    record = decision.add(sent, _content(handling, sealed))
    if to == CONSOLE:
        _deliver_outside(decision, message_id)
    else:
        decision.put(record, sealed.payload, handling.rules.generation)
    return None


def _content(handling: Handling, sealed: Sealed) -> Content:
    return Content(handling.message.thread.id, sealed.json, sealed.xml)


def _name_of(step: Step | None) -> tuple[str, int] | None:
    return (step.message.id, step.number) if step is not None else None


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
    decision.add(MessageHandled(message_id, CONSOLE, "delivered", duration=0))


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
    message, cls = handling.message, type(sealed.payload)
    step = call.step
    if step is not None and (step.ok is not None or step.message.id not in decision.state.routing.messages):
        step = None
    sent = MessageSent(
        decision.state.ids.message(),
        sender=message.to,
        to=call.caller,
        type=sealed.type_name,
        depth=message.depth + 1,
        token=token,
        call=call.parent.id if call.parent is not None else call.id,
        reply=True,
        payload_class=f"{cls.__module__}:{cls.__qualname__}",  # where it is found again after a restart
        answers=_name_of(step),
        authors=authors_of(handling, more),
        notes=sealed.notes,
    )
    record = decision.add(sent, _content(handling, sealed))
    if step is not None:
        decision.answer(step, record, sealed.payload)
    elif call.caller == CONSOLE:
        _deliver_outside(decision, sent.message)
    else:
        _put_or_unread(decision, record, call, sealed, handling)


def _put_or_unread(
    decision: Decision, record: Record[MessageSent], call: Call, sealed: Sealed, handling: Handling
) -> None:
    """A reply of a class that the receiver's annotation does not name, or to an ask that is over, ends unread."""
    receiver = decision.state.rules.listeners.get(call.caller)
    wanted = receiver is not None and call.step is None and accepts(receiver, sealed.type_name)
    if wanted:
        decision.put(record, sealed.payload, handling.rules.generation)
    else:
        decision.handled(decision.state.routing.messages[record.event.message], "unread")


def accepts(listener: Listener, type_name: str) -> bool:
    """Whether the handler's annotation names a class of this name."""
    return any(cls.__name__ == type_name for cls in listener.accepts)


def _refuse(decision: Decision, handling: Handling, to: str, payload: object, refused: Refused) -> None:
    """The dead letter of a send that was not made."""
    message = handling.message
    event = MessageRefused(
        decision.state.ids.message(),
        sender=message.to,
        to=readable(to),
        type=type(payload).__name__,
        code=refused.code,
        why=refused.why,
        reason=readable(refused.reason),
        authors=authors_of(handling),
    )
    decision.add(event, Content(message.thread.id, _json_of(handling.rules, payload)))


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
    sent = MessageSent(
        decision.state.ids.message(),
        sender="system",
        to=message.to,
        type=sealed.type_name,
        depth=message.depth + 1,
        token=token,
        call=call_id,
        reply=True,
        authors=authors_of(handling),
    )
    record = decision.add(sent, _content(handling, sealed))
    too_deep = message.depth >= decision.state.rules.limits.max_depth
    if accepts(handling.listener, sealed.type_name) and not too_deep:
        decision.put(record, sealed.payload, handling.rules.generation)
    else:
        decision.handled(decision.state.routing.messages[sent.message], "unread")
