"""What a handler may do meanwhile: steps, recorded when they happen and replayed from their records."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Any, Final, NamedTuple, TypeVar, Unpack, cast
from uuid import UUID

import msgspec
import orjson
from anyio import CapacityLimiter

from organism.config.foreign_code import described, json_of, shown
from organism.config.tracebacks import lines_of_error
from organism.errors import InvalidPayload
from organism.events import vocabulary as events
from organism.model.completion import ChatMessage, CompleteError, CompleteOptions, Completion
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
from organism.pump.decide import gates, spend
from organism.pump.decide.ending import Failure
from organism.pump.decide.gates import Question, canonical
from organism.pump.decide.respond import Outbox, payload_and_notes
from organism.pump.decide.spend import ModelCall
from organism.pump.history import Histories
from organism.pump.prompt import PromptMessage
from organism.pump.rules import GENERIC, Rules
from organism.pump.run import model_call, session_turn
from organism.pump.run.feed import Feed
from organism.pump.run.handling import CANCELLED, CalledStep, Handling, step_digest
from organism.pump.run.model_call import Models, RunningCall
from organism.pump.run.run_stream import RunStream

EFFECT_KINDS: Final = frozenset({"pure", "idempotent", "unsafe"})
LONGEST_SECONDS: Final = 3_153_600_000.0
"""A hundred years: longer timeouts are cut to this."""
PAYLOADS_AN_ENTRY: Final = 4
"""The size of an entry, in units of ``limits.max_payload_bytes``: a payload written out as text is longer."""

T = TypeVar("T")


class Services(NamedTuple):
    """What the handlers of a tenant share."""

    models: Models
    feed: Feed
    chance: Random
    histories: Histories
    principal_of: gates.PrincipalOf
    threads: CapacityLimiter  # for blocking handlers, of all tenants


class Steps(HandlerMetadata):
    """A handling as its handler sees it."""

    __slots__ = ("_handling", "_services")

    def __init__(self, handling: Handling, services: Services) -> None:
        self._handling = handling
        self._services = services

    @property
    def thread_id(self) -> str:
        return self._handling.message.thread.id

    @property
    def call_id(self) -> str:
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
        return self._handling.message.starts

    @property
    def deadline(self) -> datetime:
        handling = self._handling
        return datetime.fromtimestamp(handling.started_at / 1_000_000 + handling.listener.timeout_s, UTC)

    def ask(
        self, to: str, payload: object, timeout: float | None = None, *, tool_call_id: str = ""
    ) -> Coroutine[Any, Any, Any]:
        # A subclass may raise in any method, and these are used inside a decision.
        to, tool_call_id = str.__str__(to), str.__str__(tool_call_id)
        handling = self._handling
        digest = step_digest("ask", to, _json_or_repr(handling.rules, payload_and_notes(payload)[0]))
        seconds = timeout if timeout is not None else handling.rules.limits.ask_timeout_s
        called = handling.call("ask", digest)._replace(key=tool_call_id, to=to)
        return handling.carry_out(self._ask(called, to, payload, min(seconds, LONGEST_SECONDS)))

    async def _ask(self, called: CalledStep, to: str, payload: object, seconds: float) -> Any:
        handling = self._handling
        number, step = handling.find(called)
        if step is None:
            await handling.wait_while_paused()
            asked_first = await handling.asked_first()
            decision = handling.decide()
            expires = decision.at + int(seconds * 1_000_000)
            begun = msgspec.structs.replace(handling.started(number, called), expires=expires)
            step = handling.begin_step(decision, begun)
            handling.suspend(step)
            outbox = Outbox(decision, handling.message, handling.listener, handling.rules, asked_first)
            refused = outbox.send(to, payload, step)
            if refused is not None:
                decision.record(
                    step, events.StepError(refused.code, GENERIC[refused.code], dead_letter=refused.dead_letter)
                )
            handling.writer.write(decision)
        return await handling.given(step, partial(self._reply, to))

    async def _reply(self, to: str, step: Step) -> Any:
        if step.error is not None:
            error = step.error
            sent, letter = step.request or error.dead_letter, error.dead_letter
            raise AskError(
                error.code,  # type: ignore[arg-type]  # only such codes are recorded
                error.message,
                listener=to,
                message_id=sent,
                cause=error.cause,
                dead_letter=letter,
            )
        values = self._handling.values
        if step.number not in values:
            values[step.number] = await self._handling.reply(step)
        return values[step.number]

    def effect(
        self, key: str, fn: Callable[[str], Awaitable[Any]], kind: EffectKind = "idempotent"
    ) -> Coroutine[Any, Any, Any]:
        key, kind = str.__str__(key), cast("EffectKind", str.__str__(kind))
        if kind not in EFFECT_KINDS:
            raise ValueError(f"kind is one of {', '.join(sorted(EFFECT_KINDS))}; {kind!r} came.")
        digest = step_digest("effect", kind, key.encode())
        called = self._handling.call("effect", digest)._replace(effect=kind, key=key)
        return self._handling.carry_out(self._effect(called, key, fn, kind))

    async def _effect(self, called: CalledStep, key: str, fn: Callable[[str], Awaitable[Any]], kind: EffectKind) -> Any:
        handling = self._handling
        number, step = handling.find(called)
        if step is not None and step.ok is not None:
            return await handling.given(step, self._effect_result)
        try:
            if step is None and kind != "pure":
                decision = handling.decide()
                handling.begin_step(decision, handling.started(number, called))
                await handling.writer.commit(decision)
            result, error = await outcome_of(fn(f"{handling.message.effects_key}/{key}"))
        except asyncio.CancelledError:
            self._effect_cancelled(number, called, kind)
            raise
        if isinstance(error, EffectUnknown) and kind == "unsafe":
            lines = lines_of_error(error, handling.rules.settings.modules)
            handling.fail(Failure("handler_error", f"OutcomeUnknown: {error}", traceback=lines))
        if error is not None:
            text = described(error)
            await handling.record(number, called, None, events.StepError("effect_error", text))
            raise EffectError(text) from error
        try:
            json = json_of(result)
            _check_size(handling.rules, json)
        except (TypeError, ValueError) as unfit:
            text = f"The effect {key!r} gave a result that cannot be kept: {unfit}"
            await handling.record(number, called, None, events.StepError("effect_failed", text))
            raise EffectFailed(text) from unfit
        await handling.record(number, called, json)
        return orjson.loads(json)

    def _effect_cancelled(self, number: int, called: CalledStep, kind: EffectKind) -> None:
        """The handler's code cancels the effect, or the handling is over, which records nothing."""
        handling = self._handling
        if handling.dead:
            return
        step = (handling.message.steps or {}).get(number)
        if step is not None and kind == "unsafe":
            text = "OutcomeUnknown: The handler's code cancelled an unsafe effect that had begun."
            handling.fail(Failure("handler_error", text, traceback=handling.lines()))
        decision = handling.decide()
        handling.add_record(decision, number, called, None, CANCELLED)
        handling.writer.write(decision)

    async def _effect_result(self, step: Step) -> Any:
        if step.error is not None:
            kind = EffectFailed if step.error.code == "effect_failed" else EffectError
            raise kind(step.error.message)
        return await self._handling.result(step)

    def now(self) -> Coroutine[Any, Any, datetime]:
        return self._value("now", self._handling.writer.state.now, _time_of)

    def uuid(self) -> Coroutine[Any, Any, UUID]:
        return self._value("uuid", lambda: self._services.chance.randbytes(16).hex(), UUID)

    def random(self) -> Coroutine[Any, Any, float]:
        return self._value("random", self._services.chance.random, float)

    def _value(
        self, kind: events.StepKind, make: Callable[[], Any], decode: Callable[[Any], T]
    ) -> Coroutine[Any, Any, T]:
        called = self._handling.call(kind, step_digest(kind, "", b""))
        return self._handling.carry_out(self._made(called, make, decode))

    async def _made(self, called: CalledStep, make: Callable[[], Any], decode: Callable[[Any], T]) -> T:
        handling = self._handling
        number, step = handling.find(called)
        if step is not None:
            return decode(await handling.given(step, handling.result))
        value = make()
        await handling.record(number, called, orjson.dumps(value))
        return decode(value)

    def approve(self, preview: Any) -> Coroutine[Any, Any, Approval]:
        handling = self._handling
        json = canonical(preview)
        _check_size(handling.rules, json)
        called = handling.call("approve", step_digest("approve", "", json))
        return handling.carry_out(self._approve(called, json))

    async def _approve(self, called: CalledStep, json: bytes) -> Approval:
        handling = self._handling
        number, _ = handling.find(called)
        seconds = handling.rules.limits.approval_expires_s
        return await handling.approved(Question(called.digest, json, seconds, step=number), called.place)

    def complete(
        self, messages: Sequence[ChatMessage], **options: Unpack[CompleteOptions]
    ) -> Coroutine[Any, Any, Completion]:
        handling = self._handling
        model_call.check(messages, options)
        handling.branch()  # histories are for the loop's thread alone
        try:
            prompt = self._services.histories.prompt(session_turn.session(handling.message), messages)
            digest = model_call.call_digest(handling.listener.model, prompt, options)
        except TypeError as error:
            raise ValueError(f"The call cannot be written as JSON: {error}.") from error
        block = options.get("block", "")
        if handling.stream is not None and block:
            handling.stream.require_free(block)
        model = options.get("model") or handling.listener.model or ""
        called = handling.call("complete", digest)._replace(model=model)
        return handling.carry_out(self._complete(called, prompt, options))

    async def _complete(
        self, called: CalledStep, prompt: Sequence[PromptMessage], options: CompleteOptions
    ) -> Completion:
        handling = self._handling
        number, step = handling.find(called)
        if step is None or step.ok is None:
            call = ModelCall(handling.message, handling.listener, number, prompt, options)
            await handling.results.during(self._services.models.prepare(call))
            await handling.wait_while_paused(reserves_line=True)
            step = self._begin_call(call, called)
        return await handling.given(step, self._completion)

    async def _completion(self, step: Step) -> Completion:
        handling = self._handling
        if step.error is not None:
            failed = step.error
            raise CompleteError(
                failed.code,  # type: ignore[arg-type]  # only such codes are recorded
                failed.message,
                is_final=failed.is_final,
                retry_after_s=failed.retry_after_s,
            )
        if step.number not in handling.values:
            handling.values[step.number], shown_in = await handling.completion(step)
            if shown_in:
                self._open_stream().passed("message", shown_in)
        answer: Completion = handling.values[step.number]
        return answer

    def _begin_call(self, call: ModelCall, called: CalledStep) -> Step:
        """Reserve what the call may use; make the call once that is on disk."""
        handling = self._handling
        decision = handling.decide()
        step = handling.begin_step(decision, handling.started(call.step, called))
        handling.suspend(step)
        try:
            self._services.models.reserve(decision, call)
        except CompleteError as refused:
            spend.settle_lost(decision, call.message, call.step)
            error = events.StepError(
                refused.code, refused.message, is_final=refused.is_final, retry_after_s=refused.retry_after_s
            )
            decision.record(step, error)
            handling.writer.write(decision)
        else:
            running = RunningCall(self._services.models, handling.writer, self._open_stream(), call, step)
            handling.writer.write(decision, running.on_disk)
        return step

    def history(self) -> Coroutine[Any, Any, Sequence[Mapping[str, Any]]]:
        handling = self._handling
        return handling.carry_out(handling.results.during(session_turn.history(handling, self._services.histories)))

    def steered(self) -> Coroutine[Any, Any, Sequence[Any]]:
        handling = self._handling
        called, has_passed = handling.look("steer", session_turn.DIGEST)
        return handling.carry_out(session_turn.steered(handling, called, has_passed=has_passed))

    def emit(self, kind: str, data: Mapping[str, Any]) -> Coroutine[Any, Any, None]:
        handling = self._handling
        return handling.carry_out(handling.results.during(self._open_stream().emit(kind, data)))

    def _open_stream(self) -> RunStream:
        """The stream of the handling's run, made on first use. Raises ``CancelledError`` once the handling is over."""
        handling = self._handling
        if handling.dead:
            raise asyncio.CancelledError
        if handling.stream is None:
            most_bytes = PAYLOADS_AN_ENTRY * handling.rules.limits.max_payload_bytes
            handling.stream = RunStream(handling.writer, self._services.feed, handling.message, most_bytes)
        return handling.stream


async def outcome_of(effect: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    """The result of an outside effect, or its exception; its step records either."""
    try:
        return await effect, None
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        return None, error  # the effect's own: the handler is not cancelled
    except Exception as error:  # noqa: BLE001 - recorded as the step's error, whatever it is
        return None, error


def _time_of(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1_000_000, UTC)


def _json_or_repr(rules: Rules, payload: object) -> bytes:
    try:
        return rules.codec.json(payload)
    except (InvalidPayload, TypeError, ValueError):
        return shown(payload).encode()


def _check_size(rules: Rules, json: bytes) -> None:
    most = rules.limits.max_payload_bytes
    if len(json) > most:
        raise ValueError(f"{len(json)} bytes; limits.max_payload_bytes is {most}")
