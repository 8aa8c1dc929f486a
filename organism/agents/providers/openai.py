"""Models behind the chat completions API: OpenAI's own, and every server that is compatible with it.

The SDK sends the request, cuts the answer into events and decodes their JSON. ``chat.py`` reads that JSON as it came,
not as the SDK's types: compatible servers leave out fields, add others, and number tool calls as they like.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import uuid4

from organism.agents.providers import chat
from organism.agents.providers.access import Access, Waits
from organism.agents.providers.failures import Failures
from organism.agents.providers.pieces import dollars
from organism.agents.providers.server import EventStream, Reader, Sdk, Server
from organism.model.completion import ModelRequest

BASE_URL: Final = "https://api.openai.com/v1"
PATH: Final = "/chat/completions"
COST_HEADER: Final = "x-litellm-response-cost"


class OpenAIProvider(Server):
    """One model. See ``Provider``.

    ``key`` was read from the variable ``api_key_env``; servers at a ``base_url`` of their own may want none. Nothing is
    read from the environment, by the SDK either.
    """

    def __init__(
        self,
        base_url: str | None = None,
        key: str | None = None,
        api_key_env: str | None = None,
        waits: Waits = Waits(),  # noqa: B008 - frozen
        now: Callable[[], float] = time.time,
    ) -> None:
        access = Access(base_url or BASE_URL, key, api_key_env, needs_key=base_url is None)
        super().__init__(access, _ChatCompletions(), waits, now)


class _ChatCompletions:
    """See ``Api``."""

    optional = chat.OPTIONAL

    def body(self, request: ModelRequest, without: frozenset[str]) -> Mapping[str, Any]:
        return chat.body(request, without)

    def load(self, access: Access, connect_s: float) -> Sdk:
        key = access.credential()
        import openai

        from organism.agents.providers import transport

        transport.quiet("openai")
        credentials = {"authorization": f"Bearer {key}"} if key else {}
        client = openai.AsyncOpenAI(
            api_key=key or "none",
            base_url=access.base_url,
            max_retries=0,
            http_client=transport.http_client(access.base_url, credentials, connect_s),
        )

        async def post(content: bytes) -> EventStream:
            return await client.post(
                PATH, cast_to=object, content=content, stream=True, stream_cls=openai.AsyncStream[object]
            )

        return Sdk(post, client.close, (openai.OpenAIError, *transport.ERRORS))

    def reader(self, failures: Failures, headers: Mapping[str, str]) -> Reader:
        return chat.ChatReader(failures, dollars(headers.get(COST_HEADER)), lambda: f"call_{uuid4().hex}")
