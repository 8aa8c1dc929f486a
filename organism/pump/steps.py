"""Steps: what a running handler may do besides answering, each recorded as it happens.

A ``Handling`` is one run of a handler. A step that the log already holds gives its recorded result; one that does not
fit its record stops the handling. While a handler waits for an answer its slot is free and its line is open.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, cast
from uuid import UUID

import orjson

from organism.errors import InvalidPayload
from organism.model.completion import ChatMessage, CompleteOptions, Completion
from organism.model.events import Content
from organism.model.handler import Approval, AskError, EffectError, EffectFailed, EffectKind, EffectUnknown
from organism.model.thread import CONSENT, Step
from organism.pump import completing, recall, runs
from organism.pump.control import canonical
from organism.pump.handling import Run
from organism.pump.respond import send, told
from organism.pump.route import GENERIC
from organism.pump.rules import Rules
from organism.pump.wording import described, json_of, shown

EFFECT_KINDS: Final = frozenset({"pure", "idempotent", "unsafe"})
LONGEST_SECONDS: Final = 3_153_600_000.0
"""A hundred years: who asks for longer waits for ever."""


class OutcomeUnknown(BaseException):
    """Nobody knows what became of an unsafe effect. Not an ``Exception``, so that no handler goes on after it."""


class Handling(Run):
    """A run, with the steps that its handler may take."""

    __slots__ = ()

    async def ask(self, to: str, payload: object, timeout_s: float | None, call_id: str) -> Any:
        """See ``HandlerMetadata.ask``."""
        to = str.__str__(to)  # a subclass may raise in any method, and this one is used in the midst of a decision
        number = self.next_number()
        digest = _digest("ask", to, _json_or_repr(self.rules, told(payload)[0]))
        step = self.recorded(number, "ask", digest)
        if step is None:
            await self.gate()
            step = self._send_ask(_Ask(number, digest, to, payload, timeout_s, call_id))
        await self.answer(step)
        if step.error is not None:
            raise AskError(step.error["code"], step.error["message"])  # type: ignore[arg-type]  # only such codes are recorded
        if step.result is None:
            if not step.is_written:
                await self.pump.settled()
            step.result = await recall.answer_of(self.pump.log, self.rules, step)
        return step.result

    def _send_ask(self, ask: _Ask) -> Step:
        decision = self.decide()
        seconds = ask.timeout_s if ask.timeout_s is not None else self.rules.limits.ask_timeout_s
        more: dict[str, Any] = {"expires": decision.at + int(min(seconds, LONGEST_SECONDS) * 1_000_000)}
        if ask.call_id:
            more["key"] = ask.call_id
        step = self.begin(decision, ask.number, "ask", ask.digest, more)
        self.suspend(step)
        refused = send(decision, self, ask.to, ask.payload, step)
        if refused is not None:
            decision.record(step, {"code": refused.code, "message": GENERIC[refused.code]})
        self.pump.write(decision)
        self.pump.timers.add(step.expires, step)
        return step

    async def effect(self, key: str, fn: Callable[[str], Awaitable[Any]], kind: EffectKind) -> Any:
        """See ``HandlerMetadata.effect``."""
        key, kind = str.__str__(key), cast("EffectKind", str.__str__(kind))
        if kind not in EFFECT_KINDS:
            raise ValueError(f"kind is one of {', '.join(sorted(EFFECT_KINDS))}; {kind!r} came.")
        number = self.next_number()
        digest = _digest("effect", kind, key.encode())
        step = self.recorded(number, "effect", digest)
        if step is not None and step.ok is not None:
            _raise_failed(step)
            return await self.result(step)
        if step is None and kind != "pure":
            decision = self.decide()
            self.begin(decision, number, "effect", digest, {"effect": kind, "key": key})
            await self.pump.commit(decision)
        return await _run_effect(self, _Effect(number, digest, key, fn, kind))

    async def now(self) -> datetime:
        """See ``HandlerMetadata.now``."""
        at = await self._value("now", self.pump.state.now)
        return datetime.fromtimestamp(at / 1_000_000, UTC)

    async def uuid(self) -> UUID:
        """See ``HandlerMetadata.uuid``."""
        return UUID(hex=await self._value("uuid", lambda: self.pump.chance.bytes(16).hex()))

    async def random(self) -> float:
        """See ``HandlerMetadata.random``."""
        value: float = await self._value("random", self.pump.chance.number)
        return value

    async def _value(self, kind: str, make: Callable[[], Any]) -> Any:
        number = self.next_number()
        digest = _digest(kind, "", b"")
        step = self.recorded(number, kind, digest)
        if step is not None:
            return await self.result(step)
        value = make()
        await self.record(number, kind, digest, orjson.dumps(value))
        return value

    async def approve(self, preview: Any) -> Approval:
        """See ``HandlerMetadata.approve``."""
        number = self.next_number()
        json = canonical(preview)
        _check_size(self.rules, json)
        digest = _digest("approve", "", json)
        step = self.recorded(number, "approve", digest)
        if step is None:
            await self.gate()
            step = self.request_approval(number, digest, json)
        await self.answer(step)
        return Approval(**await self.result(step))

    def request_approval(
        self, number: int, digest: str, preview: bytes, payload_type: str | None = None, why: str = ""
    ) -> Step:
        """Ask a human. ``preview`` is canonical JSON; if it is a payload, ``payload_type`` is its class."""
        decision = self.decide()
        approval = decision.state.ids.approval()
        expires = decision.at + int(self.rules.limits.approval_expires_s * 1_000_000)
        step = self.begin(decision, number, "approve", digest, {"approval": approval, "expires": expires})
        message = self.message
        data = {
            "approval": approval,
            "message": message.id,
            "agent": message.to,
            "step": number,
            "digest": hashlib.sha256(preview).hexdigest(),
            "expires_at": expires,
        }
        if payload_type is not None:
            data["type"] = payload_type
        if why:
            data["why"] = why
        decision.add("approval_requested", data, Content(message.thread.id, preview))
        if number == CONSENT:
            runs.show_request(decision, message, orjson.loads(preview), why)
        self.suspend(step)
        self.pump.write(decision)
        self.pump.timers.add(expires, step)
        return step

    async def complete(self, messages: Sequence[ChatMessage], options: CompleteOptions) -> Completion:
        """See ``HandlerMetadata.complete``."""
        return await completing.complete(self, messages, options)

    def is_in_call(self) -> bool:
        """Whether a model speaks to it, or has spoken and nothing holds it up."""
        if self.story is None:
            return False
        message, line = self.message, self.message.line
        if self.story.calls or line.busy is message:
            return True
        return bool(line.is_kept_for(message)) and not self.pump.is_paused(message)

    async def emit(self, kind: str, data: Mapping[str, Any]) -> None:
        """See ``HandlerMetadata.emit``."""
        await runs.emit(self, kind, data)

    async def record(
        self, number: int, kind: str, digest: str, json: bytes | None, error: dict[str, str] | None = None
    ) -> None:
        """A step that nobody else answers has its result."""
        decision = self.decide()
        message = self.message
        step = (message.steps or {}).get(number) or Step(message, number, kind, digest)
        decision.record(step, error, Content(message.thread.id, json) if json is not None else None)
        await self.pump.commit(decision)

    async def result(self, step: Step) -> Any:
        """A step's recorded JSON. It may have been decided just now and be still on its way to the disk."""
        if not step.is_written:
            await self.pump.settled()
        return await recall.result_of(self.pump.log, step)


class _Ask(NamedTuple):
    """A request that is to be sent, as a step."""

    number: int
    digest: str
    to: str
    payload: object
    timeout_s: float | None
    call_id: str


class _Effect(NamedTuple):
    """An outside effect that is to run, as a step."""

    number: int
    digest: str
    key: str
    fn: Callable[[str], Awaitable[Any]]
    kind: EffectKind


async def _run_effect(handling: Handling, effect: _Effect) -> Any:
    number, digest, key, fn, _ = effect
    result, error = await handling.pump.outcome_of(fn(f"{handling.message.id}/{key}"))
    if isinstance(error, EffectUnknown) and effect.kind == "unsafe":
        raise OutcomeUnknown(str(error)) from error
    if error is not None:
        text = described(error)
        await handling.record(number, "effect", digest, None, {"code": "effect_error", "message": text})
        raise EffectError(text) from error
    try:
        json = json_of(result)
        _check_size(handling.rules, json)
    except (TypeError, ValueError) as unfit:
        text = f"The effect {key!r} gave a result that cannot be kept: {unfit}"
        await handling.record(number, "effect", digest, None, {"code": "effect_failed", "message": text})
        raise EffectFailed(text) from unfit
    await handling.record(number, "effect", digest, json)
    return orjson.loads(json)


def _raise_failed(step: Step) -> None:
    if step.error is not None:
        kind = EffectFailed if step.error["code"] == "effect_failed" else EffectError
        raise kind(step.error["message"])


def _json_or_repr(rules: Rules, payload: object) -> bytes:
    try:
        return rules.codec.json(payload)
    except (InvalidPayload, TypeError, ValueError):
        return shown(payload).encode()


def _check_size(rules: Rules, json: bytes) -> None:
    most = rules.limits.max_payload_bytes
    if len(json) > most:
        raise ValueError(f"{len(json)} bytes; limits.max_payload_bytes is {most}")


def _digest(kind: str, detail: str, body: bytes) -> str:
    """The digest of a step's input, by which a replay is held to its record."""
    return hashlib.sha256(b"\0".join((kind.encode(), detail.encode(), body))).hexdigest()[:32]
