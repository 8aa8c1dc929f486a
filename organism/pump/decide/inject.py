"""Inject: a command from outside → an addressed, validated message in its thread, or the error that its caller gets."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from organism.codec import Sealed, SpoofAttempt
from organism.config.settings import Listener
from organism.errors import Fault, InvalidPayload, InvalidRequest, MailboxFull, NotFound
from organism.events.record import Content
from organism.events.vocabulary import MessageSent
from organism.model.commands import Inject
from organism.model.ids import CONSOLE, token_of
from organism.model.thread import Thread
from organism.pump.decide.decision import Decision, State
from organism.pump.decide.route import Refused, Sender, receivers
from organism.pump.rules import Rules


class Prepared(NamedTuple):
    """An injected message that will be sent."""

    message_id: str
    to: str
    sealed: Sealed


def receiver(state: State, to: str) -> Listener:
    """The listener that is meant. Raises ``NotFound``."""
    listener = state.rules.listeners.get(to)
    if listener is None:
        raise NotFound(f"There is no listener named {to!r}. GET /api/v1/agents lists them.", param="/to")
    return listener


def hold_room(rules: Rules, name: str, waiting: int) -> None:
    """Raise ``MailboxFull`` if the listener, for which so many messages wait, can take no more injections."""
    most = rules.limits.max_queue_per_agent
    if waiting >= most:
        raise MailboxFull(f"{name} has {waiting} messages waiting; limits.max_queue_per_agent is {most}.", param="/to")


def payload(rules: Rules, command: Inject, listener: Listener) -> object:
    """The command's payload as the receiver's class. Raises ``InvalidPayload``; ``SpoofAttempt`` (S12)."""
    name = listener.payload_class.__name__
    terms = rules.terms(listener.name)
    if command.xml is None:
        return rules.codec.draft(name, command.json)
    said = rules.codec.parse_any(command.xml, terms)
    actual = {
        "from": (said.from_, CONSOLE),
        "to": (said.to, command.to),
        "thread": (said.token, command.thread_id or ""),
    }
    for field, (claimed, so) in actual.items():
        if claimed not in {"", so}:
            raise SpoofAttempt(field, claimed, so)
    came = type(said.payload).__name__
    if came != name:
        fault = Fault("", f"expected {name}, came {came}")
        raise InvalidPayload(f"{listener.name} takes {name}; {came} came.", details=(fault,))
    return said.payload


def prepare(state: State, command: Inject, thread: Thread | None, waiting: Callable[[str], int]) -> list[Prepared]:
    """Everything that can be refused, before anything is decided. Raises an ``InvalidRequest`` or ``Unavailable``.

    ``waiting`` says how many messages wait for a listener.
    """
    listener = receiver(state, command.to)
    value = payload(state.rules, command, listener)
    found = receivers(state.rules, Sender(None, 1, thread.open if thread is not None else 0), command.to, value)
    if isinstance(found, Refused):
        raise _error(found)
    prepared: list[Prepared] = []
    for member in found:
        hold_room(state.rules, member.name, waiting(member.name))
        message_id = state.ids.message()
        token = token_of(message_id)
        sealed = state.rules.codec.seal(CONSOLE, member.name, token, value, state.rules.terms(member.name))
        prepared.append(Prepared(message_id, member.name, sealed))
    return prepared


def _error(refused: Refused) -> InvalidRequest | MailboxFull:
    return (
        MailboxFull(refused.reason, param="/thread_id")
        if refused.why == "flood"
        else InvalidRequest(refused.reason, param="/to")
    )


def add(decision: Decision, prepared: list[Prepared], command: Inject) -> None:
    """Add the injected messages; the first is the correlation of all that follows from it."""
    decision.correlation = prepared[0].message_id
    for item in prepared:
        sent = MessageSent(
            item.message_id,
            sender=CONSOLE,
            to=item.to,
            type=item.sealed.type_name,
            depth=1,
            token=token_of(item.message_id),
            caller_depth=command.caller_depth,
            caller_request=command.caller_request,
        )
        record = decision.add(sent, Content(decision.thread_id or "", item.sealed.json, item.sealed.xml))
        decision.put(record, item.sealed.payload, decision.state.rules.generation)
