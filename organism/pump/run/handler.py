"""Handlers: one message → the handler's answer. A handler's exceptions end here and nowhere else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from structlog.contextvars import bind_contextvars

from organism.config.foreign_code import attempt, described
from organism.config.prompts import SERVED
from organism.config.settings import Listener
from organism.config.tracebacks import lines_of_error
from organism.model.completion import CompleteError
from organism.model.handler import AskError, HandlerMetadata, HandlerResponse, NonRetryable
from organism.model.thread import Message
from organism.model.tool import Confirmed, Previewed
from organism.pump.decide.ending import Failure
from organism.pump.decide.respond import Recorded
from organism.pump.run.admission import Withheld, admitted, refused
from organism.pump.run.branches import Branch, InBranch
from organism.pump.run.handling import Handling, Unreadable
from organism.pump.run.steps import Services, Steps

Responses = tuple[HandlerResponse, ...]


class WrongReturn(TypeError):
    """A handler returned something else than HandlerResponse, a list of them, or None."""


async def run(
    handling: Handling, services: Services, finished: Callable[[Handling, Responses | Failure], None]
) -> None:
    """Run the handler and call ``finished``. Whatever the handler raises ends here, ``SystemExit`` too (G7)."""
    if handling.dead:
        return
    finished(handling, await _outcome(handling, services))


async def _outcome(handling: Handling, services: Services) -> Responses | Failure:
    SERVED.set(handling.rules.settings.prompts)  # the handling's task has a context of its own
    message = handling.message
    bind_contextvars(agent=message.to, thread_id=message.thread.id, message_id=message.id)  # of what its code logs
    try:
        payload = await handling.payload()
        return _plain(await _answer(handling, services, payload))
    except Unreadable as error:
        return Failure("schema_changed", str(error), is_final=True)
    except BaseException as error:  # noqa: BLE001 - recorded as the failure of this handling, whatever it is
        return _failure(handling, error)


def _failure(handling: Handling, error: BaseException) -> Failure:
    """What an exception means for the handling. What failed with another's failure had that one's attempts."""
    kind, root = type(error), attempt(lambda: _root_of(error, handling.message)).result or ""
    is_refused = attempt(lambda: isinstance(error, CompleteError) and error.is_final).result is True
    return Failure(
        "wrong_return" if kind is WrongReturn else "handler_error",
        described(error),
        is_final=bool(root) or is_refused or kind is WrongReturn or issubclass(kind, NonRetryable),
        traceback=lines_of_error(error, handling.rules.settings.modules),
        root=root,
    )


def _root_of(error: BaseException, message: Message) -> str:
    """The open dead letter that an ask of the message failed with, and the error comes from; empty if it does not."""
    letters = {step.error.dead_letter for step in (message.steps or {}).values() if step.error is not None}
    ahead, seen = [error], set[int]()
    while ahead:
        each = ahead.pop()
        if isinstance(each, AskError) and each.dead_letter in letters:
            return each.dead_letter
        seen.add(id(each))
        inner = each.exceptions if isinstance(each, BaseExceptionGroup) else ()
        before = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
        ahead += [other for other in (before, *inner) if other is not None and id(other) not in seen]
    return ""


async def _answer(handling: Handling, services: Services, payload: Any) -> object:
    """The handler's answer, after the gates."""
    listener, confirmed = handling.listener, None
    if (forbidden := refused(handling, services.principal_of)) is not None:
        return forbidden
    if listener.approval or listener.confirm or listener.destroys:
        found = await admitted(handling, services.chance, payload)
        if isinstance(found, Withheld):
            return found.answer
        payload, _, confirmed = found
        if (forbidden := refused(handling, services.principal_of)) is not None:  # a person may have taken an hour
            return forbidden
    if listener.handler is None:
        raise LookupError(f"{listener.name} has no handler: name one in organism.yaml, or a `prompt` for a model.")
    metadata = Steps(handling, services)
    if listener.blocking:
        handling.waits_for_thread = True
        async with services.threads:
            handling.waits_for_thread = False
            return await _in_thread(listener, payload, metadata)
    return await InBranch(handling.numbering, Branch(handling.results), _called(listener, payload, metadata, confirmed))


async def _called(listener: Listener, payload: Any, metadata: HandlerMetadata, confirmed: Confirmed | None) -> object:
    """What the handler's own code answers."""
    if isinstance(listener.handler, Previewed) and confirmed is not None:
        return await listener.handler.act(payload, metadata, confirmed)
    return await listener.handler(payload, metadata)  # type: ignore[misc]  # the caller has looked


async def _in_thread(listener: Listener, payload: Any, metadata: HandlerMetadata) -> object:
    """Run a plain function in a thread of its own. One that never ends blocks only itself."""
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

    context = copy_context()  # it sees the prompts of its handling, as an async handler does
    threading.Thread(target=context.run, args=(work,), name=f"blocking-{listener.name}", daemon=True).start()
    answer, error = await ended
    if error is not None:
        raise error
    return answer


def _plain(answer: object) -> Responses:
    """The answer as our own classes: the handler's may raise anywhere. Raises ``WrongReturn``, and what they raise."""
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
