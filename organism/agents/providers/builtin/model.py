"""The embedded default as a provider: thinks at once, then gives its answer in pieces."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from typing import Final

from organism.agents.providers.builtin.answering import Reply, reply
from organism.agents.providers.builtin.phrases import DESCRIPTION
from organism.agents.providers.counting import CHARS_PER_TOKEN, tokens_of, tokens_of_call, tokens_of_request
from organism.agents.providers.talk import text_of
from organism.model.completion import Finish, FinishReason, ModelRequest, Part, TextDelta, ToolCall, Usage

__all__ = ("DESCRIPTION", "Builtin")

LONG_CHARS: Final = 4_000
"""A longer talk is read in a thread, so that nobody else waits for it."""

_PIECE: Final = re.compile(r"\s*\S+\s*?(?:\s+\S+){0,3}\s*")


class Builtin:
    """Answers without network, key or weights; the same request gets the same answer.

    ``temperature`` changes nothing. Tokens are estimated (``counting``).
    """

    async def stream(self, request: ModelRequest) -> AsyncIterator[Part]:
        """See ``Provider``."""
        is_long = sum(len(text_of(message)) for message in request.messages) > LONG_CHARS
        answer = await asyncio.to_thread(reply, request) if is_long else reply(request)
        if answer.calls:
            async for part in _calls(request, answer):
                yield part
            return
        text, finish = _bounded(answer.text, request.max_tokens)
        for piece in _pieces(text):
            yield TextDelta(piece)
            await asyncio.sleep(0)
        yield Usage(tokens_of_request(request), tokens_of(text))
        yield Finish(finish)

    async def close(self) -> None:
        """See ``Provider``: nothing is open."""


async def _calls(request: ModelRequest, answer: Reply) -> AsyncIterator[Part]:
    """The calls, each with an id that no other of the talk has."""
    calls = [
        ToolCall(f"call_{len(request.messages)}_{at}", name, arguments)
        for at, (name, arguments) in enumerate(answer.calls, 1)
    ]
    for call in calls:
        yield call
    yield Usage(tokens_of_request(request), sum(map(tokens_of_call, calls)))
    yield Finish("tool_calls")


def _bounded(text: str, max_tokens: int | None) -> tuple[str, FinishReason]:
    """As much of the text as may be said."""
    if max_tokens is None or len(text) <= max_tokens * CHARS_PER_TOKEN:
        return text, "stop"
    return text[: max(0, max_tokens) * CHARS_PER_TOKEN], "length"


def _pieces(text: str) -> Iterator[str]:
    """The text a few words at a time."""
    at = 0
    for match in _PIECE.finditer(text):
        yield text[at : match.end()]
        at = match.end()
    if at < len(text):
        yield text[at:]
