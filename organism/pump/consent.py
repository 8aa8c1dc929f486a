"""Consent: what a person must agree to waits for them before anything of it runs (S20).

That is each call to a listener with ``approval: true``, and of a tainted run each call that cannot be undone. The
person sees the payload, and the word is bound to the digest of its canonical bytes. It is a step before the handler's
own, so it outlives a restart, is asked for once, and holds for further attempts.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import orjson

from organism.config.settings import Listener, Row
from organism.errors import InvalidPayload
from organism.model.commands import ResolveApproval
from organism.model.handler import Approval, HandlerResponse
from organism.model.thread import CONSENT, Message, Step
from organism.model.tool import ToolError
from organism.pump.control import canonical
from organism.pump.recall import Unreadable
from organism.pump.rules import Rules
from organism.pump.steps import Handling


@dataclass(frozen=True, slots=True)
class Withheld:
    """Nobody consented: the handler does not run, and this is answered."""

    answer: HandlerResponse


def edited(rules: Rules, listener: Listener, edits: Any) -> object:
    """The payload that a human made of the one that was previewed. Raises ``InvalidPayload``."""
    payload = rules.codec.from_json(listener.payload_class.__name__, edits, rules.terms(listener.name))
    if listener.check is not None:
        listener.check(payload)
    return payload


def check_edits(rules: Rules, step: Step, command: ResolveApproval) -> None:
    """Raise ``InvalidPayload`` if what a human made of a call is none to its receiver."""
    listener = rules.listeners.get(step.message.to)
    if step.number == CONSENT and command.edits is not None and listener is not None:
        edited(rules, listener, command.edits)


async def asked(handling: Handling, payload: Any) -> Any:
    """The payload that may be handled, edited if a human edited it; or ``Withheld``."""
    step = (handling.message.steps or {}).get(CONSENT)
    why = "" if step is not None or handling.listener.approval else await _why_asked(handling, payload)
    if step is None and not handling.listener.approval and not why:
        return payload
    rules = handling.rules
    preview = canonical(orjson.loads(rules.codec.json(payload)))
    digest = hashlib.sha256(b"consent\0" + preview).hexdigest()[:32]
    step = handling.recorded(CONSENT, "approve", digest)
    if step is None:
        await handling.gate()
        step = handling.request_approval(CONSENT, digest, preview, type(payload).__name__, why)
    await handling.answer(step)
    said = Approval(**await handling.result(step))
    if said.decision != "approve":
        return Withheld(HandlerResponse.respond(ToolError("forbidden", _why_not(said))))
    if said.edits is None:
        return payload
    try:
        return edited(rules, handling.listener, said.edits)
    except InvalidPayload as error:
        raise Unreadable(f"What was approved does not fit today's schema: {error}") from error


async def _why_asked(handling: Handling, payload: Any) -> str:
    """Why a person must agree to this call; empty if none must."""
    message, destroys = handling.message, handling.listener.destroys
    others = sorted(message.authors - {message.sender})
    if not destroys or not _is_tainted(handling.rules, message):
        return ""
    if isinstance(destroys, Row):
        row = await handling.pump.log.private_row(destroys.model, getattr(payload, destroys.field))
        if row is None:
            return ""
    return f"This call cannot be undone, and it rests on text from outside ({', '.join(others)})."


def _is_tainted(rules: Rules, message: Message) -> bool:
    """Whether an agent sent it that had read the text of others, or listeners with code passed such an agent's text on.

    An agent's own ``taint: allow`` lets it act on what it has read.
    """
    if len(message.authors) < 2:  # noqa: PLR2004 - the agent, and somebody else
        return False
    sender = rules.listeners.get(message.sender)
    agents = [message.sender] if sender is not None and sender.is_agent else message.authors
    return any((found := rules.listeners.get(name)) is not None and found.asks_people for name in agents)


def _why_not(said: Approval) -> str:
    if said.decision == "expired":
        return "Nobody approved this call in time."
    return f"A person rejected this call: {said.comment}" if said.comment else "A person rejected this call."
