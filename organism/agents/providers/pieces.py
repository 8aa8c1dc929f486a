"""What comes in pieces, or in odd forms, in both APIs: tool calls, counts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from uuid import uuid4

import orjson

from organism.agents.providers.failures import Failures
from organism.model.completion import (
    Finish,
    FinishReason,
    Part,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    Usage,
    whole_characters,
)

MOST_TOKENS: Final = 10**12
MOST_USD: Final = 10**6


@dataclass(slots=True)
class CallInPieces:
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def is_complete(self) -> bool:
        return arguments_of(self.text) is not None if self.pieces else False

    def add(self, characters: str) -> None:
        if characters:
            self.pieces.append(characters)


class AnswerInPieces:
    """The tool calls of one answer, and its end. Calls without an id of their own get one with this ``prefix``."""

    def __init__(self, failures: Failures, prefix: str) -> None:
        self.calls: list[CallInPieces] = []
        self._failures = failures
        self._prefix = prefix

    def end(self, usage: Usage | None, finish: FinishReason | None) -> Iterator[Part]:
        """The last parts. Without ``finish`` the model ended as it was meant to."""
        calls = list(self._whole_calls())
        if not all(call.name for call in calls):
            raise self._failures.malformed("with a tool call that names no tool")
        yield from calls
        if usage is not None:
            yield usage
        yield Finish(finish or ("tool_calls" if calls else "stop"))

    def _whole_calls(self) -> Iterator[ToolCall]:
        seen: set[str] = set()
        for call in self.calls:
            text, id_ = whole_characters(call.text), whole_characters(call.id)
            id_ = id_ if id_ and id_ not in seen else f"{self._prefix}_{uuid4().hex}"
            seen.add(id_)
            given = arguments_of(text) if text.strip() not in {"", "null"} else {}
            yield ToolCall(id_, whole_characters(call.name), given, text if given is None else None)


def deltas(thought: str, text: str) -> Iterator[Part]:
    """The parts of the next piece of thought and of text."""
    if thought:
        yield ThoughtDelta(thought)
    if text:
        yield TextDelta(text)


def arguments_text(arguments: Any) -> str:
    """Arguments as characters; some servers give the JSON that they are, or none at all."""
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None or arguments == {} else json.dumps(arguments)


def arguments_of(text: str) -> dict[str, Any] | None:
    try:
        value = orjson.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def tokens(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_TOKENS:
        return None
    return int(value) if value == int(value) else None


def dollars(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        cost = Decimal(str(value))
    except InvalidOperation:
        return None
    return cost if cost.is_finite() and 0 <= cost <= MOST_USD else None


def usage_of(counts: Mapping[str, Any], given: int | None, written: int | None) -> Usage | None:
    """The usage with these tokens and the cost in ``counts``, or None unless both are known."""
    if given is None or written is None:
        return None
    return Usage(given, written, dollars(counts.get("cost")))
