"""Replay: a dead letter is sent again, in its thread and its call, so that its answer finds the same caller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from organism.codec import Sealed
from organism.errors import InvalidRequest
from organism.events.record import Content
from organism.events.vocabulary import MessageRefused, MessageReplayed, MessageSent
from organism.model.ids import CONSOLE, token_of
from organism.model.thread import NO_ROOT, Root
from organism.pump.decide.decision import Decision, State
from organism.pump.decide.route import Refused, Sender, receivers


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
