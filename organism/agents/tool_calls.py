"""The calls in one answer of a model: structured ones, or those written into its text, each under its own id."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from organism.agents.functions import Function, Functions, wire_name
from organism.agents.written_calls import written_calls
from organism.codec import Codec, Terms, UnknownPayload, repair_json, repair_text
from organism.errors import InvalidPayload
from organism.model.completion import Completion, ToolCall

MOST_ID_CHARS: Final = 64
_SPACE: Final = re.compile(r"\s+")


class Outside:
    """The texts of others that a run has read; a call that repeats their words is none of the model's own (S20)."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    def add(self, text: str) -> None:
        """The run reads this text; of JSON each text in it, too."""
        self._texts += [_squeezed(each) for each in (text, *_texts_in(text))]

    def holds(self, source: str) -> bool:
        """Whether these words stand in a text from outside; spaces do not count."""
        squeezed = _squeezed(source)
        return any(squeezed in text for text in self._texts)


def _squeezed(text: str) -> str:
    return _SPACE.sub("", text)


def _texts_in(text: str) -> Iterator[str]:
    try:
        value = orjson.loads(text)
    except ValueError:
        return
    ahead: list[Any] = [value]
    while ahead:
        value = ahead.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            ahead += [*value, *value.values()]
        elif isinstance(value, list):
            ahead += value


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
        return self.function.to if self.function is not None else self.call.name


@dataclass(frozen=True, slots=True)
class Spoken:
    """An answer of a model: its text without the calls that stood in it, and its calls in their order."""

    text: str
    asked: tuple[Asked, ...]


Noted = tuple[ToolCall, tuple[str, ...]]
"""A call, and what was mended in it."""


class CallIds:
    """The ids of a run's calls, the same in each replay: the model's own if short and given once, else new ones."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, wanted: str, round_number: int) -> str:
        found, number = wanted if len(wanted) <= MOST_ID_CHARS else "", 0
        while not found or found in self._taken:
            number += 1
            found = f"call_{round_number}_{number}"
        self._taken.add(found)
        return found


@dataclass(frozen=True, slots=True)
class CallReader:
    functions: Functions
    codec: Codec

    def read(self, completion: Completion, outside: Outside, ids: CallIds, round_number: int) -> Spoken:
        """The text and the calls of an answer. Text is searched for calls only if there are no structured ones."""
        told: list[Noted] = [(call, ()) for call in completion.tool_calls]
        text = completion.text
        if not told and self.functions.specs:
            text, told = self._written(text, outside)
        return Spoken(text, tuple(self._asked(each, ids, round_number) for each in told))

    def _written(self, text: str, outside: Outside) -> tuple[str, list[Noted]]:
        calls, rest = written_calls(text, self.functions.arguments, outside.holds)
        if calls:
            return rest, [
                (ToolCall("", call.name, call.input, None if call.input is not None else call.source), ())
                for call in calls
            ]
        found = None if outside.holds(text) else _written_document(text, self.functions.taking(), self.codec)
        return (text, []) if found is None else ("", [found])

    def _asked(self, told: Noted, ids: CallIds, round_number: int) -> Asked:
        call, notes = told
        function = self.functions.find(call.name)
        name = function.spec.name if function is not None else wire_name(call.name)
        given, raw, more = _carried(call)
        sent = ToolCall(ids.take(carried_text(call.id), round_number), name, given, raw)
        return Asked(sent, carried_text(call.name), function, (*notes, *more))


def _carried(call: ToolCall) -> tuple[Mapping[str, Any] | None, str | None, tuple[str, ...]]:
    """The arguments as XML and JSON can carry them, else their text; and what was replaced in them."""
    if call.input is None:
        return None, carried_text(call.raw or ""), ()
    try:
        given, notes = repair_json(dict(call.input))
        orjson.dumps(given)
    except (InvalidPayload, TypeError, ValueError, RecursionError):
        return None, carried_text(json.dumps(call.input, default=str)), ()
    return given, None, notes


def carried_text(text: str) -> str:
    """The text with U+FFFD for each character that XML cannot carry (S11)."""
    carried: str = repair_json(text)[0]
    return carried


def _written_document(text: str, taking: Mapping[str, Function], codec: Codec) -> Noted | None:
    """The call in a text that is a payload's XML, if one function alone takes that class; mended as the codec does it.

    If it cannot be read, the call's ``raw`` is the text.
    """
    named = {name: function for name, function in taking.items() if f"<{name}" in text}
    if not named:
        return None
    try:
        repaired = repair_text(text, named.keys())
        found = codec.from_xml(repaired.document, Terms(len(repaired.document)))
    except UnknownPayload:
        return None
    except InvalidPayload:
        function = min(named.values(), key=lambda function: text.index(f"<{function.payload_class.__name__}"))
        return ToolCall("", function.spec.name, None, text), ()
    function = named[type(found).__name__]
    return ToolCall("", function.spec.name, orjson.loads(codec.json(found))), repaired.notes
