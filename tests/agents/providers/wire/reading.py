"""Reading the body of an answer without a server: the bytes, cut anywhere, and what came of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from organism.agents.provider import ProviderError
from organism.agents.providers.wire.access import Access
from organism.agents.providers.wire.body import Body, Reader
from organism.agents.providers.wire.chat import ChatReader
from organism.agents.providers.wire.faults import Faults
from organism.agents.providers.wire.messages import MessagesReader
from organism.model.completion import Finish, ModelRequest, Part, TextDelta, ThoughtDelta, ToolCall, Usage

KEY = "sk-0123456789abcdef"
PROMPT = "What does the treasurer of Elbonia earn?"
NOW = 1_800_000_000.0
REQUEST = ModelRequest(model="m", messages=({"role": "user", "content": PROMPT},))
FAULTS = Faults(Access("https://models.example/v1", KEY, "MODELS_KEY"), REQUEST, lambda: NOW)

NewReader = Callable[[Mapping[str, str]], Reader]


def chat_reader(headers: Mapping[str, str]) -> Reader:
    """A reader of the chat completions API that makes ids ``new-1``, ``new-2`` and so on."""
    return ChatReader(FAULTS, headers, _counted())


def messages_reader(_: Mapping[str, str]) -> Reader:
    """The same of the messages API."""
    return MessagesReader(FAULTS, _counted())


def _counted() -> Callable[[], str]:
    numbers = iter(range(1, 1_000_000))
    return lambda: f"new-{next(numbers)}"


def read(new: NewReader, body: bytes, size: int = 0, headers: Mapping[str, str] | None = None) -> list[Part]:
    """The parts of a body that comes in chunks of so many bytes, or at once. Raises ``ProviderError``."""
    reader = new(headers or {})
    reading = Body(reader, FAULTS)
    parts: list[Part] = []
    chunks = [body[at : at + size] for at in range(0, len(body), size)] if size else [body]
    for chunk in filter(None, chunks):
        parts += reading.feed(chunk)
        if reader.is_ended:
            break
    return [*parts, *reading.end()]


def told(new: NewReader, body: bytes, size: int = 0, headers: Mapping[str, str] | None = None) -> str | list[Any]:
    """The fault of a body, or what its parts add up to: see ``summed``."""
    try:
        return summed(read(new, body, size, headers))
    except ProviderError as error:
        return error.fault


def summed(parts: list[Part]) -> list[Any]:
    """The parts in short: thought and text in one piece each, calls as tuples, usage as a tuple, the reason last."""
    thought = "".join(part.text for part in parts if isinstance(part, ThoughtDelta))
    text = "".join(part.text for part in parts if isinstance(part, TextDelta))
    calls = [(call.id, call.name, call.raw or call.input) for call in parts if isinstance(call, ToolCall)]
    usage = [(use.input_tokens, use.output_tokens, use.cost_usd) for use in parts if isinstance(use, Usage)]
    assert [at for at, part in enumerate(parts) if isinstance(part, Finish)] == [len(parts) - 1]
    last = parts[-1]
    assert isinstance(last, Finish)
    return [*([f"({thought})"] if thought else []), *([text] if text else []), *calls, *usage, last.reason]


def sse(*documents: Any, end: bytes = b"data: [DONE]\n\n") -> bytes:
    """A stream of these events; texts and bytes stand as they are."""
    return b"".join(map(_event, documents)) + end


def _event(document: Any) -> bytes:
    if isinstance(document, bytes):
        return document
    if isinstance(document, str):
        return document.encode()
    return b"data: " + json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n\n"
