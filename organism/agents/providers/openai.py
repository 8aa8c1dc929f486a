"""Models behind the chat completions API: OpenAI's own, and every server that is compatible with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from organism.agents.providers import chat
from organism.agents.providers.access import Access, Waits
from organism.agents.providers.failures import Failures
from organism.agents.providers.pieces import dollars
from organism.agents.providers.server import Api, Sdk, Server

if TYPE_CHECKING:
    import httpx2

BASE_URL: Final = "https://api.openai.com/v1"
COST_HEADER: Final = "x-litellm-response-cost"


class OpenAIProvider(Server):
    """One model. See ``Provider``.

    ``key`` was read from the variable ``api_key_env``; servers at a ``base_url`` of their own may want none. Neither
    this nor the SDK reads anything from the environment.
    """

    def __init__(
        self,
        base_url: str | None = None,
        key: str | None = None,
        api_key_env: str | None = None,
        waits: Waits | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(API, Access(base_url or BASE_URL, key, api_key_env, needs_key=base_url is None), waits, now)


def _connect(access: Access, key: str, http: httpx2.AsyncClient) -> Sdk:
    import openai

    client = openai.AsyncOpenAI(api_key=key, base_url=access.base_url, max_retries=0, http_client=http)
    return Sdk(client, openai.AsyncStream[object], openai.OpenAIError)


def _reader(failures: Failures, headers: Mapping[str, str]) -> chat.ChatReader:
    return chat.ChatReader(failures, dollars(headers.get(COST_HEADER)), lambda: f"call_{uuid4().hex}")


API: Final = Api(
    name="openai",
    path="/chat/completions",
    optional=chat.OPTIONAL,
    headers=lambda key: {"authorization": f"Bearer {key}"},
    connect=_connect,
    body=chat.body,
    reader=_reader,
)
