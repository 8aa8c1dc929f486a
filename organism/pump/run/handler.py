"""The actor: one message → the handler's answer. The one place where a handler's exceptions end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from typing import Any

from organism.config.prompts import SERVED
from organism.config.settings import Listener
from organism.model.handler import HandlerMetadata, HandlerResponse
from organism.model.recorded import Recorded
from organism.pump.decide.ending import Failure
from organism.pump.run.gates import Withheld, admitted
from organism.pump.run.handling import Handling
from organism.pump.run.recall import Unreadable, payload_of
from organism.pump.run.steps import Steps
from organism.pump.wording import described

Responses = tuple[HandlerResponse, ...]


class WrongReturn(TypeError):
    """A handler returned something else than HandlerResponse, a list of them, or None."""


async def run(handling: Handling, finished: Callable[[Handling, Responses | Failure], None]) -> None:
    """Run the handler and call ``finished``. Whatever the handler raises ends here, ``SystemExit`` too (G7)."""
    if handling.dead:
        return
    outcome = await _outcome(handling)
    try:
        finished(handling, outcome)
    except Exception as error:  # noqa: BLE001 - a fault of the pump itself: recorded, and the state is folded again
        handling.runtime.on_broken(error)


async def _outcome(handling: Handling) -> Responses | Failure:
    message = handling.message
    SERVED.set(handling.rules.settings.prompts)  # the handling's task has a context of its own
    try:
        payload = message.payload
        if payload is None or message.generation != handling.rules.generation:
            payload = await payload_of(handling.runtime.log, handling.rules, message)
        message.payload = None
        return _plain(await _answer(handling, payload))
    except Unreadable as error:
        return Failure("schema_changed", str(error), is_final=True)
    except BaseException as error:  # noqa: BLE001 - recorded as the failure of this handling, whatever it is
        return Failure("wrong_return" if type(error) is WrongReturn else "handler_error", described(error))


async def _answer(handling: Handling, payload: Any) -> object:
    """What the handler gives, once what must be agreed to first is."""
    listener = handling.listener
    if listener.approval or listener.confirm or listener.destroys:
        payload = await admitted(handling, payload)
        if isinstance(payload, Withheld):
            return payload.answer
    if listener.handler is None:
        raise LookupError(f"{listener.name} has no handler, and no model runs it in this version.")
    metadata = Steps(handling)
    if listener.blocking:
        return await _in_thread(listener, payload, metadata)
    return await listener.handler(payload, metadata)


async def _in_thread(listener: Listener, payload: Any, metadata: HandlerMetadata) -> object:
    """Run a plain function in a thread of its own. One that never ends holds up nothing but itself."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[tuple[object, BaseException | None]] = loop.create_future()

    def settle(value: object, error: BaseException | None) -> None:
        if not ended.done():
            ended.set_result((value, error))

    def work() -> None:
        value, failure = None, None
        try:
            value = listener.handler(payload, metadata)  # type: ignore[misc]  # the caller has looked
        except BaseException as error:  # noqa: BLE001 - carried to the loop, where it is recorded
            failure = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, value, failure)

    context = copy_context()  # it has the prompts of its handling, as an async handler does
    threading.Thread(target=context.run, args=(work,), name=f"blocking-{listener.name}", daemon=True).start()
    answer, error = await ended
    if error is not None:
        raise error
    return answer


async def outcome_of(effect: Awaitable[Any]) -> tuple[Any, Exception | None]:
    """What an outside effect gave, or what it raised, which its step records."""
    try:
        return await effect, None
    except Exception as error:  # noqa: BLE001 - recorded as the step's error, whatever it is
        return None, error


def _plain(answer: object) -> Responses:
    """The answer in our own classes, since its own may raise anywhere. Raises ``WrongReturn``, and what they raise."""
    if answer is None:
        return ()
    if isinstance(answer, list):
        return tuple([_plain_response(item, "a list with other things in it") for item in answer])
    return (_plain_response(answer, type(answer).__name__),)


def _plain_response(item: object, came: str) -> HandlerResponse:
    if not isinstance(item, HandlerResponse):
        raise WrongReturn(f"A handler returns HandlerResponse, a list of them, or None; {came} came.")
    to, payload = item.to, item.payload
    type(payload).__name__  # noqa: B018 - the route asks for it, and a metaclass may raise
    if to is not None and not isinstance(to, str):
        raise WrongReturn("The `to` of a HandlerResponse is the name of a listener, or None for the caller.")
    if (type(item) is HandlerResponse or type(item) is Recorded) and (to is None or type(to) is str):
        return item
    return HandlerResponse(payload, None if to is None else str.__str__(to))
