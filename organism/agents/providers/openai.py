"""Models behind the chat completions API: OpenAI's own, and every server that is compatible with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from organism.agents.providers import chat
from organism.agents.providers.access import Access
from organism.agents.providers.failures import Failures
from organism.agents.providers.pieces import dollars
from organism.agents.providers.server import Api, Sdk, Server

if TYPE_CHECKING:
    import httpx2

COST_HEADER: Final = "x-litellm-response-cost"


def _connect(access: Access, key: str, http: httpx2.AsyncClient) -> Sdk:
    import openai

    client = openai.AsyncOpenAI(api_key=key, base_url=access.base_url, max_retries=0, http_client=http)
    return Sdk(client, openai.AsyncStream[object], openai.OpenAIError)


def _reader(failures: Failures, headers: Mapping[str, str]) -> chat.ChatReader:
    return chat.ChatReader(failures, dollars(headers.get(COST_HEADER)), lambda: f"call_{uuid4().hex}")


class OpenAIProvider(Server):
    """See ``Server``."""

    api = Api(
        name="openai",
        base_url="https://api.openai.com/v1",
        path="/chat/completions",
        optional=chat.OPTIONAL,
        headers=lambda key: {"authorization": f"Bearer {key}"},
        connect=_connect,
        body=chat.body,
        reader=_reader,
    )
