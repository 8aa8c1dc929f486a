"""A request, and how what came of it is judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from organism.model.completion import ChatMessage, ModelRequest
from organism.model.tool import ToolSpec
from organism.tools.arithmetic import Unfit, value_of
from tests.agents.providers.asking import Came

Call = tuple[str, Mapping[str, str]]


@dataclass(frozen=True)
class Case:
    """A request, what is wanted of it, and ``faults``: what is wrong with what came, a line each."""

    messages: Sequence[ChatMessage]
    wanted: object
    faults: Callable[[Came], Sequence[str]]
    tools: Sequence[ToolSpec] = ()
    response_format: Mapping[str, Any] | None = None

    @property
    def request(self) -> ModelRequest:
        return ModelRequest("tested", tuple(self.messages), tuple(self.tools), self.response_format)

    def told(self, came: Came) -> str:
        """What was asked, wanted, and came."""
        asked = " | ".join(str(message["content"]) for message in self.messages)
        calls = [(call.name, call.input) for call in came.calls]
        return (
            f"asked: {asked}\n  wanted: {self.wanted}\n  came: {calls or came.text}\n  {'; '.join(self.faults(came))}"
        )


def wrong_calls(wanted: Sequence[Call], came: Came) -> Sequence[str]:
    """What is wrong with the calls; in which order they come does not count."""
    left: list[tuple[str, Mapping[str, Any]]] = [(call.name, call.input or {}) for call in came.calls]
    missing = []
    for name, arguments in wanted:
        found = next((one for one in left if one[0] == name and _is_same(arguments, one[1])), None)
        if found is None:
            missing.append(f"missing {name} {arguments}")
        else:
            left.remove(found)
    return [*missing, *(f"needless {call}" for call in left)]


def _is_same(wanted: Mapping[str, str], came: Mapping[str, Any]) -> bool:
    return not set(came) - set(wanted) and all(is_right(value, came.get(name)) for name, value in wanted.items())


def is_right(wanted: str, came: object) -> bool:
    """Whether a wanted value came: sums and numbers by their value, texts without case and signs around them."""
    if isinstance(came, int | float) and not isinstance(came, bool):
        return abs(came - float(wanted)) < 1e-9
    if wanted.startswith("="):
        return _value(wanted[1:]) == _value(str(came))
    return _folded(came) in [_folded(one) for one in wanted.split("|")]


def _value(expression: str) -> object:
    try:
        return value_of(expression).number
    except Unfit:
        return expression


def _folded(value: object) -> str:
    return " ".join(str(value).casefold().split()).strip(" .,;:!?\"'“”„")
