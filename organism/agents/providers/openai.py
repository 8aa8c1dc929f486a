"""Models behind the chat completions API: OpenAI's own, and every server that is compatible with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import uuid4

from organism.agents.providers.wire import chat
from organism.agents.providers.wire.access import Access, Waits
from organism.agents.providers.wire.body import Reader
from organism.agents.providers.wire.faults import Faults
from organism.agents.providers.wire.server import Server
from organism.agents.providers.wire.transport import Sender
from organism.model.completion import ModelRequest

BASE_URL: Final = "https://api.openai.com/v1"


class OpenAIProvider(Server):
    """One model. See ``Provider``.

    ``key`` was read from the variable ``api_key_env``; servers at a ``base_url`` of their own may want none. ``now``
    tells the time in seconds since 1970. Nothing is read from the environment here.
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
        super().__init__(access, _Speech(), waits, now)


class _Speech:
    """How the API is spoken. See ``Speech``."""

    path = chat.PATH
    optional = chat.OPTIONAL

    def load(self, access: Access) -> Sender:
        from organism.agents.providers.wire.plain import Plain

        return Plain(access).sender

    def body(self, request: ModelRequest, without: frozenset[str]) -> Mapping[str, Any]:
        return chat.body(request, without)

    def reader(self, faults: Faults, headers: Mapping[str, str]) -> Reader:
        return chat.ChatReader(faults, headers, lambda: f"call_{uuid4().hex}")
