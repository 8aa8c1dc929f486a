"""Before a handler runs: the rights of the root, and the gates where an approval is needed."""

from __future__ import annotations

import base64
from dataclasses import replace
from random import Random
from typing import Any, NamedTuple

import orjson

from organism.config.settings import Row
from organism.errors import InvalidPayload
from organism.model.handler import HandlerResponse
from organism.model.thread import CONSENT, NO_AUTHORS
from organism.model.tool import Confirmed, Preview, Previewed, ToolError
from organism.pump.decide import gates
from organism.pump.decide.respond import Recorded
from organism.pump.run.handling import Handling, Unreadable
from organism.pump.state import Confirmation


def refused(handling: Handling, principal_of: gates.PrincipalOf) -> HandlerResponse | None:
    """The answer to a call that the root's principal has no right to; None if they have it."""
    why = gates.why_forbidden(handling.rules, handling.message, principal_of)
    return HandlerResponse.respond(ToolError("forbidden", why)) if why else None


class Withheld(NamedTuple):
    """The handler does not run, and this is answered."""

    answer: HandlerResponse


class Admitted(NamedTuple):
    """The payload to handle, as a person may have edited it; and what its caller has confirmed, if it was asked.

    ``authors`` are those by whom the call is judged.
    """

    payload: Any
    authors: frozenset[str]
    confirmed: Confirmed | None = None


async def admitted(handling: Handling, chance: Random, payload: Any) -> Admitted | Withheld:
    """What the handler gets once all gates are passed; or the answer in its place."""
    found: Admitted | Withheld = Admitted(payload, handling.message.authors)
    if handling.message.reply:
        return found
    if handling.listener.confirm and gates.is_two_steps(type(payload)):
        found = await _confirmed(handling, chance, payload)
    return found if isinstance(found, Withheld) else await _consented(handling, found)


async def _consented(handling: Handling, admitted: Admitted) -> Admitted | Withheld:
    payload, authors = admitted.payload, admitted.authors
    step = (handling.message.steps or {}).get(CONSENT)
    why = "" if step is not None or handling.listener.approval else await _why_asked(handling, payload, authors)
    if step is None and not handling.listener.approval and not why:
        return admitted
    json_value = orjson.loads(handling.rules.codec.json(payload))
    verdict = await handling.approved(gates.to_consent(handling.rules, type(payload).__name__, json_value, why))
    if verdict.decision != "approve":
        return Withheld(HandlerResponse.respond(gates.rejection(verdict)))
    if verdict.edits is None:
        return admitted
    try:
        edited = gates.edited(handling.rules, handling.listener, verdict.edits)
    except InvalidPayload as error:
        raise Unreadable(f"What was approved does not fit today's schema: {error}") from error
    return Admitted(edited, authors, admitted.confirmed and replace(admitted.confirmed, version=""))


async def _why_asked(handling: Handling, payload: Any, authors: frozenset[str]) -> str:
    """Why a person must approve this call; empty if no approval is needed."""
    message, destroys = handling.message, handling.listener.destroys
    others = sorted(authors - {message.sender})
    if not destroys or not gates.is_tainted(handling.writer.state, message, authors):
        return ""
    if isinstance(destroys, Row):
        row = await handling.writer.views.row(destroys.model, getattr(payload, destroys.field))
        if row is None:
            return ""
    return f"This call cannot be undone, and it rests on text from outside ({', '.join(others)})."


async def _confirmed(handling: Handling, chance: Random, payload: Any) -> Admitted | Withheld:
    await handling.wait_while_paused()
    given, plain = gates.split_token(payload)
    token = given or base64.urlsafe_b64encode(chance.randbytes(32)).decode().rstrip("=")
    message, json_value = handling.message, orjson.loads(handling.rules.codec.json(plain))
    question = gates.to_confirm(message, type(plain).__name__, json_value, token)
    if given:
        decision = handling.decide()
        used = gates.redeem(decision, message, question)
        await handling.writer.commit(decision)
        if isinstance(used, Confirmation):
            return Admitted(plain, gates.read_before(message, used), Confirmed(message.id, used.version))
        return Withheld(HandlerResponse.respond(ToolError(used, gates.WHY_REFUSED[used])))
    handler = handling.listener.handler
    preview = await handler.show(plain) if isinstance(handler, Previewed) else Preview(json_value, "")
    if isinstance(preview, ToolError):
        return Withheld(HandlerResponse.respond(preview))
    decision = handling.decide()
    gates.ask(decision, message, question._replace(version=preview.version))
    await handling.writer.commit(decision)
    quoted = frozenset({message.to}) if preview.quotes else NO_AUTHORS
    return Withheld(Recorded(gates.required(message.to, token, preview.shown), authors=quoted))
