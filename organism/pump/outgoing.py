"""What a handler returned, checked before anything rests on it."""

from __future__ import annotations

from organism.model.handler import HandlerResponse


class WrongReturn(TypeError):
    """A handler returned something else than HandlerResponse, a list of them, or None."""


def outgoing(answer: object) -> tuple[HandlerResponse, ...]:
    """A handler's answer as responses. Raises ``WrongReturn``."""
    if answer is None:
        return ()
    if type(answer) is HandlerResponse and type(answer.to) is str:  # what nearly every handler gives
        return (answer,)
    found = answer if isinstance(answer, list) else [answer]
    for item in found:
        if not isinstance(item, HandlerResponse):
            came = "a list with other things in it" if found is answer else type(answer).__name__
            raise WrongReturn(f"A handler returns HandlerResponse, a list of them, or None; {came} came.")
        if item.to is not None and not isinstance(item.to, str):
            raise WrongReturn("The `to` of a HandlerResponse is the name of a listener, or None for the caller.")
    return tuple(found)
