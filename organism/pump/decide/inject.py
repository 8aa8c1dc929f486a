"""Inject: what comes from outside → a validated message in its thread, or the caller's error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import orjson

from organism.codec import Encoded, SpoofAttempt
from organism.config.settings import Listener
from organism.errors import Fault, InvalidPayload, InvalidRequest, MailboxFull, NotFound
from organism.events import vocabulary as events
from organism.events.record import Content
from organism.model.commands import Inject
from organism.model.ids import CONSOLE, token_of
from organism.model.thread import NO_ROOT, Thread
from organism.pump.decide.decision import Decision
from organism.pump.rules import Refused, Rules, Sender, receivers
from organism.pump.state import State


class Prepared(NamedTuple):
    """A message from outside that will be sent."""

    message_id: str
    to: str
    encoded: Encoded


def receiver(state: State, to: str) -> Listener:
    """The listener of that name, to which messages can be sent. Raises ``NotFound``."""
    listener = state.rules.listeners.get(to)
    if listener is None or listener.is_internal:
        raise NotFound(f"There is no listener named {to!r}. GET /api/v1/agents lists them.", param="/to")
    return listener


def refuse_if_full(rules: Rules, name: str, waiting: int) -> None:
    """Raise ``MailboxFull`` if too many messages wait for the listener to inject another one."""
    most = rules.limits.max_queue_per_agent
    if waiting >= most:
        raise MailboxFull(f"{name} has {waiting} messages waiting; limits.max_queue_per_agent is {most}.", param="/to")


def payload(rules: Rules, command: Inject, listener: Listener) -> object:
    """The command's payload as the receiver's class. Raises ``InvalidPayload``; ``SpoofAttempt`` (S12)."""
    name = listener.payload_class.__name__
    limits = rules.payload_limits(listener.name)
    if command.xml is None:
        return rules.codec.draft(name, command.json)
    said = rules.codec.parse_any(command.xml, limits)
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
    """Check everything before anything is decided. Raises an ``InvalidRequest`` or ``Unavailable``.

    ``waiting`` says how many messages wait for a listener.
    """
    listener = receiver(state, command.to)
    value = payload(state.rules, command, listener)
    open_there = len(state.folded.open_in(thread)) if thread is not None else 0
    found = receivers(state.rules, Sender(None, 1, open_there), command.to, value)
    if isinstance(found, Refused):
        raise _error(found)
    return [_prepared(state, member, value, waiting) for member in found]


def prepare_internal(state: State, command: Inject, waiting: Callable[[str], int]) -> Prepared:
    """Check what one of the organism's own commands sends to an internal listener. Raises as ``prepare`` does."""
    listener = state.rules.listeners[command.to]
    return _prepared(state, listener, payload(state.rules, command, listener), waiting)


def _prepared(state: State, member: Listener, value: object, waiting: Callable[[str], int]) -> Prepared:
    refuse_if_full(state.rules, member.name, waiting(member.name))
    message_id = state.ids.message()
    token, limits = token_of(message_id), state.rules.payload_limits(member.name)
    return Prepared(message_id, member.name, state.rules.codec.encode(CONSOLE, member.name, token, value, limits))


def _error(refused: Refused) -> InvalidRequest | MailboxFull:
    return (
        MailboxFull(refused.reason, param="/thread_id")
        if refused.why == "flood"
        else InvalidRequest(refused.reason, param="/to")
    )


def add(decision: Decision, prepared: list[Prepared], command: Inject, authors: tuple[str, ...] = ()) -> None:
    """Add the injected messages; the first is the correlation of all that follows from it.

    ``authors`` names whose text the receiver sees with them.
    """
    decision.correlation = prepared[0].message_id
    rules = decision.state.rules
    owner = decision.state.folded.threads[decision.thread_id or ""].owner
    for item in prepared:
        sent = events.MessageSent(
            item.message_id,
            sender=CONSOLE,
            to=item.to,
            type=item.encoded.type_name,
            depth=1,
            token=token_of(item.message_id),
            caller_depth=command.caller_depth,
            caller_request=command.caller_request,
            authors=_with_quoted(rules, item, authors),
        )
        record = decision.add(sent, Content(owner, item.encoded.json, item.encoded.xml))
        decision.put(record, item.encoded.payload, rules.generation)


def _with_quoted(rules: Rules, item: Prepared, authors: tuple[str, ...]) -> tuple[str, ...]:
    """The authors, with the console if what it sends holds text from outside that it brings."""
    listener = rules.listeners.get(item.to)
    if listener is None or listener.quotes is None or not listener.quotes(item.encoded.payload):
        return authors
    return tuple(sorted({*authors, CONSOLE}))


# -- replay: a dead letter is sent again, in its thread and its call, so that its answer finds the same caller


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An open dead letter: the message that died, or the send that was refused."""

    event: events.MessageSent | events.MessageRefused
    thread_id: str
    json: bytes
    correlation: str | None
    calls: tuple[tuple[str, str], ...]  # request and caller of each call that it stood in, innermost first
    root: events.Root  # the injection that it follows from: a replay lends it no other rights

    @property
    def was_refused(self) -> bool:
        """Whether it is a refused send: those never made a thread fail."""
        return isinstance(self.event, events.MessageRefused)


@dataclass(frozen=True, slots=True)
class Failed:
    """One failure: the dead letter that is sent again, for which no other message waits; and all that it closes.

    ``letters`` says of each whether it is a failed handling.
    """

    letter: DeadLetter
    letters: Mapping[str, bool]


def prepare_replay(state: State, letter: DeadLetter, edited: object) -> Prepared:
    """Check it like a new send by today's rules. Raises ``InvalidRequest``."""
    rules, dead = state.rules, letter.event
    limits = rules.payload_limits(dead.to)
    value = rules.codec.from_json(dead.type, orjson.loads(letter.json) if edited is None else edited, limits)
    sender = rules.listeners.get(dead.sender) if dead.sender != CONSOLE else None
    found = receivers(rules, Sender(sender, 1, 0), dead.to, value) if letter.was_refused else ()
    if isinstance(found, Refused):
        raise InvalidRequest(f"It would be refused again: {found.reason}")
    message_id = state.ids.message()
    return Prepared(message_id, dead.to, rules.codec.encode(dead.sender, dead.to, token_of(message_id), value, limits))


def add_replay(decision: Decision, failure: Failed, again: Prepared, *, edited: bool) -> int:
    """Close the dead letters and send; gives the index of the new message's record."""
    letter, dead = failure.letter, failure.letter.event
    decision.correlation = letter.correlation or again.message_id
    for message_id, is_failed in failure.letters.items():
        is_edited = edited and message_id == dead.message
        decision.add(events.MessageReplayed(message_id, again.message_id, is_edited, failed=is_failed))
    sent = events.MessageSent(
        again.message_id,
        sender=dead.sender,
        to=again.to,
        type=again.encoded.type_name,
        depth=len(letter.calls) + 1,
        token=token_of(again.message_id),
        calls=letter.calls,
        root=letter.root if letter.root != NO_ROOT else None,
        # whose text it may hold, also if a person has edited it
        authors=_with_quoted(decision.state.rules, again, dead.authors),
        first=(dead.first or dead.message) if isinstance(dead, events.MessageSent) else "",
    )
    owner = decision.state.folded.threads[letter.thread_id].owner
    record = decision.add(sent, Content(owner, again.encoded.json, again.encoded.xml))
    decision.put(record, again.encoded.payload, decision.state.rules.generation)
    return len(decision.records) - 1
