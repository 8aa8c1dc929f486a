"""What came back from a handler, as plain data that nobody needs to mistrust.

Its own classes may lie and raise in every method, so each of them is called here, where that is the handler's fault:
in the midst of a decision it would part the state from the log. Payloads are made plain by ``respond.seal``.
"""

from __future__ import annotations

from typing import NamedTuple

from organism.model.fact import Recorded
from organism.model.handler import HandlerResponse
from organism.pump.wording import described


class WrongReturn(TypeError):
    """A handler returned something else than HandlerResponse, a list of them, or None."""


class Failure(NamedTuple):
    """Why a handling failed: the ``code`` and the text of its dead letter, should it become one."""

    code: str
    text: str


def failure_of(error: BaseException) -> Failure:
    """What a handler raised, or why its answer is none."""
    return Failure("wrong_return" if type(error) is WrongReturn else "handler_error", described(error))


def outgoing(answer: object) -> tuple[HandlerResponse, ...]:
    """A handler's answer as responses. Raises ``WrongReturn``, and whatever the answer's own code raises."""
    if answer is None:
        return ()
    if isinstance(answer, list):
        return tuple([_plain(item, "a list with other things in it") for item in answer])
    return (_plain(answer, type(answer).__name__),)


def _plain(item: object, came: str) -> HandlerResponse:
    if not isinstance(item, HandlerResponse):
        raise WrongReturn(f"A handler returns HandlerResponse, a list of them, or None; {came} came.")
    to, payload = item.to, item.payload
    type(payload).__name__  # noqa: B018 - the route asks for it, and a metaclass may raise
    if to is not None and not isinstance(to, str):
        raise WrongReturn("The `to` of a HandlerResponse is the name of a listener, or None for the caller.")
    if (type(item) is HandlerResponse or type(item) is Recorded) and (to is None or type(to) is str):
        return item
    return HandlerResponse(payload, None if to is None else str.__str__(to))
