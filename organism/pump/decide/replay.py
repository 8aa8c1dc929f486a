"""Replay: a dead letter is sent again, in its thread and its call, so that its answer finds the same caller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeGuard

import orjson

from organism.codec import Sealed
from organism.errors import AlreadyResolved, InvalidRequest, NotFound
from organism.events.record import Content, Record
from organism.events.vocabulary import Event, MessageRefused, MessageReplayed, MessageSent
from organism.model.ids import CONSOLE, token_of
from organism.model.thread import NO_ROOT, Root
from organism.pump.decide.decision import Decision, State
from organism.pump.decide.route import Refused, Sender, receivers
from organism.pump.pump import Pump


@dataclass(frozen=True, slots=True)
class Letter:
    """An open dead letter: the message that died, or the send that was refused."""

    event: MessageSent | MessageRefused
    thread_id: str
    json: bytes
    correlation: str | None
    calls: tuple[tuple[str, str], ...]  # request and caller of each call that it stood in, innermost first
    root: Root  # the injection that it follows from: a replay lends it no other rights

    @property
    def was_refused(self) -> bool:
        """Whether it is a refused send: those never made a thread fail."""
        return isinstance(self.event, MessageRefused)


@dataclass(frozen=True, slots=True)
class Again:
    """What is sent in its place."""

    message_id: str
    sealed: Sealed


async def read(pump: Pump, message_id: str) -> Letter:
    """The dead letter. Raises ``NotFound``, also if its content was erased, or ``AlreadyResolved``."""
    row = await pump.views.private_row("dead_letters", message_id)
    content = await pump.log.content(row["position"]) if row is not None else None
    closed = await pump.views.private_row("closed_letters", message_id) if row is None else None
    if closed is not None:
        raise AlreadyResolved(f"This dead letter was {closed['status']} already.")
    if row is None or content is None:
        raise NotFound(f"There is no open dead letter {message_id!r}.")
    found = (await pump.log.read(row["position"] - 1, row["position"], limit=1))[0]
    event = found.event
    assert isinstance(event, MessageSent | MessageRefused)  # noqa: S101 - where a dead letter lies; narrows the type
    handled = found if _is_sent(found) and found.event.reply else await _sent(pump, found.cause)
    calls, root = await _calls_around(pump, handled), await _root_of(pump, found.correlation)
    return Letter(event, row["thread_id"], content[0], found.correlation, calls, root)


async def _root_of(pump: Pump, correlation: str | None) -> Root:
    """The injection of a chain, that may have ended long ago."""
    sent = await _sent(pump, correlation)
    return NO_ROOT if sent is None or sent.actor is None else Root(sent.actor.principal, sent.event.caller_depth)


async def _calls_around(pump: Pump, sent: Record[MessageSent] | None) -> tuple[tuple[str, str], ...]:
    """The call that handling this message stands in, and those around it, innermost first."""
    chain: list[tuple[str, str]] = []
    while sent is not None:
        request = await _sent(pump, sent.event.call) if sent.event.reply else sent
        if request is None:
            break
        chain.append((request.event.message, request.event.sender))
        sent = await _sent(pump, request.cause)
    return tuple(chain)


async def _sent(pump: Pump, message_id: str | None) -> Record[MessageSent] | None:
    row = await pump.views.private_row("messages", message_id) if message_id else None
    if row is None:
        return None
    found = (await pump.log.read(row["position"] - 1, row["position"], limit=1))[0]
    return found if _is_sent(found) else None


def _is_sent(record: Record[Event]) -> TypeGuard[Record[MessageSent]]:
    return isinstance(record.event, MessageSent)


def prepare(state: State, letter: Letter, edited: Any) -> Again:
    """Check it as a new send by today's rules. Raises ``InvalidRequest``."""
    rules, dead = state.rules, letter.event
    terms = rules.terms(dead.to)
    value = rules.codec.from_json(dead.type, orjson.loads(letter.json) if edited is None else edited, terms)
    sender = rules.listeners.get(dead.sender) if dead.sender != CONSOLE else None
    found = receivers(rules, Sender(sender, 1, 0), dead.to, value) if letter.was_refused else ()
    if isinstance(found, Refused):
        raise InvalidRequest(f"It would be refused again: {found.reason}")
    message_id = state.ids.message()
    return Again(message_id, rules.codec.seal(dead.sender, dead.to, token_of(message_id), value, terms))


def add(decision: Decision, letter: Letter, again: Again, *, edited: bool) -> int:
    """Close the dead letter and send; gives the index of the new message's record."""
    dead = letter.event
    decision.add(MessageReplayed(dead.message, again.message_id, edited, failed=not letter.was_refused))
    sent = MessageSent(
        again.message_id,
        sender=dead.sender,
        to=dead.to,
        type=again.sealed.type_name,
        depth=len(letter.calls) + 1,
        token=token_of(again.message_id),
        calls=letter.calls,
        root=letter.root if letter.root != NO_ROOT else None,
        authors=dead.authors,  # whose text it may hold, also if a person has edited it
    )
    record = decision.add(sent, Content(letter.thread_id, again.sealed.json, again.sealed.xml))
    decision.put(record, again.sealed.payload, decision.state.rules.generation)
    return len(decision.records) - 1
