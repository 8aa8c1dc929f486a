"""Asking a provider in a test: a request in few words, and what came of it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from organism.agents.providers import Provider, ProviderError
from organism.model.completion import ChatMessage, Finish, ModelRequest, Part, ToolCall, Usage, added_up
from organism.model.tool import ToolSpec
from tests.agents.peer.answers import Answer

KEY: Final = "sk-0123456789abcdef"
PROMPT: Final = "What does the treasurer of Elbonia earn?"


@dataclass
class Came:
    """What the parts of an answer add up to."""

    parts: list[Part] = field(default_factory=list)

    @property
    def text(self) -> str:
        return added_up(self.parts).text

    @property
    def thought(self) -> str:
        return added_up(self.parts).thought

    @property
    def calls(self) -> list[ToolCall]:
        return [*added_up(self.parts).tool_calls]

    @property
    def usage(self) -> Usage | None:
        return next((part for part in self.parts if isinstance(part, Usage)), None)

    @property
    def finish(self) -> str | None:
        last = self.parts[-1] if self.parts else None
        return last.reason if isinstance(last, Finish) else None


def talk(*texts: str | ChatMessage) -> tuple[ChatMessage, ...]:
    """A talk: texts are said by user and assistant in turn, the last by the user; messages stand as they are."""
    plain = [text for text in texts if isinstance(text, str)]
    roles = iter(["user", "assistant"][(len(plain) - 1 - at) % 2] for at in range(len(plain)))
    return tuple({"role": next(roles), "content": text} if isinstance(text, str) else text for text in texts)


def called(*calls: tuple[str, str], text: str | None = None) -> list[ChatMessage]:
    """The assistant's message with calls, each a tool's name and its result, and the results behind it."""
    asked = [
        {"id": f"c{at}", "type": "function", "function": {"name": name, "arguments": "{}"}}
        for at, (name, _) in enumerate(calls)
    ]
    results = [
        {"role": "tool", "tool_call_id": f"c{at}", "name": name, "content": result}
        for at, (name, result) in enumerate(calls)
    ]
    return [{"role": "assistant", "content": text, "tool_calls": asked}, *results]


def tool(name: str, description: str = "", /, **properties: Mapping[str, Any]) -> ToolSpec:
    """A tool whose parameters are all required."""
    return ToolSpec(name, description, {"type": "object", "properties": properties, "required": list(properties)})


def request(*texts: str | ChatMessage, tools: Iterable[ToolSpec] = (), **options: Any) -> ModelRequest:
    """A request of a talk."""
    return ModelRequest(options.pop("model", "tested"), talk(*texts), tuple(tools), **options)


async def gathered(parts: AsyncIterator[Part], into: Came | None = None) -> Came:
    """All parts. ``into`` holds what came even if an error comes in the end."""
    came = into if into is not None else Came()
    async for part in parts:
        came.parts.append(part)
    return came


async def ask(provider: Provider, *texts: str | ChatMessage, **options: Any) -> Came:
    """Ask and wait for the whole answer."""
    return await gathered(provider.stream(request(*texts, **options)))


async def fault(provider: Provider, **options: Any) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await ask(provider, PROMPT, **options)
    return caught.value


def refusing(error: Any, status: int = 400) -> Answer:
    return Answer(status=status, body=json.dumps({"error": error}).encode())
