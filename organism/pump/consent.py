"""Consent: a call to a listener with ``approval: true`` waits for a human before anything of it runs (spec 4.6).

The human sees the payload, and the word is bound to the digest of its canonical bytes. It is a step before the
handler's own, so it outlives a restart, is asked for once, and holds for further attempts.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import orjson

from organism.config.settings import Listener
from organism.errors import InvalidPayload
from organism.model.commands import ResolveApproval
from organism.model.handler import Approval, HandlerResponse
from organism.model.thread import CONSENT, Step
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
    return rules.codec.from_json(listener.payload_class.__name__, edits, rules.terms(listener.name))


def check_edits(rules: Rules, step: Step, command: ResolveApproval) -> None:
    """Raise ``InvalidPayload`` if what a human made of a call is none to its receiver."""
    listener = rules.listeners.get(step.message.to)
    if step.number == CONSENT and command.edits is not None and listener is not None:
        edited(rules, listener, command.edits)


async def asked(handling: Handling, payload: object) -> Any:
    """The payload that may be handled, edited if a human edited it; or ``Withheld``."""
    rules = handling.rules
    preview = canonical(orjson.loads(rules.codec.json(payload)))
    digest = hashlib.sha256(b"consent\0" + preview).hexdigest()[:32]
    step = handling.recorded(CONSENT, "approve", digest)
    if step is None:
        await handling.gate()
        step = handling.request_approval(CONSENT, digest, preview, type(payload).__name__)
    await handling.answer(step)
    said = Approval(**await handling.result(step))
    if said.decision != "approve":
        return Withheld(HandlerResponse.respond(ToolError("forbidden", _why(said))))
    if said.edits is None:
        return payload
    try:
        return edited(rules, handling.listener, said.edits)
    except InvalidPayload as error:
        raise Unreadable(f"What was approved does not fit today's schema: {error}") from error


def _why(said: Approval) -> str:
    if said.decision == "expired":
        return "Nobody approved this call in time."
    return f"A person rejected this call: {said.comment}" if said.comment else "A person rejected this call."
