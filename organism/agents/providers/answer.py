"""Reads an answer of the chat completions API as servers really give it: whole or in events, by the letter or not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from uuid import uuid4

import orjson
from msgspec import field

from organism.agents.providers.failures import Failures, server_error
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

Translate = Callable[[Mapping[str, Any]], Iterable[Mapping[str, Any]]]
"""Gives an event of another API, or its whole answer, as chunks of this one."""


class AnswerReader(Entity):
    """Reads one answer, whole or in events. Each method raises ``ProviderError`` for what it cannot understand."""

    failures: Failures
    translate: Translate | None = None
    body: str = "choices"  # the key that a whole answer must have
    prefix: str = "call"  # of the ids of calls that have none
    cost_usd: Decimal | None = None  # what a header says of the cost
    is_finished: bool = False  # the model has said why it stopped: only the usage may follow
    _calls: list[CallInPieces] = field(default_factory=list)
    _by_index: dict[int, CallInPieces] = field(default_factory=dict)
    _usage: Usage | None = None
    _finish: str = ""
    _has_refused: bool = False

    def event(self, event: Mapping[str, Any]) -> Iterator[Part]:
        """The parts that the JSON of an event completes."""
        for chunk in (event,) if self.translate is None else self.translate(event):
            if chunk.get("error"):
                raise self.failures.reported(server_error(chunk))
            self._count(chunk.get("usage"))
            choices = chunk.get("choices")
            for choice in choices if isinstance(choices, list) else ():
                if isinstance(choice, dict) and choice.get("index") in (0, None):
                    yield from self._spoken(choice.get("delta") or choice.get("message"))
                    self._stop(choice.get("finish_reason"))

    def whole(self, answer: Mapping[str, Any]) -> Iterator[Part]:
        """The parts of an answer that is no stream."""
        yield from self.event(answer)
        if not isinstance(answer.get(self.body), list):
            raise self.failures.malformed(f"with JSON that has no `{self.body}`")
        self.is_finished = self.is_finished or bool(answer[self.body])

    def end(self) -> Iterator[Part]:
        """The last parts."""
        if not self.is_finished:
            raise self.failures.cut()
        calls = list(self._whole_calls())
        if not all(call.name for call in calls):
            raise self.failures.malformed("with a tool call that names no tool")
        yield from calls
        if self._usage is not None:
            yield self._usage
        finish = "content_filter" if self._has_refused else FINISHES.get(self._finish)
        yield Finish(finish or ("tool_calls" if calls else "stop"))

    def _whole_calls(self) -> Iterator[ToolCall]:
        seen: set[str] = set()
        for call in self._calls:
            text, id_ = whole_characters(call.text), whole_characters(call.id)
            id_ = id_ if id_ and id_ not in seen else f"{self.prefix}_{uuid4().hex}"
            seen.add(id_)
            given = arguments_of(text) if text.strip() not in {"", "null"} else {}
            yield ToolCall(id_, whole_characters(call.name), given, text if given is None else None)

    def _stop(self, finish: object) -> None:
        if not isinstance(finish, str) or not finish:
            return
        if finish.lower() in BROKEN_OFF:
            raise self.failures.cut()
        self._finish = finish.lower()
        self.is_finished = True

    def _spoken(self, delta: Any) -> Iterator[Part]:
        """The parts of a delta; its pieces of tool calls are kept for the end."""
        if not isinstance(delta, dict):
            return
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        inner, text = _texts(delta.get("content"))
        refusal = delta.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._has_refused = True
            text += refusal
        for piece in _pieces(delta):
            if not isinstance(piece, dict):
                raise self.failures.malformed("with a tool call that is no object")
            self._take(piece)
        if thought := thought + inner if isinstance(thought, str) else inner:
            yield ThoughtDelta(thought)
        if text:
            yield TextDelta(text)

    def _count(self, counts: Any) -> None:
        """The usage; where a server tells it again and again, the last time counts."""
        if not isinstance(counts, dict):
            return
        given, all_ = tokens(counts.get("prompt_tokens")), tokens(counts.get("total_tokens"))
        written = tokens(counts.get("completion_tokens"))
        if written is None and given is not None and all_ is not None and all_ >= given:
            written = all_ - given
        usage = usage_of(counts, given, written)
        if usage is not None and usage.cost_usd is None and self.cost_usd:
            usage = Usage(usage.input_tokens, usage.output_tokens, self.cost_usd)
        self._usage = usage or self._usage

    def _take(self, piece: dict[str, Any]) -> None:
        """A piece of a tool call.

        It says by ``index`` which call it is for; servers leave that out, or say 0 of each. So a piece begins a call
        where it names a function and its id, or the whole arguments before it, show that it is another one.
        """
        function = piece.get("function")
        function = function if isinstance(function, dict) else piece
        id_, name = _text(piece.get("id")), _text(function.get("name"))
        arguments = arguments_text(function.get("arguments"))
        index = piece.get("index")
        index = index if isinstance(index, int) and not isinstance(index, bool) else None
        call = self._meant(index, id_, name)
        if call is None or _is_other(call, id_, name, arguments):
            call = CallInPieces()
            self._calls.append(call)
        elif name and arguments and _is_repeated(call, id_, arguments):
            return
        if index is not None:
            self._by_index[index] = call
        call.id = call.id or id_
        call.name = call.name or name
        call.add(arguments)

    def _meant(self, index: int | None, id_: str, name: str) -> CallInPieces | None:
        if index is not None:
            return self._by_index.get(index)
        known = next((call for call in reversed(self._calls) if id_ and call.id == id_), None)
        if known is not None or (id_ and name):
            return known
        return self._calls[-1] if self._calls else None


class CallInPieces(Entity):
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


def _pieces(delta: Mapping[str, Any]) -> list[Any]:
    calls, one = delta.get("tool_calls"), delta.get("function_call")
    if calls:
        return calls if isinstance(calls, list) else [calls]
    return [{"index": 0, "function": one}] if one else []


def _texts(content: Any) -> tuple[str, str]:
    if isinstance(content, str):
        return "", content
    thought = text = ""
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and part.get("type") == "thinking":
            inner = part.get("thinking")
            thought += inner if isinstance(inner, str) else _texts(inner)[1]
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            text += part["text"]
    return thought, text


def _is_other(call: CallInPieces, id_: str, name: str, arguments: str) -> bool:
    """Whether what comes in the place of ``call`` is another call: it must name a function to be one."""
    if not name or not call.name:
        return False
    if (id_ and call.id and id_ != call.id) or name != call.name:
        return True
    return bool(arguments) and call.is_complete and not _is_repeated(call, id_, arguments)


def _is_repeated(call: CallInPieces, id_: str, arguments: str) -> bool:
    return id_ != "" and id_ == call.id and arguments == call.text


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


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
