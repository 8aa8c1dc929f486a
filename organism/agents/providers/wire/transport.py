"""The connections to a server of models: what is sent along, and what is taken for a failure of theirs."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from organism.agents.providers.wire.access import Access
from organism.agents.providers.wire.faults import Refused

if TYPE_CHECKING:
    import httpx2

MOST_ERROR_BYTES: Final = 64 * 1024
KEPT_CONNECTIONS: Final = 32
KEPT_S: Final = 60.0
OWN_HEADERS: Final = frozenset(
    {
        "accept",
        "accept-encoding",
        "anthropic-version",
        "connection",
        "content-length",
        "content-type",
        "host",
        "user-agent",
    }
)
"""What is sent, besides the key. The SDKs would add the machine's kind, and whatever their own variables say."""
UNREAD: Final = {"X-Stainless-Raw-Response": "stream"}
"""Tells an SDK to give an answer before it is read; it is not sent."""


class Unread(Protocol):
    """An answer of which only the head was read."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Its headers; case does not matter in their names."""

    def aiter_bytes(self) -> AsyncGenerator[bytes]:
        """Its body as it comes, unpacked. Raises one of ``failures()``."""

    async def aclose(self) -> None:
        """Read no more of it. A connection that was not read to its end is closed."""


@dataclass(frozen=True, slots=True)
class Sender:
    """What puts a request: ``post(path, body, connect_s)`` gives the answer unread. Raises ``Refused``.

    ``errors`` are what it raises when the connection fails, besides ``failures()``.
    """

    post: Callable[[str, bytes, float], Awaitable[Unread]]
    close: Callable[[], Awaitable[None]]
    errors: tuple[type[Exception], ...]


def http_client(access: Access) -> httpx2.AsyncClient:
    """The client under an SDK. It reads no variables, and follows no redirect: a prompt goes where it was sent to.

    Raises ``ProviderError`` where there is no key.
    """
    key = access.credential()

    import httpx2

    async def dress(request: httpx2.Request) -> None:
        for name in set(request.headers) - OWN_HEADERS:
            del request.headers[name]
        if key:
            request.headers["authorization"] = f"Bearer {key}"

    async def judge(response: httpx2.Response) -> None:
        if not response.is_success:
            raise Refused(response.status_code, response.headers, await beginning(response))

    return httpx2.AsyncClient(
        verify=authorities(access),
        trust_env=False,
        follow_redirects=False,
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=KEPT_CONNECTIONS, keepalive_expiry=KEPT_S),
        event_hooks={"request": [dress], "response": [judge]},
    )


def authorities(access: Access) -> bool | ssl.SSLContext:
    """Whom TLS trusts. Reading all authorities takes longer than a call; without TLS nobody asks for them."""
    return True if access.base_url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


async def beginning(response: Unread) -> bytes:
    """As much of an error as is worth reading."""
    got = b""
    async for chunk in response.aiter_bytes():
        got += chunk
        if len(got) > MOST_ERROR_BYTES:
            break
    return got[:MOST_ERROR_BYTES]


class NotConnected(Exception):
    """There was no connection; ``is_late``: none in time."""

    def __init__(self, cause: BaseException, *, is_late: bool) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.is_late = is_late


class Broken(Exception):
    """The connection broke; ``is_packed``: what came cannot be unpacked."""

    def __init__(self, *, is_packed: bool = False) -> None:
        super().__init__()
        self.is_packed = is_packed


def failures() -> tuple[type[Exception], ...]:
    """What reading an answer may raise."""
    import anyio
    import httpx2

    closed = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError)
    return (NotConnected, Broken, httpx2.HTTPError, httpx2.StreamError, *closed, OSError)


def is_undecodable(error: Exception) -> bool:
    """Whether the answer came, but packed in a way that cannot be undone."""
    import httpx2

    return isinstance(error, httpx2.DecodingError) or (isinstance(error, Broken) and error.is_packed)


def is_connect_timeout(error: BaseException) -> bool:
    """Whether it took too long to be connected."""
    import httpx2

    return isinstance(error, httpx2.ConnectTimeout) or (isinstance(error, NotConnected) and error.is_late)


def is_connect_failure(error: BaseException) -> bool:
    """Whether there was no connection at all."""
    import httpx2

    return isinstance(error, NotConnected | httpx2.ConnectError | ssl.SSLError)
