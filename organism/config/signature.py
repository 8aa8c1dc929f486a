"""What a handler takes: read from its own signature, and told in words where it is not what the pump will call."""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType, SimpleNamespace
from typing import Any

from organism.config.foreign import attempt

_UNIONS = (typing.Union, types.UnionType)


@dataclass(slots=True)
class Signature:
    """The classes that a handler may receive, and what is wrong with it, in sentences."""

    accepts: frozenset[type] = frozenset()
    wrong: list[str] = field(default_factory=list)


def read_signature(handler: object, *, blocking: bool) -> Signature:
    """Check that ``handler`` is an ``async def (payload: …, metadata)``, or a plain ``def`` if ``blocking``.

    ``accepts`` are the classes that the first parameter's annotation names: one dataclass or a union of dataclasses.
    """
    if not isinstance(handler, FunctionType):
        wanted = "a plain `def`" if blocking else "an `async def`"
        kind = "a class" if isinstance(handler, type) else f"an object of the class {type(handler).__name__}"
        return Signature(wrong=[f"expected {wanted}, came {kind}"])
    wrong = [*_wrong_kind(handler, blocking), *_wrong_parameters(handler)]
    if wrong:
        return Signature(wrong=wrong)
    return _accepted(handler)


def _wrong_kind(handler: FunctionType, blocking: bool) -> list[str]:  # noqa: FBT001 - told by its caller's keyword
    name = handler.__name__
    if inspect.isasyncgenfunction(handler) or inspect.isgeneratorfunction(handler):
        return [f"`{name}` has a `yield` in it; a handler answers with `return`, once"]
    is_async = inspect.iscoroutinefunction(handler)
    if blocking and is_async:
        return [f"expected a plain `def {name}` for `blocking: true`, came an `async def`; remove one of the two"]
    if not blocking and not is_async:
        how = f"write `async def {name}`, or set `blocking: true` to run it in a thread of its own"
        return [f"expected an `async def`, came a plain `def`; {how}"]
    return []


def _wrong_parameters(handler: FunctionType) -> list[str]:
    signature = inspect.signature(handler)
    by_position = [
        each
        for each in signature.parameters.values()
        if each.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    ]
    takes_two = attempt(partial(signature.bind, None, None)).error is None and len(by_position) > 1
    if takes_two:
        return []
    names = ", ".join(str(each).partition(":")[0].partition("=")[0].strip() for each in signature.parameters.values())
    return [f"expected the parameters (payload, metadata), came `{handler.__name__}({names})`"]


def _accepted(handler: FunctionType) -> Signature:
    first = next(iter(inspect.signature(handler).parameters.values()))
    if first.annotation is inspect.Parameter.empty:
        how = f"write `{first.name}: YourPayload`: the annotation says what it may receive"
        return Signature(wrong=[f"the parameter `{first.name}` of `{handler.__name__}` has no annotation; {how}"])
    names = SimpleNamespace(__annotations__={"payload": first.annotation})
    scope = inspect.unwrap(handler).__globals__
    resolved = attempt(partial(typing.get_type_hints, names, scope))
    if resolved.result is None:
        return Signature(wrong=[f"the annotation `{first}` does not resolve at run time: {resolved.error}"])
    hint = resolved.result["payload"]
    members = typing.get_args(hint) if typing.get_origin(hint) in _UNIONS else (hint,)
    wrong = [_no_payload(member, first.name) for member in members if not is_payload(member)]
    return Signature(accepts=frozenset(member for member in members if is_payload(member)), wrong=wrong)


def is_payload(value: object) -> bool:
    """Whether it is a dataclass (not an instance of one)."""
    return isinstance(value, type) and dataclasses.is_dataclass(value)


def _no_payload(member: Any, parameter: str) -> str:
    name = member.__name__ if isinstance(member, type) else str(member)
    return f"the annotation of `{parameter}` names {name}; expected dataclasses, such as `Greeting | SystemError`"
