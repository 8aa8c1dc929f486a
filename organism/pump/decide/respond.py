"""Respond: a handler's answer and the call that it belongs to → the next messages, or their refusals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from msgspec import field
from msgspec.structs import replace

from organism.codec import Encoded, RepairedPayload, UnsupportedPayload
from organism.config.foreign_code import described, readable, shown
from organism.config.settings import Listener
from organism.errors import InvalidPayload
from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Content, Record
from organism.model.handler import HandlerResponse, TodoComplete, TodoRegistered, TodoUntil
from organism.model.handler import SystemError as SystemErrorPayload
from organism.model.ids import CONSOLE, SYSTEM_TODO, CallToken, token_of
from organism.model.thread import NO_AUTHORS, Call, Message, Step
from organism.pump.decide.decision import Decision
from organism.pump.rules import GENERIC, Refused, Rules, Sender, receivers, within_limits

Owner = tuple[str | None, str | None]
"""The principal that injected what stored a text, and the user that it acted for."""


@dataclass(frozen=True, slots=True)
class Recorded(HandlerResponse):
    """A shipped tool's answer with the facts that it establishes, and whose text it gives back.

    Each fact is an event of the very unit in which the tool answers, and its content: JSON that is stored apart from
    it, and erased with the thread that it came from. ``owners`` are the principal and user of each text that was
    stored: that of others is text from outside. Of a handler that is no shipped tool none of these counts.
    """

    facts: tuple[tuple[events.ValueSet, bytes | None], ...] = ()
    authors: frozenset[str] = frozenset()
    owners: frozenset[Owner] = frozenset()


Ask = tuple[str, str, str]
"""Where a handler asks, the digest of what, and whom."""


class Outbox(Entity):
    """Sends, in a decision, what the handling of a message sends. ``rules`` are those that the handling began with."""

    decision: Decision
    message: Message
    listener: Listener
    rules: Rules
    asked_first: Mapping[Ask, str] = field(default_factory=dict)  # by what a replayed dead letter had asked before
    _replies: list[Encoded] = field(default_factory=list)

    def encode_replies(self, responses: tuple[HandlerResponse, ...]) -> Refused | None:
        """Encode the replies among the responses, before anything is decided; gives why one of them cannot be sent."""
        call = self.message.call
        for response in responses if call is not None else ():
            if call is None or response.to is not None:
                continue
            plain, _ = payload_and_notes(response.payload)
            sender = Sender(self.listener, self.message.depth + 1, 0)
            bounded = within_limits(self.decision.state.rules, sender)
            encoded = bounded or self._encoded(call.caller, self._caller_token(call), plain)
            if isinstance(encoded, Refused):
                return encoded
            self._replies.append(encoded)
        self._replies.reverse()
        return None

    def respond(self, responses: tuple[HandlerResponse, ...]) -> None:
        """Add the messages that the handler's responses make, whose replies are encoded (``encode_replies``)."""
        for response in responses:
            more = NO_AUTHORS
            if type(response) is Recorded and self.listener.is_shipped:
                self._add_facts(response)
                more = response.authors
                if response.owners - {self._owner()}:
                    more |= {self.listener.name}
            if response.to is None:
                self._reply(response.payload, more)
            elif (refused := self.send(response.to, response.payload)) is not None:
                self._report(refused)

    def send(self, to: str, payload: object, step: Step | None = None) -> Refused | None:
        """Send a request to ``to``, to each of its group; with ``step``, as that ask's. Notes what was repaired."""
        plain, notes = payload_and_notes(payload)
        if to == SYSTEM_TODO:
            return self._send_todo(plain, step)
        if type(plain) is dict:  # another kind of mapping may run code of its own
            plain = self._typed(to, plain)
            if isinstance(plain, Refused):
                return self._refused(to, payload, plain)
        state = self.decision.state
        sender = Sender(self.listener, self.message.depth + 1, len(state.folded.open_in(self.message.thread)))
        found = receivers(state.rules, sender, to, plain)
        if isinstance(found, Refused):
            return self._refused(to, plain, found)
        for name in [member.name for member in found] or [CONSOLE]:
            refused = self._send_one(name, plain, notes, step)
            if refused is not None:
                return refused
        return None

    # -- requests

    def _typed(self, to: str, fields: Mapping[str, Any]) -> object:
        """The payload of the listener's class that has these fields."""
        listener = self.rules.listeners.get(to)
        if listener is None:
            return fields
        try:
            return self.rules.codec.from_json(listener.payload_class.__name__, fields)
        except InvalidPayload as error:
            return Refused("validation", "schema", str(error))

    def _send_one(self, to: str, payload: object, notes: tuple[str, ...], step: Step | None) -> Refused | None:
        request = self.decision.state.ids.message()
        encoded = self._encoded(to, token_of(request), payload)
        if isinstance(encoded, Refused):
            return self._refused(to, payload, encoded)
        record = self._add_request(request, to, encoded, step, notes)
        if to == CONSOLE:
            self._deliver_outside(request)
        else:
            self._put(record, encoded)
        return None

    def _add_request(
        self, request: str, to: str, encoded: Encoded, step: Step | None, notes: tuple[str, ...] = ()
    ) -> Record[events.MessageSent]:
        sent = events.MessageSent(
            request,
            sender=self.message.to,
            to=to,
            type=encoded.type_name,
            depth=self.message.depth + 1,
            token=token_of(request),
            step=_name_of(step),
            authors=self._authors(),
            notes=notes,
            first=self.asked_first.get((step.place, step.input, to), "") if step is not None else "",
        )
        return self.decision.add(sent, self._content(encoded))

    def _send_todo(self, payload: object, step: Step | None) -> Refused | None:
        """``system.todo`` is no listener: a request to it is carried out in the unit that sends it."""
        encoded = self._encoded(SYSTEM_TODO, token_of(self.message.id), payload)
        if isinstance(encoded, Encoded) and not isinstance(encoded.payload, TodoUntil | TodoComplete):
            reason = f"{SYSTEM_TODO} takes TodoUntil or TodoComplete; {type(encoded.payload).__name__} came."
            encoded = Refused("validation", "schema", reason)
        if isinstance(encoded, Refused):
            return self._refused(SYSTEM_TODO, payload, encoded)
        record = self._add_request(self.decision.state.ids.message(), SYSTEM_TODO, encoded, step)
        self._end_sent(record, "done")
        if isinstance(encoded.payload, TodoUntil):
            self._answer_todo(self._register_todo(encoded.payload), step)
        else:
            self._close_todo(encoded.payload.id)
        return None

    def _register_todo(self, until: TodoUntil) -> TodoRegistered:
        todo_id = self.decision.state.ids.bare()
        wanted = until.wait_for, until.from_listener, until.description
        self.decision.add(events.TodoRegistered(todo_id, self.message.to, *wanted, self._authors()))
        return TodoRegistered(todo_id)

    def _close_todo(self, todo_id: str) -> None:
        known = (self.message.thread.todos or {}).get(todo_id)
        if known is not None and known.agent == self.message.to:
            self.decision.add(events.TodoClosed(todo_id, self.message.to))

    def _answer_todo(self, answer: TodoRegistered, step: Step | None) -> None:
        """The answer goes to the ask that waits for it; without one it is recorded and ends unread."""
        record, encoded = self._add_reply_to_self(SYSTEM_TODO, answer, answers=_name_of(step))
        if step is None:
            self._end_sent(record, "unread")
        else:
            self.decision.answer(step, record, encoded.payload)

    def _add_reply_to_self(
        self, sender: str, payload: object, *, answers: tuple[str, int] | None = None, authors: tuple[str, ...] = ()
    ) -> tuple[Record[events.MessageSent], Encoded]:
        """Add a reply of the organism's own to the agent whose message is handled, in the call of the handling."""
        message = self.message
        call_id = message.call.id if message.call is not None else message.id
        token = token_of(call_id)
        encoded = self.rules.codec.encode(sender, message.to, token, payload)
        sent = events.MessageSent(
            self.decision.state.ids.message(),
            sender=sender,
            to=message.to,
            type=encoded.type_name,
            depth=message.depth + 1,
            token=token,
            call=call_id,
            reply=True,
            answers=answers,
            authors=authors,
        )
        return self.decision.add(sent, self._content(encoded)), encoded

    # -- replies

    def _reply(self, payload: object, more: frozenset[str]) -> None:
        """Answer the caller of the call that the message is handled in; ``more`` are further authors."""
        call = self.message.call
        if call is None:
            return
        encoded, (_, notes) = self._replies.pop(), payload_and_notes(payload)
        step = call.step
        if step is not None and (step.ok is not None or step.message.id not in self.decision.state.folded.messages):
            step = None
        payload_class = type(encoded.payload)
        sent = events.MessageSent(
            self.decision.state.ids.message(),
            sender=self.message.to,
            to=call.caller,
            type=encoded.type_name,
            depth=self.message.depth + 1,
            token=self._caller_token(call),
            call=call.parent.id if call.parent is not None else call.id,
            reply=True,
            payload_class=f"{payload_class.__module__}:{payload_class.__qualname__}",  # for a restart
            answers=_name_of(step),
            authors=self._authors(more),
            notes=notes,
        )
        record = self.decision.add(sent, self._content(encoded))
        if step is not None:
            self.decision.answer(step, record, encoded.payload)
        elif call.caller == CONSOLE:
            self._deliver_outside(sent.message)
        elif self._is_wanted(call, encoded):
            self._put(record, encoded)
        else:
            self._end_sent(record, "unread")

    def _caller_token(self, call: Call) -> CallToken:
        """The call token under which the caller handles: its own call's."""
        return token_of(call.parent.id if call.parent is not None else call.id)

    def _is_wanted(self, call: Call, encoded: Encoded) -> bool:
        """Whether the caller takes a reply of this class, and the call was no ask, which is over by now."""
        receiver = self.decision.state.rules.listeners.get(call.caller)
        return receiver is not None and call.step is None and accepts(receiver, encoded.type_name)

    # -- refusals

    def _refused(self, to: str, payload: object, refused: Refused) -> Refused:
        """Add the dead letter of a send that is not made."""
        event = events.MessageRefused(
            self.decision.state.ids.message(),
            sender=self.message.to,
            to=readable(to),
            type=type(payload).__name__,
            code=refused.code,
            why=refused.why,
            reason=readable(refused.reason),
            authors=self._authors(),
        )
        self.decision.add(event, Content(self.message.thread.owner, _json_of(self.rules, payload)))
        return Refused(refused.code, refused.why, refused.reason, event.message)

    def _report(self, refused: Refused) -> None:
        """One generic ``SystemError`` to the agent whose send was refused, handled in the call in which it sent."""
        message = self.message
        error = SystemErrorPayload(refused.code, GENERIC[refused.code], retry_allowed=False)
        record, encoded = self._add_reply_to_self("system", error, authors=self._authors())
        is_too_deep = message.depth >= self.decision.state.rules.limits.max_depth
        if accepts(self.listener, record.event.type) and not is_too_deep:
            self._put(record, encoded)
        else:
            self._end_sent(record, "unread")

    # -- parts

    def _add_facts(self, response: Recorded) -> None:
        """Add the facts that a shipped tool establishes."""
        for event, json in response.facts:
            content = Content(self.message.thread.owner, json) if json is not None else None
            principal, user = self._owner()
            self.decision.add(replace(event, authors=self._authors(), principal=principal, user=user), content)

    def _owner(self) -> Owner:
        """For whom the message is handled."""
        root = self.message.root
        return root.principal, root.user

    def _authors(self, more: frozenset[str] = NO_AUTHORS) -> tuple[str, ...]:
        """Whose text may be in what the handling sends or stores (S20)."""
        authors = self.message.authors | self.message.read | more
        if self.listener.is_agent or self.listener.brings_outside_text:
            authors |= {self.listener.name}
        return tuple(sorted(authors))

    def _encoded(self, to: str, token: str, payload: object) -> Encoded | Refused:
        """Encode, validate and decode again."""
        rules = self.rules
        try:
            rules.register(type(payload))
            return rules.codec.encode(self.message.to, to, token, payload, rules.payload_limits(to))
        except (InvalidPayload, UnsupportedPayload) as error:
            return Refused("validation", "schema", str(error))
        except BaseException as error:  # noqa: BLE001 - what is in the payload may raise anything when it is read or made
            return Refused("validation", "schema", f"The payload cannot be read: {described(error)}")

    def _content(self, encoded: Encoded) -> Content:
        return Content(self.message.thread.owner, encoded.json, encoded.xml)

    def _put(self, record: Record[events.MessageSent], encoded: Encoded) -> None:
        self.decision.put(record, encoded.payload, self.rules.generation)

    def _end_sent(self, record: Record[events.MessageSent], outcome: events.Outcome) -> None:
        """End the message that was just sent in the same unit."""
        self.decision.handled(self.decision.state.folded.messages[record.event.message], outcome)

    def _deliver_outside(self, message_id: str) -> None:
        """A message to the console ends in the unit that sent it."""
        self.decision.add(events.MessageHandled(message_id, CONSOLE, "delivered", duration=0))


def payload_and_notes(payload: object) -> tuple[Any, tuple[str, ...]]:
    """A payload, and the notes of what was repaired in it."""
    return payload if type(payload) is RepairedPayload else (payload, ())


def accepts(listener: Listener, type_name: str) -> bool:
    """Whether the handler's annotation names a class of this name."""
    return any(cls.__name__ == type_name for cls in listener.accepts)


def _name_of(step: Step | None) -> tuple[str, int] | None:
    return (step.message.id, step.number) if step is not None else None


def _json_of(rules: Rules, payload: object) -> bytes:
    """The payload as JSON, or as much of it as can be shown."""
    try:
        return rules.codec.json(payload)
    except BaseException as error:  # noqa: BLE001 - what is in the payload may raise anything when it is read
        return orjson.dumps({"repr": shown(payload), "error": described(error)})
