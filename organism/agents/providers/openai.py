"""Models behind the chat completions API: OpenAI's own, and every server that is compatible with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from organism.agents.providers.failures import Access, Failures, server_error
from organism.agents.providers.server import (
    AnswerInPieces,
    Api,
    CallInPieces,
    Sdk,
    Server,
    arguments_text,
    deltas,
    dollars,
    tokens,
    usage_of,
)
from organism.model.completion import FinishReason, ModelRequest, Part, Usage

if TYPE_CHECKING:
    import httpx2

COST_HEADER: Final = "x-litellm-response-cost"
OPTIONAL: Final = ("stream_options", "stream", "max_tokens", "temperature", "response_format")
FINISHES: Final[Mapping[str, FinishReason]] = {
    "length": "length",
    "max_tokens": "length",
    "max_length": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "safety": "content_filter",
    "refusal": "content_filter",
}
"""Any other reason means that the model ended as it was meant to."""
BROKEN_OFF: Final = frozenset({"error", "abort", "aborted", "cancelled", "network_error"})
UNNAMED: Final = "answer"

_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")


def body(request: ModelRequest, without: frozenset[str]) -> dict[str, Any]:
    """The request, less the parameters that the server does not take; ``max_tokens`` then goes by its newer name."""
    sent: dict[str, Any] = {"model": request.model, "messages": request.messages, "stream": True}
    sent |= {"stream_options": {"include_usage": True}, "temperature": request.temperature}
    if request.max_tokens is not None:
        sent["max_tokens"] = request.max_tokens
        if "max_tokens" in without:
            sent["max_completion_tokens"] = request.max_tokens
    if request.tools:
        sent["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
            }
            for tool in request.tools
        ]
    if request.response_format is not None:
        sent["response_format"] = wrapped(request.response_format)
    if "stream" in without:
        del sent["stream_options"]
    return {name: value for name, value in sent.items() if name not in without}


def wrapped(form: Mapping[str, Any]) -> Mapping[str, Any]:
    """A response format: a plain JSON Schema is put into the form that the API wants, another one stands."""
    if form.get("type") in ("json_schema", "json_object", "text") and "properties" not in form:
        return form
    name = _NO_NAME.sub("_", str(form.get("title") or UNNAMED))[:64]
    return {"type": "json_schema", "json_schema": {"name": name, "schema": form, "strict": _is_closed(form)}}


def _is_closed(schema: Any) -> bool:
    """Whether every object in the schema is what ``strict`` demands: closed, and with all of its fields required."""
    if isinstance(schema, list | tuple):
        return all(map(_is_closed, schema))
    if not isinstance(schema, Mapping):
        return True
    fields = schema.get("properties")
    if isinstance(fields, Mapping) or schema.get("type") == "object":
        required = schema.get("required") or ()
        if schema.get("additionalProperties") is not False or set(required) != set(fields or ()):
            return False
    return all(map(_is_closed, schema.values()))


class ChatReader:
    """Reads one answer. See ``Reader``. ``cost_usd`` is what a header says of its cost."""

    def __init__(self, failures: Failures, cost_usd: Decimal | None = None) -> None:
        self._failures = failures
        self._cost_usd = cost_usd
        self._answer = AnswerInPieces(failures, "call")
        self._calls = _Calls(self._answer.calls)
        self._usage: Usage | None = None
        self._finish = ""
        self._has_refused = False
        self.is_finished = False

    def whole(self, answer: Mapping[str, Any]) -> Iterator[Part]:
        yield from self.event(answer)
        if not isinstance(answer.get("choices"), list):
            raise self._failures.malformed("with JSON that has no `choices`")
        self.is_finished = self.is_finished or bool(answer["choices"])

    def end(self) -> Iterator[Part]:
        yield from self._answer.end(self._usage, "content_filter" if self._has_refused else FINISHES.get(self._finish))

    def event(self, chunk: Mapping[str, Any]) -> Iterator[Part]:
        if chunk.get("error"):
            raise self._failures.reported(server_error(chunk))
        self._count(chunk.get("usage"))
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if not isinstance(choice, dict) or choice.get("index") not in (0, None):
                continue
            delta = choice.get("delta") or choice.get("message")
            if isinstance(delta, dict):
                yield from deltas(*self._spoken(delta))
            self._stop(choice.get("finish_reason"))

    def _stop(self, finish: object) -> None:
        if not isinstance(finish, str) or not finish:
            return
        if finish.lower() in BROKEN_OFF:
            raise self._failures.cut()
        self._finish = finish.lower()
        self.is_finished = True

    def _spoken(self, delta: Mapping[str, Any]) -> tuple[str, str]:
        """Thought and text of a delta; its pieces of tool calls are kept for the end."""
        thought = delta.get("reasoning_content") or delta.get("reasoning")
        inner, text = _texts(delta.get("content"))
        refusal = delta.get("refusal")
        if isinstance(refusal, str) and refusal:
            self._has_refused = True
            text += refusal
        for piece in _pieces(delta):
            if not isinstance(piece, dict):
                raise self._failures.malformed("with a tool call that is no object")
            self._calls.take(piece)
        return thought + inner if isinstance(thought, str) else inner, text

    def _count(self, counts: Any) -> None:
        """The usage; where a server tells it again and again, the last time counts."""
        if not isinstance(counts, dict):
            return
        given, all_ = tokens(counts.get("prompt_tokens")), tokens(counts.get("total_tokens"))
        written = tokens(counts.get("completion_tokens"))
        if written is None and given is not None and all_ is not None and all_ >= given:
            written = all_ - given
        usage = usage_of(counts, given, written)
        if usage is not None and usage.cost_usd is None and self._cost_usd:
            usage = Usage(usage.input_tokens, usage.output_tokens, self._cost_usd)
        self._usage = usage or self._usage


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


class _Calls:
    """Puts the pieces of tool calls together, into ``calls``.

    A piece says by ``index`` which call it is for; servers leave that out, or say 0 of each. So a piece begins a call
    where it names a function and its id, or the whole arguments before it, show that it is another one.
    """

    def __init__(self, calls: list[CallInPieces]) -> None:
        self._calls = calls
        self._by_index: dict[int, CallInPieces] = {}

    def take(self, piece: dict[str, Any]) -> None:
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


def _connect(access: Access, key: str, http: httpx2.AsyncClient) -> Sdk:
    import openai

    client = openai.AsyncOpenAI(api_key=key, base_url=access.base_url, max_retries=0, http_client=http)
    return Sdk(client, openai.AsyncStream[object], openai.OpenAIError)


def _reader(failures: Failures, headers: Mapping[str, str]) -> ChatReader:
    return ChatReader(failures, dollars(headers.get(COST_HEADER)))


class OpenAIProvider(Server):
    """See ``Server``."""

    api = Api(
        name="openai",
        base_url="https://api.openai.com/v1",
        path="/chat/completions",
        optional=OPTIONAL,
        headers=lambda key: {"authorization": f"Bearer {key}"},
        connect=_connect,
        body=body,
        reader=_reader,
    )
