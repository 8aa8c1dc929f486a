"""Gates: calls that need an approval first. One decision asks, one answers; an unanswered question expires.

A question has a preview, which is shown, and a digest, to which the verdict is bound. The gates differ in whom they
ask and in what the digest covers:

* ``confirm: true`` asks the caller, who calls again with a token; bound to principal, user, listener and payload;
* ``approval: true``, or a tainted call that cannot be undone (S20), asks a person as step 0 of the handling: the
  question outlives a restart, is put once, holds for further attempts, and is bound to the payload;
* ``metadata.approve`` asks a person as an ordinary step; bound to what the handler shows.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import orjson

from organism.config.foreign_code import json_of, run_json
from organism.config.json_text import NotJson, read_json
from organism.config.settings import Listener
from organism.events import vocabulary as events
from organism.events.record import Content
from organism.model.commands import ResolveApproval
from organism.model.handler import Approval
from organism.model.principal import Principal
from organism.model.redact import visible
from organism.model.thread import CONSENT, Message, Step
from organism.model.tool import CONFIRM_TOKEN, ConfirmRequired, ToolArguments, ToolError, ToolErrorCode
from organism.pump.decide.decision import Decision
from organism.pump.rules import Rules
from organism.pump.state import Confirmation, State

PrincipalOf = Callable[[str], Principal | None]
"""Who has the token of that name now; None if it is no longer valid."""
MOST_SHOWN: Final = 200
"""Characters of a text in a preview."""
WHY_REFUSED: Final[dict[ToolErrorCode, str]] = {
    "confirm_mismatch": "This confirm_token was given for another call, or is none. Call without one to get one.",
    "confirm_expired": "This confirm_token is not valid any more. Call without one to get another.",
    "confirm_used": "This confirm_token was used already. Call without one to do it once more.",
}
CONFIRM_SECONDS: Final = 60


class Question(NamedTuple):
    """What is asked at a gate: of the caller by the token of that hash, else of a person as that step of the handling.

    ``preview`` is canonical JSON; if it is a payload, ``payload_type`` is its class. ``version`` is that of
    what the preview showed.
    """

    digest: str
    preview: bytes
    seconds: float  # until it expires
    payload_type: str = ""
    why: str = ""
    token: str = ""
    version: str = ""
    step: int = CONSENT


def canonical(value: object) -> bytes:
    """The canonical bytes of what is shown: compact JSON with sorted keys."""
    return json_of(value, orjson.OPT_SORT_KEYS)


def to_confirm(message: Message, payload_type: str, payload: object, token: str) -> Question:
    """The question to the caller of a message with this payload."""
    root = message.root
    bound = canonical([root.principal, root.user, message.to, payload_type, payload])
    digest, token = hashlib.sha256(b"confirm\0" + bound).hexdigest(), hashlib.sha256(token.encode()).hexdigest()
    return Question(digest, canonical(payload), CONFIRM_SECONDS, payload_type, token=token)


def to_consent(rules: Rules, payload_type: str, payload: object, why: str) -> Question:
    """The question to a person about a call with this payload."""
    preview = canonical(payload)
    digest = hashlib.sha256(b"consent\0" + preview).hexdigest()[:32]
    return Question(digest, preview, rules.limits.approval_expires_s, payload_type, why)


def ask(decision: Decision, message: Message, question: Question, place: str = "") -> None:
    """Ask the question; ``place`` is that of the step."""
    expires = decision.at + int(question.seconds * 1_000_000)
    if question.token:
        asked = events.ConfirmRequested(
            question.token, question.digest, message.id, message.to, expires, question.version
        )
        decision.add(asked)
        return
    approval, named = decision.state.ids.approval(), (message.id, message.to, question.step)
    decision.add(
        events.StepStarted(*named, "approve", question.digest, approval=approval, expires=expires, place=place)
    )
    digest = hashlib.sha256(question.preview).hexdigest()
    to_people = events.ApprovalRequested(approval, *named, digest, expires, question.payload_type, question.why)
    decision.add(to_people, Content(message.thread.owner, question.preview))
    if question.step == CONSENT:
        called = {"id": _call_id(message), "name": message.to, "input": visible(orjson.loads(question.preview))}
        payload = {"toolName": message.to, "toolCall": called, **({"why": question.why} if question.why else {})}
        _show_to_caller(decision, message, events.RunInteractionRequest, {"kind": "approval", "payload": payload})


def why_forbidden(rules: Rules, message: Message, principal_of: PrincipalOf) -> str:
    """Why the principal at the root may not have this tool called now (S5); empty if they may, or it is no tool."""
    name, listener = message.root.principal, rules.listeners.get(message.to)
    if name is None or listener is None or message.reply or not rules.is_tool_call(message.sender, listener):
        return ""
    principal = principal_of(name)
    if principal is None:
        return f"This follows from an injection by the token {name!r}, which is not valid any more."
    if principal.tools is not None and message.to not in principal.tools:
        return f"The token {name!r}, from whose injection this follows, may not have {message.to} called."
    return ""


def read_before(message: Message, used: Confirmation) -> frozenset[str]:
    """Whose text had been read when the confirmed call was made first: of its own preview it is not tainted (S20).

    If it was shown to someone else, the one who confirms it has read what is in the message.
    """
    is_own = (used.thread, used.sender) == (message.thread.id, message.sender)
    return used.authors if is_own else message.authors


def is_tainted(state: State, message: Message, authors: frozenset[str]) -> bool:
    """Whether an agent that had read the text of others sent it, and nothing says ``taint: allow``; or passed it on.

    ``authors`` are those by whom it is judged.
    """
    if len(authors) < 2:  # noqa: PLR2004 - the agent, and somebody else
        return False
    listeners, taint = state.rules.listeners, state.config.taint
    sender = listeners.get(message.sender)
    agents = [message.sender] if sender is not None and sender.is_agent else authors
    return any((found := listeners.get(name)) is not None and found.asks_people(taint) for name in agents)


def rejection(verdict: Approval) -> ToolError:
    """What the caller is answered whose call was not approved."""
    if verdict.decision == "expired":
        return ToolError("forbidden", "Nobody approved this call in time.")
    comment = f": {verdict.comment}" if verdict.comment else "."
    return ToolError("forbidden", f"A person rejected this call{comment}")


# -- a person answers


def asked(message: Message, approval: str) -> Step | None:
    """The step in which a person is asked."""
    return next((step for step in (message.steps or {}).values() if step.approval == approval), None)


def edited(rules: Rules, listener: Listener, edits: object) -> object:
    """The payload as the person edited it. Raises ``InvalidPayload``."""
    payload = rules.codec.from_json(listener.payload_class.__name__, edits, rules.payload_limits(listener.name))
    if listener.check is not None:
        listener.check(payload)
    return payload


def digest_bound(rules: Rules, step: Step, asked_digest: str, edits: object) -> str:
    """The digest to which a decision is bound: of the edits, or of what was asked. Raises ``InvalidPayload``."""
    if edits is None:
        return asked_digest
    listener = rules.listeners.get(step.message.to)
    if step.number == CONSENT and listener is not None:
        edited(rules, listener, edits)
    return hashlib.sha256(canonical(edits)).hexdigest()


def resolve(decision: Decision, step: Step, asked_digest: str, command: ResolveApproval) -> None:
    """Record a person's decision. Raises ``InvalidPayload`` for edits that do not fit."""
    digest = digest_bound(decision.state.rules, step, asked_digest, command.edits)
    by = command.actor.user or command.actor.tenant
    thread = step.message.thread
    edits = Content(thread.owner, canonical(command.edits)) if command.edits is not None else None
    resolved = events.ApprovalResolved(step.approval, command.decision, command.comment, by, digest)
    decision.add(resolved, edits, thread.id)
    _answer(decision, step, Approval(command.decision, command.edits, command.comment, by))


def expire(decision: Decision, step: Step) -> None:
    """End a question that was not answered in time."""
    decision.add(events.ApprovalExpired(step.approval), thread=step.message.thread.id)
    _answer(decision, step, Approval("expired"))


def _answer(decision: Decision, step: Step, verdict: Approval) -> None:
    if step.number == CONSENT:
        _show_to_caller(decision, step.message, events.RunInteractionResponse, {"decision": verdict.decision})
    decision.record(step, None, Content(step.message.thread.owner, orjson.dumps(verdict)))


# -- the caller answers


def redeem(decision: Decision, message: Message, question: Question) -> Confirmation | ToolErrorCode:
    """Use the token that the message came with, once; gives what it confirms, or why it cannot be used."""
    found = decision.state.folded.confirmations.by_token.get(question.token)
    if found is not None and (found.used_by, found.digest) == (message.id, question.digest):
        return found  # an attempt after the first
    named = question.token, message.id, message.to
    usable = _usable(found, question.digest, decision.at)
    if isinstance(usable, Confirmation):
        decision.add(events.ConfirmRedeemed(*named))
    else:
        decision.add(events.ConfirmRefused(*named, usable))
    return usable


def _usable(found: Confirmation | None, digest: str, at: int) -> Confirmation | ToolErrorCode:
    if found is None or found.digest != digest:
        return "confirm_mismatch"
    if found.used_by:
        return "confirm_used"
    return found if found.is_open(at) else "confirm_expired"


def required(name: str, token: str, preview: object) -> ConfirmRequired:
    return ConfirmRequired(
        confirm_token=token,
        op=name,
        preview=orjson.dumps(_excerpt(preview)).decode(),
        message=f"Nothing is done yet. Call {name} again within {CONFIRM_SECONDS} seconds, with the same "
        "arguments and this confirm_token, if this is what shall be done.",
    )


def split_token(payload: Any) -> tuple[str, Any]:
    """The token, and the payload without it. A tool that is not ours finds it among its arguments, as text."""
    if not isinstance(payload, ToolArguments):
        return getattr(payload, CONFIRM_TOKEN), dataclasses.replace(payload, **{CONFIRM_TOKEN: ""})
    try:
        arguments = read_json(payload.json)
    except NotJson:
        return "", payload
    token = arguments.pop(CONFIRM_TOKEN, "") if isinstance(arguments, dict) else ""
    return str(token), ToolArguments(json.dumps(arguments, sort_keys=True, separators=(",", ":"), ensure_ascii=False))


def _excerpt(value: object) -> object:
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


# -- what the run that made the call shows


def _call_id(message: Message) -> str:
    return message.step.key if message.step is not None else ""


def _show_to_caller(decision: Decision, message: Message, entry: type[events.RunEvent], data: dict[str, Any]) -> None:
    """An entry of the run whose call the message is, under the call's id, if that run shows the call and goes on."""
    step, call_id = message.step, _call_id(message)
    if step is None or not call_id or step.message.id not in decision.state.folded.messages:
        return
    shown, thread = entry(step.message.id, step.message.to, call_id), step.message.thread
    decision.add(shown, Content(thread.owner, run_json({"id": call_id, **data})), thread.id)
