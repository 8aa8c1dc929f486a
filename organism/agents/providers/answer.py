"""An answer as it comes from a server, whichever API it speaks and however loosely: gathered into the parts of one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final, TypeVar
from uuid import uuid4

import msgspec
import orjson
from msgspec import Struct, field

from organism.agents.providers.failures import Failures
from organism.events.entity import Entity
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
FINISHES: Final[Mapping[str, FinishReason]] = {
    "length": "length",
    "max_tokens": "length",
    "max_length": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "refusal": "content_filter",
}
"""Any other reason means that the model ended as it was meant to."""
BROKEN_OFF: Final = frozenset({"error", "abort", "aborted", "cancelled", "network_error"})

Index = int | str | None
T = TypeVar("T", bound=Struct)


class CallInPieces(Entity):
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)  # of its arguments

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def is_complete(self) -> bool:
        return arguments_of(self.text) is not None

    def is_other(self, id_: str, name: str, text: str) -> bool:
        """Whether a piece that comes in this call's place begins another: it must name a function to do so."""
        has_other_id = id_ != self.id if id_ and self.id else bool(text) and self.is_complete
        return bool(name and self.name) and (name != self.name or has_other_id)


class Answer(Entity):
    """What has come of one answer: calls, usage and reason; text and thoughts are parts at once."""

    failures: Failures
    id_prefix: str = "call"  # of the ids of calls that have none
    cost_usd: Decimal | None = None
    is_finished: bool = False  # the model has said why it stopped: only the usage may follow
    _calls: list[CallInPieces] = field(default_factory=list)
    _by_index: dict[Index, CallInPieces] = field(default_factory=dict)
    _input_tokens: int | None = None
    _output_tokens: int | None = None
    _finish: FinishReason | None = None

    def typed(self, event: object, kind: type[T]) -> T:
        """The event as that type. Raises ``ProviderError``."""
        try:
            return msgspec.convert(event, kind)
        except msgspec.ValidationError:
            raise self.failures.malformed("with an event of another form") from None

    def add_call(self, index: Index, id_: str, name: str, arguments: Any) -> None:
        """Add a piece of a tool call.

        It says by ``index`` which call it is for; servers leave that out, or say 0 of each. So a piece begins a call
        where it names a function and its id, or the whole arguments before it, show that it is another one.
        """
        text = _arguments_text(arguments)
        call = self._call_of(index, id_, name)
        if call is not None and name and id_ and id_ == call.id and text == call.text and call.is_complete:
            return  # some servers send the whole call once more
        if call is None or call.is_other(id_, name, text):
            call = CallInPieces()
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        call.id = call.id or id_
        call.name = call.name or name
        call.pieces.append(text)

    def has_call(self, index: Index) -> bool:
        return index in self._by_index if index is not None else bool(self._calls)

    def _call_of(self, index: Index, id_: str, name: str) -> CallInPieces | None:
        if index is not None:
            return self._by_index.get(index)
        known = next((call for call in reversed(self._calls) if id_ and call.id == id_), None)
        if known is not None or (id_ and name):
            return known
        return self._calls[-1] if self._calls else None

    def count(self, input_tokens: Any, output_tokens: Any, cost: Any = None) -> None:
        """Note the usage; where a server reports it again and again, the last valid count stands."""
        given, written, cost_usd = _tokens(input_tokens), _tokens(output_tokens), dollars(cost)
        self._input_tokens = self._input_tokens if given is None else given
        self._output_tokens = self._output_tokens if written is None else written
        self.cost_usd = self.cost_usd if cost_usd is None else cost_usd

    def stop(self, reason: str | None) -> None:
        """Note why the model stopped, if it says so."""
        if not reason:
            return
        if reason.lower() in BROKEN_OFF:
            raise self.failures.cut()
        self._finish = self._finish or FINISHES.get(reason.lower())
        self.is_finished = True

    def refuse(self) -> None:
        """The text is a refusal."""
        self._finish = "content_filter"

    def end(self) -> Iterator[Part]:
        """The last parts. Raises ``ProviderError`` if the answer is not whole."""
        if not self.is_finished:
            raise self.failures.cut()
        calls = list(self._whole_calls())
        if not all(call.name for call in calls):
            raise self.failures.malformed("with a tool call that names no tool")
        yield from calls
        if self._input_tokens is not None and self._output_tokens is not None:
            yield Usage(self._input_tokens, self._output_tokens, self.cost_usd)
        yield Finish(self._finish or ("tool_calls" if calls else "stop"))

    def _whole_calls(self) -> Iterator[ToolCall]:
        seen: set[str] = set()
        for call in self._calls:
            text, id_ = whole_characters(call.text), whole_characters(call.id)
            id_ = id_ if id_ and id_ not in seen else f"{self.id_prefix}_{uuid4().hex}"
            seen.add(id_)
            given = arguments_of(text) if text.strip() not in {"", "null"} else {}
            yield ToolCall(id_, whole_characters(call.name), given, text if given is None else None)


def deltas(thought: str | None, text: str | None) -> Iterator[Part]:
    """The next thought and text, if there are any."""
    if thought:
        yield ThoughtDelta(thought)
    if text:
        yield TextDelta(text)


def _arguments_text(arguments: Any) -> str:
    """Arguments as characters; some servers give the JSON that they are, or none at all."""
    if isinstance(arguments, str):
        return arguments
    return json.dumps(arguments) if arguments else ""


def arguments_of(text: str) -> dict[str, Any] | None:
    try:
        value = orjson.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _tokens(value: Any) -> int | None:
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
