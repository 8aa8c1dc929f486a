"""What a model asks for in one answer: its calls, told as such or written into its text, each under its own id."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from organism.agents.function_names import MOST_CHARS
from organism.agents.functions import Function, Functions
from organism.agents.outside import Outside
from organism.agents.written_calls import written_calls
from organism.agents.written_document import written_document
from organism.codec import Codec, repair_json
from organism.model.completion import Completion, ToolCall

_FOREIGN: Final = re.compile(r"[^a-zA-Z0-9_-]")
NAMELESS: Final = "unnamed"


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that the model asks for. ``call`` is as it goes back to the model; ``notes`` say what was mended.

    ``function`` is None where there is none of that name; ``said`` is the name as the model wrote it.
    """

    call: ToolCall
    said: str
    function: Function | None
    notes: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """Whom it is for, as people know it."""
        return self.function.to if self.function is not None else self.call.name


@dataclass(frozen=True, slots=True)
class Spoken:
    """An answer of a model: its text without the calls that stood in it, and its calls in their order."""

    text: str
    asked: tuple[Asked, ...]


class CallIds:
    """The ids of a run's calls: the model's own where they are given once, else new ones, the same in each replay."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, wanted: str, round_number: int) -> str:
        """An id that no other call of the run has."""
        found, number = wanted, 0
        while not found or found in self._taken:
            number += 1
            found = f"call_{round_number}_{number}"
        self._taken.add(found)
        return found


@dataclass(frozen=True, slots=True)
class CallReader:
    """Reads the calls of one agent's model."""

    functions: Functions
    codec: Codec

    def read(self, completion: Completion, outside: Outside, ids: CallIds, round_number: int) -> Spoken:
        """What the answer asks for. A text that is taken for calls is so only if the model told none."""
        told: list[tuple[ToolCall, tuple[str, ...]]] = [(call, ()) for call in completion.tool_calls]
        text = completion.text
        if not told and self.functions.specs:
            text, told = self._written(text, outside)
        return Spoken(text, tuple(self._asked(each, ids, round_number) for each in told))

    def _written(self, text: str, outside: Outside) -> tuple[str, list[tuple[ToolCall, tuple[str, ...]]]]:
        calls, rest = written_calls(text, self.functions.arguments, outside.holds)
        if calls:
            return rest, [
                (ToolCall("", call.name, call.input, None if call.input is not None else call.source), ())
                for call in calls
            ]
        found = None if outside.holds(text) else written_document(text, self.functions.taking(), self.codec)
        return (text, []) if found is None else ("", [(found.call, found.notes)])

    def _asked(self, told: tuple[ToolCall, tuple[str, ...]], ids: CallIds, round_number: int) -> Asked:
        call, notes = told
        function = self.functions.find(call.name)
        name = function.spec.name if function is not None else wire_name(call.name)
        given, more = _carried(call.input)
        sent = replace(call, id=ids.take(carried_text(call.id), round_number), name=name, input=given)
        if call.raw is not None:
            sent = replace(sent, raw=carried_text(call.raw))
        return Asked(sent, carried_text(call.name), function, (*notes, *more))


def _carried(value: Mapping[str, Any] | None) -> tuple[Mapping[str, Any] | None, tuple[str, ...]]:
    return (None, ()) if value is None else repair_json(dict(value))


def carried_text(text: str) -> str:
    """The text with U+FFFD for each character that XML cannot carry (S11)."""
    carried: str = repair_json(text)[0]
    return carried


def wire_name(said: str) -> str:
    """A name that no function has, as a server takes it in what was said before."""
    return _FOREIGN.sub("_", said)[:MOST_CHARS] or NAMELESS


def output_of(payload: Mapping[str, Any] | Iterable[Any]) -> str:
    """A result as the JSON text that the model and the run get."""
    return orjson.dumps(payload).decode()
