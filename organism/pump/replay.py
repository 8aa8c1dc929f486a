"""Replay: a dead letter is sent again, in its thread and its call, so that its answer finds the same caller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import orjson

from organism.codec import Sealed
from organism.errors import AlreadyResolved, InvalidRequest, NotFound
from organism.model.events import Content, Event
from organism.model.ids import CONSOLE, token_of
from organism.model.thread import NO_ROOT, Root
from organism.pump.decision import Decision, State, message_data
from organism.pump.pump import Pump
from organism.pump.route import Refused, Sender, receivers

REFUSED_CODES: Final = frozenset({"routing", "validation"})
"""Codes of dead letters that are refused sends: they never made a thread fail."""


@dataclass(frozen=True, slots=True)
class Letter:
    """An open dead letter."""

    message_id: str
    thread_id: str
    sender: str
    to: str
    type_name: str
    json: bytes
    correlation: str | None
    was_refused: bool
    calls: tuple[tuple[str, str], ...]  # request and caller of each call that it stood in, innermost first
    root: Root  # the injection that it follows from: a replay lends it no other rights
    authors: list[str]  # whose text it may hold, also if a person has edited it


@dataclass(frozen=True, slots=True)
class Again:
    """What is sent in its place."""

    message_id: str
    sealed: Sealed


async def read(pump: Pump, message_id: str) -> Letter:
    """The dead letter. Raises ``NotFound``, also if its content was erased, or ``AlreadyResolved``."""
    row = await pump.log.private_row("dead_letters", message_id)
    content = await pump.log.content(row["position"]) if row is not None else None
    closed = await pump.log.private_row("closed_letters", message_id) if row is None else None
    if closed is not None:
        raise AlreadyResolved(f"This dead letter was {closed['status']} already.")
    if row is None or content is None:
        raise NotFound(f"There is no open dead letter {message_id!r}.")
    was_refused = row["code"] in REFUSED_CODES
    found = (await pump.log.read(row["position"] - 1, row["position"], limit=1))[0]
    stands_in_own_call = not was_refused and "reply" in found.data
    calls = await _calls_around(pump, found if stands_in_own_call else await _sent(pump, found.cause))
    return Letter(
        message_id,
        row["thread_id"],
        row["from"],
        row["to"],
        row["payload_type"],
        content[0],
        found.correlation,
        was_refused,
        calls,
        await _root_of(pump, found.correlation),
        found.data.get("authors", []),
    )


async def _root_of(pump: Pump, correlation: str | None) -> Root:
    """The injection of a chain, that may have ended long ago."""
    sent = await _sent(pump, correlation)
    actor = sent.actor if sent is not None else None
    return NO_ROOT if sent is None or actor is None else Root(actor.principal, sent.data.get("caller_depth", 0))


async def _calls_around(pump: Pump, sent: Event | None) -> tuple[tuple[str, str], ...]:
    """The call that handling this message stands in, and those around it, innermost first."""
    chain: list[tuple[str, str]] = []
    while sent is not None:
        request = await _sent(pump, sent.data["call"]) if "reply" in sent.data else sent
        if request is None:
            break
        chain.append((request.data["message"], request.data["from"]))
        sent = await _sent(pump, request.cause)
    return tuple(chain)


async def _sent(pump: Pump, message_id: str | None) -> Event | None:
    row = await pump.log.private_row("messages", message_id) if message_id else None
    if row is None:
        return None
    return (await pump.log.read(row["position"] - 1, row["position"], limit=1))[0]


def prepare(state: State, letter: Letter, edited: Any) -> Again:
    """Check it as a new send by today's rules. Raises ``InvalidRequest``."""
    rules = state.rules
    terms = rules.terms(letter.to)
    value = rules.codec.from_json(letter.type_name, orjson.loads(letter.json) if edited is None else edited, terms)
    sender = rules.listeners.get(letter.sender) if letter.sender != CONSOLE else None
    found = receivers(rules, Sender(sender, 1, 0), letter.to, value) if letter.was_refused else ()
    if isinstance(found, Refused):
        raise InvalidRequest(f"It would be refused again: {found.reason}")
    message_id = state.ids.message()
    return Again(message_id, rules.codec.seal(letter.sender, letter.to, token_of(message_id), value, terms))


def add(decision: Decision, letter: Letter, again: Again, *, edited: bool) -> int:
    """Close the dead letter and send; gives the index of the new message's event."""
    closed = {
        "dead": letter.message_id,
        "message": again.message_id,
        "edited": edited,
        "failed": not letter.was_refused,
    }
    decision.add("message_replayed", closed)
    ends, depth = (letter.sender, letter.to), max(1, len(letter.calls) + 1)
    data = message_data(again.message_id, ends, again.sealed.type_name, depth, token_of(again.message_id))
    data["calls"] = [list(call) for call in letter.calls]
    if letter.root != NO_ROOT:
        data["root"] = list(letter.root)
    if letter.authors:
        data["authors"] = letter.authors
    event = decision.add("message_sent", data, Content(letter.thread_id, again.sealed.json, again.sealed.xml))
    decision.put(event, again.sealed.payload, decision.state.rules.generation)
    return len(decision.events) - 1
