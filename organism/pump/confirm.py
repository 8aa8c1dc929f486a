"""Confirm: a call to a listener with ``confirm: true`` is previewed first, and acts when it comes again with the token.

What was previewed is what acts: the token is bound to the digest of the payload, the listener and who began it all. It
is used once, and that is on disk before the handler runs; a further attempt of the same message goes on with it.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
from typing import Any, Final

import orjson

from organism.config.json_text import NotJson, read_json
from organism.model.handler import HandlerResponse
from organism.model.thread import NO_ROOT
from organism.model.tool import CONFIRM_TOKEN, ConfirmRequired, ToolArguments, ToolError, ToolErrorCode
from organism.projections.confirms import Confirmation
from organism.pump.consent import Withheld
from organism.pump.control import canonical
from organism.pump.steps import Handling

LIFE_SECONDS: Final = 60
MOST_SHOWN: Final = 200
"""Characters of a text in a preview."""
_SECOND_US: Final = 1_000_000
_WHY: Final[dict[ToolErrorCode, str]] = {
    "confirm_mismatch": "This confirm_token was given for another call, or is none. Call without one to get one.",
    "confirm_expired": "This confirm_token is not valid any more. Call without one to get another.",
    "confirm_used": "This confirm_token was used already. Call without one to do it once more.",
}


async def asked(handling: Handling, payload: Any) -> Any:
    """The payload that may be handled, or ``Withheld`` with the preview or with why its token is worth nothing."""
    if not is_two_steps(type(payload)):
        return payload
    await handling.gate()
    token, plain = _parted(payload)
    preview = orjson.loads(handling.rules.codec.json(plain))
    message = handling.message
    user = (message.thread.roots or {}).get(message.correlation or "", NO_ROOT).principal
    bound = canonical([user, message.to, type(plain).__name__, preview])
    digest = hashlib.sha256(b"confirm\0" + bound).hexdigest()
    if not token:
        return Withheld(HandlerResponse.respond(await _requested(handling, digest, preview)))
    refused = await _redeemed(handling, digest, _hash(token))
    return plain if refused is None else Withheld(HandlerResponse.respond(ToolError(refused, _WHY[refused])))


async def _requested(handling: Handling, digest: str, preview: Any) -> ConfirmRequired:
    token = base64.urlsafe_b64encode(handling.pump.chance.bytes(32)).decode().rstrip("=")
    decision = handling.decide()
    message = handling.message
    data = {
        "token": _hash(token),
        "digest": digest,
        "message": message.id,
        "agent": message.to,
        "expires_at": decision.at + LIFE_SECONDS * _SECOND_US,
    }
    decision.add("confirm_requested", data)
    await handling.pump.commit(decision)
    return ConfirmRequired(
        confirm_token=token,
        op=message.to,
        preview=orjson.dumps(_excerpt(preview)).decode(),
        message=f"Nothing is done yet. Call {message.to} again within {LIFE_SECONDS} seconds, with the same arguments "
        "and this confirm_token, if this is what shall be done.",
    )


async def _redeemed(handling: Handling, digest: str, token: str) -> ToolErrorCode | None:
    """Use the token; gives why it cannot be used."""
    decision = handling.decide()
    message = handling.message
    found = decision.state.routing.confirms.by_token.get(token)
    if found is not None and (found.used_by, found.digest) == (message.id, digest):
        return None  # an attempt after the first
    wrong = _wrong(found, digest, decision.at)
    data = {"token": token, "message": message.id, "agent": message.to}
    if wrong is None:
        decision.add("confirm_redeemed", data)
    else:
        decision.add("confirm_refused", {**data, "code": wrong})
    await handling.pump.commit(decision)
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
