"""The calls in one answer of a model: structured ones, or those written into its text, each under its own id."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import orjson
from msgspec import field

from organism.agents.functions import Function, Functions, wire_name
from organism.agents.providers.messages import text_of
from organism.agents.written_calls import written_calls
from organism.codec import Codec, PayloadLimits, UnknownPayload, repair_json, repair_text
from organism.errors import InvalidPayload
from organism.events.entity import Entity
from organism.model.completion import ChatMessage, Completion, ToolCall
from organism.model.sessions import SessionMessage, is_call, is_summary

MOST_ID_CHARS: Final = 64
_SPACE: Final = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """A call that the model requests."""

    call: ToolCall  # as it goes back to the model
    written_name: str  # the name as the model wrote it
    function: Function | None  # None: there is none of that name
    notes: tuple[str, ...] = ()  # what was repaired

    @property
    def is_callers(self) -> bool:
        """Whether it is for the caller of the turn to make."""
        return self.function is not None and self.function.is_callers

    @property
    def shown_name(self) -> str:
        return self.function.to if self.function is not None else self.call.name


class ParsedAnswer(NamedTuple):
    """A model's answer: its text without the calls that were written in it, and its calls in order."""

    text: str
    calls: tuple[RequestedCall, ...]


class CallReader(Entity):
    """Reads one run's answers, with the same ids in each replay. A call quoted from outside text is text (S20)."""

    _functions: Functions
    _codec: Codec
    _outside: list[str] = field(default_factory=list)
    _ids: set[str] = field(default_factory=set)
    _made: dict[int, int] = field(default_factory=dict)  # how many ids, by the round

    def add_outside(self, text: str) -> None:
        """Remember text of others that the run reads; of JSON, each text in it too."""
        self._outside += [_SPACE.sub("", each) for each in (text, *_texts_in(text))]

    def remember(self, history: Iterable[SessionMessage]) -> None:
        """Earlier results, and summaries of earlier messages, may hold text of others."""
        for message in history:
            if is_summary(message) or (message["role"] == "tool" and not is_call(message)):
                self.add_outside(message["content"])

    def earlier_call(self, message: SessionMessage) -> ToolCall:
        """A call of an earlier turn as it goes back to the model, under an id that no other call has."""
        name, given = str(message["tool_name"]), message["input"]
        function = self._functions.find(name)
        wanted = function.spec.name if function is not None else wire_name(name)
        return ToolCall(
            self._new_id(str(message["tool_call_id"]), 0), wanted, given if isinstance(given, dict) else None
        )

    def add_earlier(self, messages: Iterable[ChatMessage]) -> None:
        """The calls of earlier messages have their ids; the results may hold text of others."""
        for message in messages:
            self._ids.update(call["id"] for call in message.get("tool_calls") or ())
            if message["role"] == "tool":
                self.add_outside(text_of(message["content"]))

    def is_outside(self, source: str) -> bool:
        """Whether this stands in a text of others, spaces ignored."""
        squeezed = _SPACE.sub("", source)
        return any(squeezed in text for text in self._outside)

    def read(self, completion: Completion, round_number: int) -> ParsedAnswer:
        """The text is searched for calls only if the answer has no structured ones."""
        text, calls = completion.text, completion.tool_calls
        notes: tuple[str, ...] = ()
        if not calls and self._functions.specs:
            text, calls, notes = self._written(text)
        return ParsedAnswer(text, tuple(self._requested(call, notes, round_number) for call in calls))

    def _written(self, text: str) -> tuple[str, tuple[ToolCall, ...], tuple[str, ...]]:
        found, rest = written_calls(text, self._functions.arguments, self.is_outside)
        if found:
            return rest, found, ()
        call, notes = (None, ()) if self.is_outside(text) else self._document(text)
        return (text, (), ()) if call is None else ("", (call,), notes)

    def _document(self, text: str) -> tuple[ToolCall | None, tuple[str, ...]]:
        """The call in a payload's XML, repaired, if one function alone takes its class; ``raw`` if it is unreadable."""
        named = {name: function for name, function in self._functions.taking().items() if f"<{name}" in text}
        if not named:
            return None, ()
        try:
            repaired = repair_text(text, named.keys())
            found = self._codec.from_xml(repaired.document, PayloadLimits(len(repaired.document)))
        except UnknownPayload:
            return None, ()
        except InvalidPayload:
            first = min(named, key=lambda name: text.index(f"<{name}"))
            return ToolCall("", named[first].spec.name, None, text), ()
        given = orjson.loads(self._codec.json(found))
        return ToolCall("", named[type(found).__name__].spec.name, given), repaired.notes

    def _requested(self, call: ToolCall, notes: tuple[str, ...], round_number: int) -> RequestedCall:
        function = self._functions.find(call.name)
        name = function.spec.name if function is not None else wire_name(call.name)
        given, raw, more = _xml_safe_arguments(call)
        sent = ToolCall(self._new_id(xml_safe_text(call.id), round_number), name, given, raw)
        return RequestedCall(sent, xml_safe_text(call.name), function, (*notes, *more))

    def _new_id(self, wanted: str, round_number: int) -> str:
        """The model's own id if it is short and new, else a new one."""
        found = wanted if len(wanted) <= MOST_ID_CHARS else ""
        while not found or found in self._ids:
            number = self._made[round_number] = self._made.get(round_number, 0) + 1
            found = f"call_{round_number}_{number}"
        self._ids.add(found)
        return found


def _texts_in(text: str) -> Iterator[str]:
    """The texts in JSON, and those in JSON that is itself a text in it, as a document's metadata is."""
    ahead: list[Any] = [*_read(text)]
    while ahead:
        value = ahead.pop()
        if isinstance(value, str):
            yield value
            ahead += _read(value)
        elif isinstance(value, dict):
            ahead += [*value, *value.values()]
        elif isinstance(value, list):
            ahead += value


def _read(text: str) -> Iterator[Any]:
    """The value of a text that is JSON; nothing for any other text."""
    with suppress(ValueError):
        yield orjson.loads(text)


def _xml_safe_arguments(call: ToolCall) -> tuple[Mapping[str, Any] | None, str | None, tuple[str, ...]]:
    """The arguments as XML and JSON can carry them, else their text; and notes of what was replaced."""
    if call.input is None:
        return None, xml_safe_text(call.raw or ""), ()
    try:
        given, notes = repair_json(dict(call.input))
        orjson.dumps(given)
    except (InvalidPayload, TypeError, ValueError, RecursionError):
        return None, xml_safe_text(json.dumps(call.input, default=str)), ()
    return given, None, notes


def xml_safe_text(text: str) -> str:
    """The text with U+FFFD for each character that XML cannot carry (S11)."""
    repaired: str = repair_json(text)[0]
    return repaired
