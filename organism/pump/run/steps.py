"""Steps: what a running handler may do besides answering, each recorded as it happens and replayed from its record."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Unpack, cast
from uuid import UUID

import orjson

from organism.errors import InvalidPayload
from organism.events.vocabulary import StepError, StepKind, StepStarted
from organism.model.completion import ChatMessage, CompleteOptions, Completion
from organism.model.handler import (
    Approval,
    AskError,
    EffectError,
    EffectFailed,
    EffectKind,
    EffectUnknown,
    HandlerMetadata,
)
from organism.model.ids import token_of
from organism.model.thread import Step
from organism.pump.decide.control import canonical
from organism.pump.decide.respond import Outbox, unmended
from organism.pump.decide.route import GENERIC
from organism.pump.rules import Rules
from organism.pump.run import recall
from organism.pump.run.gates import Question, approved
from organism.pump.run.handling import Handling, step_digest
from organism.pump.stream import model_call as model_calls
from organism.pump.wording import described, json_of, shown

EFFECT_KINDS: Final = frozenset({"pure", "idempotent", "unsafe"})
LONGEST_SECONDS: Final = 3_153_600_000.0
"""A hundred years: who asks for longer waits for ever."""


class OutcomeUnknown(BaseException):
    """Nobody knows what became of an unsafe effect. Not an ``Exception``, so that no handler goes on after it."""


class Steps(HandlerMetadata):
    """A handling as its handler sees it."""

    __slots__ = ("_handling",)

    def __init__(self, handling: Handling) -> None:
        self._handling = handling

    @property
    def thread_id(self) -> str:
        message = self._handling.message
        return token_of(message.call.id if message.call is not None else message.id)

    @property
    def from_id(self) -> str:
        return self._handling.message.sender

    @property
    def own_name(self) -> str | None:
        listener = self._handling.listener
        return listener.name if listener.is_agent else None

    @property
    def is_self_call(self) -> bool:
        return self._handling.message.sender == self._handling.message.to

    @property
    def usage_instructions(self) -> str:
        handling = self._handling
        return handling.rules.usage(handling.listener) if handling.listener.is_agent else ""

    @property
    def todo_nudge(self) -> str:
        message, known = self._handling.message, self._handling.message.thread.todos or {}
        return "\n".join(
            f"{todo.description or todo.wait_for} (it came; send TodoComplete(id={todo.todo!r}) when done)"
            for todo in known.values()
            if todo.agent == message.to and todo.met
        )

    @property
    def attempt(self) -> int:
        return self._handling.attempt

    @property
    def deadline(self) -> datetime:
        handling = self._handling
        return datetime.fromtimestamp(handling.started_at / 1_000_000 + handling.listener.timeout_s, UTC)

    async def ask(self, to: str, payload: object, timeout: float | None = None, *, call_id: str = "") -> Any:
        # A subclass may raise in any method, and these are used inside a decision.
        to, call_id = str.__str__(to), str.__str__(call_id)
        handling = self._handling
        number = handling.next_number()
        digest = step_digest("ask", to, _json_or_repr(handling.rules, unmended(payload)[0]))
        step = handling.recorded(number, "ask", digest)
        if step is None:
            await handling.wait_while_paused()
            decision = handling.decide()
            seconds = timeout if timeout is not None else handling.rules.limits.ask_timeout_s
            expires = decision.at + int(min(seconds, LONGEST_SECONDS) * 1_000_000)
            named = handling.message.id, handling.message.to, number
            step = handling.begin_step(decision, StepStarted(*named, "ask", digest, key=call_id, expires=expires))
            handling.suspend(step)
            outbox = Outbox(decision, handling.message, handling.listener, handling.rules)
            refused = outbox.send(to, payload, step)
            if refused is not None:
                decision.record(step, StepError(refused.code, GENERIC[refused.code]))
            handling.runtime.write(decision)
        await handling.answer(step)
        if step.error is not None:
            raise AskError(step.error.code, step.error.message)  # type: ignore[arg-type]  # only such codes are recorded
        if step.result is None:
            if not step.is_written:
                await handling.runtime.settled()
            step.result = await recall.answer_of(handling.runtime.log, handling.rules, step)
        return step.result

    async def effect(self, key: str, fn: Callable[[str], Awaitable[Any]], kind: EffectKind = "idempotent") -> Any:
        key, kind = str.__str__(key), cast("EffectKind", str.__str__(kind))
        if kind not in EFFECT_KINDS:
            raise ValueError(f"kind is one of {', '.join(sorted(EFFECT_KINDS))}; {kind!r} came.")
        handling = self._handling
        number = handling.next_number()
        digest = step_digest("effect", kind, key.encode())
        step = handling.recorded(number, "effect", digest)
        if step is not None and step.ok is not None:
            _raise_failed(step)
            return await handling.result(step)
        if step is None and kind != "pure":
            decision = handling.decide()
            named = handling.message.id, handling.message.to, number
            handling.begin_step(decision, StepStarted(*named, "effect", digest, effect=kind, key=key))
            await handling.runtime.commit(decision)
        result, error = await handling.runtime.outcome_of(fn(f"{handling.message.id}/{key}"))
        if isinstance(error, EffectUnknown) and kind == "unsafe":
            raise OutcomeUnknown(str(error)) from error
        if error is not None:
            text = described(error)
            await handling.record(number, "effect", digest, None, StepError("effect_error", text))
            raise EffectError(text) from error
        try:
            json = json_of(result)
            _check_size(handling.rules, json)
        except (TypeError, ValueError) as unfit:
            text = f"The effect {key!r} gave a result that cannot be kept: {unfit}"
            await handling.record(number, "effect", digest, None, StepError("effect_failed", text))
            raise EffectFailed(text) from unfit
        await handling.record(number, "effect", digest, json)
        return orjson.loads(json)

    async def now(self) -> datetime:
        at = await self._value("now", self._handling.runtime.state.now)
        return datetime.fromtimestamp(at / 1_000_000, UTC)

    async def uuid(self) -> UUID:
        return UUID(hex=await self._value("uuid", lambda: self._handling.runtime.chance.randbytes(16).hex()))

    async def random(self) -> float:
        value: float = await self._value("random", self._handling.runtime.chance.random)
        return value

    async def _value(self, kind: StepKind, make: Callable[[], Any]) -> Any:
        handling = self._handling
        number = handling.next_number()
        digest = step_digest(kind, "", b"")
        step = handling.recorded(number, kind, digest)
        if step is not None:
            return await handling.result(step)
        value = make()
        await handling.record(number, kind, digest, orjson.dumps(value))
        return value

    async def approve(self, preview: Any) -> Approval:
        number = self._handling.next_number()
        json = canonical(preview)
        _check_size(self._handling.rules, json)
        return await approved(self._handling, number, Question(step_digest("approve", "", json), json))

    async def complete(self, messages: Sequence[ChatMessage], **options: Unpack[CompleteOptions]) -> Completion:
        return await model_calls.complete(self._handling, messages, options)

    async def emit(self, kind: str, data: Mapping[str, Any]) -> None:
        await self._handling.open_stream().emit(kind, data)


def _raise_failed(step: Step) -> None:
    if step.error is not None:
        kind = EffectFailed if step.error.code == "effect_failed" else EffectError
        raise kind(step.error.message)


def _json_or_repr(rules: Rules, payload: object) -> bytes:
    try:
        return rules.codec.json(payload)
    except (InvalidPayload, TypeError, ValueError):
        return shown(payload).encode()


def _check_size(rules: Rules, json: bytes) -> None:
    most = rules.limits.max_payload_bytes
    if len(json) > most:
        raise ValueError(f"{len(json)} bytes; limits.max_payload_bytes is {most}")
