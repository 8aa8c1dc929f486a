"""Models behind the messages API: Anthropic's own, and servers that are compatible with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from organism.agents.provider import ProviderError
from organism.agents.providers.wire import messages
from organism.agents.providers.wire.access import Access, Waits
from organism.agents.providers.wire.body import Reader
from organism.agents.providers.wire.faults import Faults
from organism.agents.providers.wire.server import Server
from organism.agents.providers.wire.transport import UNREAD, Sender, http_client
from organism.model.completion import ModelRequest

if TYPE_CHECKING:
    import httpx2

BASE_URL: Final = "https://api.anthropic.com"
VERSION_PATH: Final = "/v1"


class AnthropicProvider(Server):
    """One model. See ``Provider``; the package of the extra ``anthropic`` must be installed.

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
        # The path of this API has the version in it, the address of most servers too.
        place = (base_url or BASE_URL).rstrip("/").removesuffix(VERSION_PATH)
        access = Access(place, key, api_key_env, needs_key=base_url is None)
        super().__init__(access, _Speech(), waits, now)


class _Speech:
    """How the API is spoken. See ``Speech``."""

    path = messages.PATH
    optional = messages.OPTIONAL

    def load(self, access: Access) -> Sender:
        import httpx2

        try:
            import anthropic
        except ImportError as error:
            remedy = "install it by `pip install 'organism[anthropic]'`"
            raise ProviderError("rejected", f"The provider `anthropic` lacks its package: {remedy}.") from error

        api = anthropic.AsyncAnthropic(
            api_key="-", base_url=access.base_url, max_retries=0, http_client=http_client(access), open_telemetry=False
        )

        async def post(path: str, body: bytes, connect_s: float) -> httpx2.Response:
            limit = httpx2.Timeout(None, connect=connect_s)
            return await api.post(
                path, cast_to=httpx2.Response, content=body, options={"headers": UNREAD, "timeout": limit}
            )

        return Sender(post, api.close, (anthropic.AnthropicError,))

    def body(self, request: ModelRequest, without: frozenset[str]) -> Mapping[str, Any]:
        return messages.body(request, without, _fitting)

    def reader(self, faults: Faults, headers: Mapping[str, str]) -> Reader:  # noqa: ARG002 - it tells nothing there
        return messages.MessagesReader(faults, lambda: f"toolu_{uuid4().hex}")


def _fitting(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema as the API takes it; one that its SDK cannot make so goes as it is."""
    from anthropic import transform_schema

    try:
        return transform_schema(dict(schema))
    except (AssertionError, AttributeError, TypeError, ValueError):
        return schema
