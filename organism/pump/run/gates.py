"""Gates at a handling: before its handler runs, and where the handler asks for an approval (``decide/gates.py``)."""

from __future__ import annotations

import base64
import dataclasses
import json
from random import Random
from typing import Any, Final, NamedTuple

import orjson

from organism.config.json_text import NotJson, read_json
from organism.config.settings import Row
from organism.errors import InvalidPayload
from organism.model.handler import Approval, HandlerResponse
from organism.model.thread import CONSENT, Message
from organism.model.tool import CONFIRM_TOKEN, ConfirmRequired, ToolArguments, ToolError, ToolErrorCode
from organism.pump.decide import gates
from organism.pump.decide.gates import CONFIRM_SECONDS, Question
from organism.pump.rules import Rules
from organism.pump.run.handling import Handling
from organism.pump.run.recall import Unreadable

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


async def admitted(handling: Handling, chance: Random, payload: Any) -> Any:
    """The payload that may be handled, edited if a person edited it; or ``Withheld``."""
    if handling.message.reply:
        return payload
    if handling.listener.confirm and is_two_steps(type(payload)):
        payload = await _confirmed(handling, chance, payload)
    return payload if isinstance(payload, Withheld) else await _consented(handling, payload)


async def approved(handling: Handling, question: Question) -> Approval:
    """Ask a person, or recall what they decided."""
    step = handling.recorded(question.step, "approve", question.digest)
    if step is None:
        await handling.wait_while_paused()
        decision = handling.decide()
        gates.ask(decision, handling.message, question)
        step = (handling.message.steps or {})[question.step]
        handling.suspend(step)
        handling.writer.write(decision)
    await handling.answer(step)
    return Approval(**await handling.result(step))


# -- a person's consent, before the handler runs


async def _consented(handling: Handling, payload: Any) -> Any:
    step = (handling.message.steps or {}).get(CONSENT)
    why = "" if step is not None or handling.listener.approval else await _why_asked(handling, payload)
    if step is None and not handling.listener.approval and not why:
        return payload
    json_value = orjson.loads(handling.rules.codec.json(payload))
    verdict = await approved(handling, gates.to_consent(handling.rules, type(payload).__name__, json_value, why))
    if verdict.decision != "approve":
        return Withheld(HandlerResponse.respond(ToolError("forbidden", _why_not(verdict))))
    if verdict.edits is None:
        return payload
    try:
        return gates.edited(handling.rules, handling.listener, verdict.edits)
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


def _why_not(verdict: Approval) -> str:
    if verdict.decision == "expired":
        return "Nobody approved this call in time."
    return f"A person rejected this call: {verdict.comment}" if verdict.comment else "A person rejected this call."


# -- calls that their caller confirms


async def _confirmed(handling: Handling, chance: Random, payload: Any) -> Any:
    await handling.wait_while_paused()
    given, plain = _parted(payload)
    token = given or base64.urlsafe_b64encode(chance.randbytes(32)).decode().rstrip("=")
    message, json_value = handling.message, orjson.loads(handling.rules.codec.json(plain))
    question = gates.to_confirm(message, type(plain).__name__, json_value, token)
    decision = handling.decide()
    refused: ToolErrorCode | None = None
    if given:
        refused = gates.redeem(decision, message, question)
    else:
        gates.ask(decision, message, question)
    await handling.writer.commit(decision)
    if not given:
        return Withheld(HandlerResponse.respond(_required(message.to, token, json_value)))
    return plain if refused is None else Withheld(HandlerResponse.respond(ToolError(refused, _WHY[refused])))


def _required(name: str, token: str, preview: Any) -> ConfirmRequired:
    return ConfirmRequired(
        confirm_token=token,
        op=name,
        preview=orjson.dumps(_excerpt(preview)).decode(),
        message=f"Nothing is done yet. Call {name} again within {CONFIRM_SECONDS} seconds, with the same "
        "arguments and this confirm_token, if this is what shall be done.",
    )


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
