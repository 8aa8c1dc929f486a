"""What must be agreed to before it is done: by a person (an approval), or by the caller itself (a confirmed call).

A person's consent to a call, to a listener with ``approval: true`` or from a tainted run (S20), is step 0 of the
handling: it outlives a restart, is asked for once, holds for further attempts, and is bound to the payload's digest.
A call to be confirmed (``confirm: true``) is answered with a preview and a token. The token is bound to payload,
listener and principal, and used once, which is on disk before the handler runs.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
from random import Random
from typing import Any, Final, NamedTuple

import orjson

from organism.config.json_text import NotJson, read_json
from organism.config.settings import Listener, Row
from organism.errors import InvalidPayload
from organism.events.record import Content
from organism.events.vocabulary import (
    ApprovalRequested,
    ConfirmRedeemed,
    ConfirmRefused,
    ConfirmRequested,
    StepStarted,
)
from organism.model.commands import ResolveApproval
from organism.model.handler import Approval, HandlerResponse
from organism.model.thread import CONSENT, Message, Step
from organism.model.tool import CONFIRM_TOKEN, ConfirmRequired, ToolArguments, ToolError, ToolErrorCode
from organism.pump.confirmations import Confirmation
from organism.pump.decide import runs
from organism.pump.decide.control import canonical
from organism.pump.rules import Rules
from organism.pump.run.handling import Handling
from organism.pump.run.recall import Unreadable

CONFIRM_SECONDS: Final = 60
MOST_SHOWN: Final = 200
"""Characters of a text in a preview."""
_WHY: Final[dict[ToolErrorCode, str]] = {
    "confirm_mismatch": "This confirm_token was given for another call, or is none. Call without one to get one.",
    "confirm_expired": "This confirm_token is not valid any more. Call without one to get another.",
    "confirm_used": "This confirm_token was used already. Call without one to do it once more.",
}


class Withheld(NamedTuple):
    """The handler does not run, and this is answered."""

    answer: HandlerResponse


class Question(NamedTuple):
    """What a person is asked: ``preview`` is canonical JSON; if it is a payload, ``payload_type`` is its class."""

    digest: str
    preview: bytes
    payload_type: str = ""
    why: str = ""


async def admitted(handling: Handling, chance: Random, payload: Any) -> Any:
    """The payload that may be handled, edited if a person edited it; or ``Withheld``."""
    if handling.message.reply:
        return payload
    if handling.listener.confirm and is_two_steps(type(payload)):
        payload = await _confirmed(handling, chance, payload)
    return payload if isinstance(payload, Withheld) else await _consented(handling, payload)


async def approved(handling: Handling, number: int, question: Question) -> Approval:
    """Ask a person as step ``number``, or recall what they decided."""
    step = handling.recorded(number, "approve", question.digest)
    if step is None:
        await handling.wait_while_paused()
        step = _request(handling, number, question)
    await handling.answer(step)
    return Approval(**await handling.result(step))


def _request(handling: Handling, number: int, question: Question) -> Step:
    decision = handling.decide()
    approval = decision.state.ids.approval()
    expires = decision.at + int(handling.rules.limits.approval_expires_s * 1_000_000)
    message = handling.message
    named = message.id, message.to, number
    begun = StepStarted(*named, "approve", question.digest, approval=approval, expires=expires)
    step = handling.begin_step(decision, begun)
    digest = hashlib.sha256(question.preview).hexdigest()
    asked = ApprovalRequested(approval, *named, digest, expires, question.payload_type, question.why)
    decision.add(asked, Content(message.thread.id, question.preview))
    if number == CONSENT:
        runs.show_request(decision, message, orjson.loads(question.preview), question.why)
    handling.suspend(step)
    handling.writer.write(decision)
    return step


# -- a person's consent, before the handler runs


async def _consented(handling: Handling, payload: Any) -> Any:
    step = (handling.message.steps or {}).get(CONSENT)
    why = "" if step is not None or handling.listener.approval else await _why_asked(handling, payload)
    if step is None and not handling.listener.approval and not why:
        return payload
    preview = canonical(orjson.loads(handling.rules.codec.json(payload)))
    digest = hashlib.sha256(b"consent\0" + preview).hexdigest()[:32]
    said = await approved(handling, CONSENT, Question(digest, preview, type(payload).__name__, why))
    if said.decision != "approve":
        return Withheld(HandlerResponse.respond(ToolError("forbidden", _why_not(said))))
    if said.edits is None:
        return payload
    try:
        return _edited(handling.rules, handling.listener, said.edits)
    except InvalidPayload as error:
        raise Unreadable(f"What was approved does not fit today's schema: {error}") from error


async def _why_asked(handling: Handling, payload: Any) -> str:
    """Why a person must agree to this call; empty if none must."""
    message, destroys = handling.message, handling.listener.destroys
    others = sorted(message.authors - {message.sender})
    if not destroys or not _is_tainted(handling.rules, message):
        return ""
    if isinstance(destroys, Row):
        row = await handling.writer.views.private_row(destroys.model, getattr(payload, destroys.field))
        if row is None:
            return ""
    return f"This call cannot be undone, and it rests on text from outside ({', '.join(others)})."


def _is_tainted(rules: Rules, message: Message) -> bool:
    """Whether an agent that had read the text of others sent it, and does not say ``taint: allow``; or passed it on."""
    if len(message.authors) < 2:  # noqa: PLR2004 - the agent, and somebody else
        return False
    sender = rules.listeners.get(message.sender)
    agents = [message.sender] if sender is not None and sender.is_agent else message.authors
    return any((found := rules.listeners.get(name)) is not None and found.asks_people for name in agents)


def _why_not(said: Approval) -> str:
    if said.decision == "expired":
        return "Nobody approved this call in time."
    return f"A person rejected this call: {said.comment}" if said.comment else "A person rejected this call."


def _edited(rules: Rules, listener: Listener, edits: Any) -> object:
    """The payload that a person made of the one that was previewed. Raises ``InvalidPayload``."""
    payload = rules.codec.from_json(listener.payload_class.__name__, edits, rules.terms(listener.name))
    if listener.check is not None:
        listener.check(payload)
    return payload


def check_edits(rules: Rules, step: Step, command: ResolveApproval) -> None:
    """Raise ``InvalidPayload`` if what a person made of a call is none to its receiver."""
    listener = rules.listeners.get(step.message.to)
    if step.number == CONSENT and command.edits is not None and listener is not None:
        _edited(rules, listener, command.edits)


# -- calls that their caller confirms


async def _confirmed(handling: Handling, chance: Random, payload: Any) -> Any:
    await handling.wait_while_paused()
    token, plain = _parted(payload)
    preview = orjson.loads(handling.rules.codec.json(plain))
    message = handling.message
    bound = canonical([message.root.principal, message.to, type(plain).__name__, preview])
    digest = hashlib.sha256(b"confirm\0" + bound).hexdigest()
    if not token:
        return Withheld(HandlerResponse.respond(await _preview(handling, chance, digest, preview)))
    refused = await _redeem(handling, digest, _hash(token))
    return plain if refused is None else Withheld(HandlerResponse.respond(ToolError(refused, _WHY[refused])))


async def _preview(handling: Handling, chance: Random, digest: str, preview: Any) -> ConfirmRequired:
    token = base64.urlsafe_b64encode(chance.randbytes(32)).decode().rstrip("=")
    decision = handling.decide()
    message = handling.message
    expires = decision.at + CONFIRM_SECONDS * 1_000_000
    decision.add(ConfirmRequested(_hash(token), digest, message.id, message.to, expires))
    await handling.writer.commit(decision)
    return ConfirmRequired(
        confirm_token=token,
        op=message.to,
        preview=orjson.dumps(_excerpt(preview)).decode(),
        message=f"Nothing is done yet. Call {message.to} again within {CONFIRM_SECONDS} seconds, with the same "
        "arguments and this confirm_token, if this is what shall be done.",
    )


async def _redeem(handling: Handling, digest: str, token: str) -> ToolErrorCode | None:
    """Use the token; gives why it cannot be used."""
    decision = handling.decide()
    message = handling.message
    found = decision.state.confirms.by_token.get(token)
    if found is not None and (found.used_by, found.digest) == (message.id, digest):
        return None  # an attempt after the first
    wrong = _wrong(found, digest, decision.at)
    if wrong is None:
        decision.add(ConfirmRedeemed(token, message.id, message.to))
    else:
        decision.add(ConfirmRefused(token, message.id, message.to, wrong))
    await handling.writer.commit(decision)
    return wrong


def _wrong(found: Confirmation | None, digest: str, at: int) -> ToolErrorCode | None:
    if found is None or found.digest != digest:
        return "confirm_mismatch"
    if found.used_by:
        return "confirm_used"
    return None if found.is_open(at) else "confirm_expired"


def _parted(payload: Any) -> tuple[str, Any]:
    """The token, and the payload without it. A tool that is not ours finds it among its arguments, as text."""
    if not isinstance(payload, ToolArguments):
        return getattr(payload, CONFIRM_TOKEN), dataclasses.replace(payload, **{CONFIRM_TOKEN: ""})
    try:
        arguments = read_json(payload.json)
    except NotJson:
        return "", payload
    token = arguments.pop(CONFIRM_TOKEN, "") if isinstance(arguments, dict) else ""
    return str(token), ToolArguments(json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False))


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _excerpt(value: Any) -> Any:
    """The value with long texts cut."""
    match value:
        case dict():
            return {key: _excerpt(each) for key, each in value.items()}
        case list():
            return [_excerpt(each) for each in value]
        case str() if len(value) > MOST_SHOWN:
            return value[: MOST_SHOWN - 1] + "…"
        case _:
            return value


def is_two_steps(payload_class: type) -> bool:
    """Whether a call of this class can be confirmed by its caller: it has room for the token."""
    return payload_class is ToolArguments or CONFIRM_TOKEN in {
        field.name for field in dataclasses.fields(payload_class)
    }
