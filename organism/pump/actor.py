"""The actor: one message at a time → the handler's answer. The one place where a handler's exceptions end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextvars import copy_context
from typing import Any, Protocol, TypeVar

from organism.config.served import SERVED
from organism.log.log import Log
from organism.model.handler import HandlerMetadata, HandlerResponse
from organism.pump import confirm, consent
from organism.pump.outgoing import Failure, failure_of, outgoing
from organism.pump.recall import Unreadable, payload_of
from organism.pump.situation import Situation
from organism.pump.steps import Handling

T = TypeVar("T")


class Stop(Protocol):
    """What the actor tells the pump."""

    log: Log
    on_broken: Callable[[BaseException], None]

    def finished(self, handling: Handling, responses: tuple[HandlerResponse, ...]) -> None:
        """The handler gave its answer."""

    def failed(self, handling: Handling, failure: Failure) -> None:
        """The handler raised."""

    def park(self, handling: Handling, code: str, reason: str) -> None:
        """The message can't be handled."""


async def run(pump: Stop, handling: Handling) -> None:
    """Run the handler to its end and tell the pump. Whatever the handler raises ends here, ``SystemExit`` too (G7).

    A fault of the pump itself makes it fold its state anew.
    """
    if handling.dead:
        return
    message = handling.message
    served = SERVED.set(handling.rules.settings.prompts)
    try:
        try:
            payload = message.payload
            if payload is None or message.generation != handling.rules.generation:
                payload = await payload_of(pump.log, handling.rules, message)
            message.payload = None
            if handling.handler is None:
                answer = await _otherwise(handling, payload)
            else:
                answer = await handling.handler(payload, HandlerMetadata(Situation(handling), handling))
            responses = outgoing(answer)
        except BaseException as error:  # noqa: BLE001 - recorded as the failure of this handling, whatever it is
            _failed(pump, handling, error)
        else:
            if not handling.dead:
                pump.finished(handling, responses)
    except Exception as error:  # noqa: BLE001 - given to whoever folds the state anew, who records it
        pump.on_broken(error)
    finally:
        SERVED.reset(served)


def _failed(pump: Stop, handling: Handling, error: BaseException) -> None:
    if handling.dead:
        return
    if type(error) is Unreadable:
        pump.park(handling, "schema_changed", str(error))
    else:
        pump.failed(handling, failure_of(error))


def guarded(act: Callable[[T], None], broken: Callable[[T, Exception], None], unit: T) -> None:
    """Do what a unit on disk makes possible; a fault of the pump itself makes it fold its state anew."""
    try:
        act(unit)
    except Exception as error:  # noqa: BLE001 - given to whoever folds the state anew, who records it
        broken(unit, error)


OutcomeOf = Callable[[Awaitable[Any]], Coroutine[Any, Any, tuple[Any, Exception | None]]]


async def outcome_of(effect: Awaitable[Any]) -> tuple[Any, Exception | None]:
    """What an outside effect gave, or what it raised, which its step records."""
    try:
        return await effect, None
    except Exception as error:  # noqa: BLE001 - recorded as the step's error, whatever it is
        return None, error


async def _otherwise(handling: Handling, payload: Any) -> object:
    """Run a handler that is not simply called: one that asks first, one with a thread of its own."""
    listener = handling.listener
    if listener.confirm and not handling.message.reply:
        payload = await confirm.asked(handling, payload)
    if not handling.message.reply and not isinstance(payload, consent.Withheld):
        payload = await consent.asked(handling, payload)
    if isinstance(payload, consent.Withheld):
        return payload.answer
    if listener.handler is None or listener.blocking:
        return await _in_thread(handling, payload)
    return await listener.handler(payload, HandlerMetadata(Situation(handling), handling))


async def _in_thread(handling: Handling, payload: Any) -> object:
    """Run a plain function in a thread of its own. One that never ends holds up nobody but itself."""
    handler, metadata = handling.listener.handler, HandlerMetadata(Situation(handling), handling)
    if handler is None:
        raise LookupError(f"{handling.listener.name} has no handler, and no model runs it in this version.")
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[tuple[object, BaseException | None]] = loop.create_future()

    def settle(value: object, error: BaseException | None) -> None:
        if not ended.done():
            ended.set_result((value, error))

    def work() -> None:
        value, failure = None, None
        try:
            value = handler(payload, metadata)
        except BaseException as error:  # noqa: BLE001 - carried to the loop, where it is recorded
            failure = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, value, failure)

    context = copy_context()  # it has the prompts of its handling, as an async handler does
    threading.Thread(target=context.run, args=(work,), name=f"blocking-{handling.message.id}", daemon=True).start()
    answer, error = await ended
    if error is not None:
        raise error
    return answer
