"""An answer as it comes from a server, whichever API it speaks and however loosely: gathered into the parts of one."""

from __future__ import annotations

import json
import re
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
    WITHHELD,
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
MOST_CALLS: Final = 256
"""Of one answer; no model asks for so many at once."""
FINISHES: Final[Mapping[str, FinishReason]] = {
    "length": "length",
    "max_tokens": "length",
    "max_length": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    **dict.fromkeys(
        ("content_filter", "content_filtered", "safety", "recitation", "blocklist", "prohibited_content", "spii"),
        "content_filter",
    ),
    **dict.fromkeys(("sensitive", "guardrail_intervened"), "content_filter"),
    "refusal": "refusal",
}
"""Any other reason means that the model ended as it was meant to."""
BROKEN_OFF: Final = frozenset(
    {"error", "abort", "aborted", "cancelled", "network_error", "insufficient_system_resource"}
)

Index = int | str | None
T = TypeVar("T", bound=Struct)
_MARKS: Final = re.compile(r'\\.?|["{}]', re.DOTALL)


class CallInPieces(Entity):
    """A tool call while it arrives; looking at it takes no longer the more of it has arrived."""

    id: str = ""
    name: str = ""
    _pieces: list[str] = field(default_factory=list)  # of its arguments
    _chars: int = 0
    _depth: int = 0  # of the braces that are open
    _is_in_string: bool = False
    _escape: str = ""  # the backslash that the last piece ended with
    _is_closed: bool = False  # the braces that were opened are closed
    _is_complete: bool | None = None  # whether they hold an object; None: not asked yet

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def add(self, text: str) -> None:
        """Add a piece of the arguments."""
        self._pieces.append(text)
        self._chars += len(text)
        marks = _MARKS.findall(self._escape + text)
        self._escape = marks[-1] if marks and marks[-1] == "\\" else ""
        for mark in marks:
            if mark == '"':
                self._is_in_string = not self._is_in_string
            elif len(mark) == 1 and mark in "{}" and not self._is_in_string:
                self._depth += 1 if mark == "{" else -1
                self._is_closed = self._is_closed or self._depth <= 0

    @property
    def is_complete(self) -> bool:
        """Whether the arguments are a whole object. Asked for once they may be: what follows changes nothing."""
        if self._is_complete is None and self._is_closed:
            self._is_complete = arguments_of(self.text) is not None
        return bool(self._is_complete)

    def repeats(self, id_: str, name: str, text: str) -> bool:
        """Whether a piece is the whole call once more, as some servers send it."""
        is_same = bool(id_ and name) and id_ == self.id and len(text) == self._chars
        return is_same and text == self.text and self.is_complete

    def is_other(self, id_: str, name: str, text: str) -> bool:
        """Whether a piece that comes in this call's place begins another: it must name a function to do so."""
        if not (name and self.name):
            return False
        return name != self.name or (id_ != self.id if id_ and self.id else bool(text) and self.is_complete)


class Answer(Entity):
    """What has come of one answer: calls, usage and reason; text and thoughts are parts at once."""

    failures: Failures
    id_prefix: str = "call"  # of the ids of calls that have none
    cost_usd: Decimal | None = None
    is_finished: bool = False  # the model has said why it stopped: only the usage may follow
    _calls: list[CallInPieces] = field(default_factory=list)
    _by_index: dict[Index, CallInPieces] = field(default_factory=dict)
    _by_id: dict[str, CallInPieces] = field(default_factory=dict)
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
        Raises ``ProviderError`` for more calls than any model asks for.
        """
        text = _arguments_text(arguments)
        call = self._call_of(index, id_, name)
        if call is not None and call.repeats(id_, name, text):
            return
        if call is None or call.is_other(id_, name, text):
            if len(self._calls) == MOST_CALLS:
                raise self.failures.malformed(f"with more than {MOST_CALLS} tool calls")
            call = CallInPieces()
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        if id_ and not call.id:
            call.id = id_
            self._by_id[id_] = call
        call.name = call.name or name
        call.add(text)

    def has_call(self, index: Index) -> bool:
        return index in self._by_index if index is not None else bool(self._calls)

    def _call_of(self, index: Index, id_: str, name: str) -> CallInPieces | None:
        if index is not None:
            return self._by_index.get(index)
        known = self._by_id.get(id_)
        if known is not None or (id_ and name):
            return known
        return self._calls[-1] if self._calls else None

    def count(self, input_tokens: Any, output_tokens: Any, cost: Any = None) -> None:
        """Note the usage; where a server reports it again and again, the last valid count stands."""
        given, written, cost_usd = token_count(input_tokens), token_count(output_tokens), dollars(cost)
        self._input_tokens = self._input_tokens if given is None else given
        self._output_tokens = self._output_tokens if written is None else written
        self.cost_usd = self.cost_usd if cost_usd is None else cost_usd

    def stop(self, reason: str | None) -> None:
        """Note why the model stopped, if it says so."""
        if not reason:
            return
        word = reason.lower().partition(":")[0].strip()  # what follows a colon is why
        if word in BROKEN_OFF:
            raise self.failures.cut()
        self._finish = self._finish or FINISHES.get(word)
        self.is_finished = True

    def refuse(self) -> None:
        """The text is a refusal."""
        self._finish = "refusal"

    def withhold(self) -> None:
        """A content filter has stopped the request, or the rest of the answer."""
        self._finish = "content_filter"
        self.is_finished = True

    def end(self) -> Iterator[Part]:
        """The last parts. Raises ``ProviderError`` if the answer is not whole."""
        if not self.is_finished:
            raise self.failures.cut()
        calls = [] if self._finish in WITHHELD else list(self._whole_calls())
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
            is_cut = self._finish == "length" and call is self._calls[-1]
            given = arguments_of(text) if is_cut or text.strip() not in {"", "null"} else {}
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


def token_count(value: Any) -> int | None:
    """A server's count of tokens, None for what is none: a server may write anything there."""
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
