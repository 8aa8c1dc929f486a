"""The connections to a server of models: what is sent along, and what is taken for a failure of theirs."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

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
PLAIN_HEADERS: Final = {
    "accept": "application/json",
    "accept-encoding": "gzip, deflate",
    "content-type": "application/json",
    "user-agent": "organism",
}
UNREAD: Final = {"X-Stainless-Raw-Response": "stream"}
"""Tells an SDK to give an answer before it is read; it is not sent."""


@dataclass(frozen=True, slots=True)
class Sender:
    """What puts a request: it posts a body to a path and gives the answer unread.

    ``errors`` are what it raises when the connection fails, besides ``failures()``.
    """

    post: Callable[[str, bytes, httpx2.Timeout], Awaitable[httpx2.Response]]
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
            raise Refused(response.status_code, response.headers, await _beginning(response))

    return httpx2.AsyncClient(
        verify=_authorities(access),
        trust_env=False,
        follow_redirects=False,
        limits=_limits(),
        event_hooks={"request": [dress], "response": [judge]},
    )


def plain_sender(access: Access) -> Sender:
    """Posts with no SDK between: an API that is no more than a path and a body needs none, and is asked much sooner.

    It reads no variables and follows no redirect either. Raises ``ProviderError`` where there is no key.
    """
    key = access.credential()

    import httpx2

    transport = httpx2.AsyncHTTPTransport(verify=_authorities(access), trust_env=False, limits=_limits())
    place = access.base_url.rstrip("/")
    urls: dict[str, httpx2.URL] = {}
    headers = dict(PLAIN_HEADERS)
    if key:
        headers["authorization"] = f"Bearer {key}"

    async def post(path: str, body: bytes, limit: httpx2.Timeout) -> httpx2.Response:
        url = urls.get(path) or urls.setdefault(path, httpx2.URL(f"{place}{path}"))
        request = httpx2.Request("POST", url, headers=headers, content=body, extensions={"timeout": limit.as_dict()})
        response = await transport.handle_async_request(request)
        response.request = request
        if response.is_success:
            return response
        try:
            raise Refused(response.status_code, response.headers, await _beginning(response))
        finally:
            await response.aclose()

    return Sender(post, transport.aclose, ())


def _authorities(access: Access) -> bool | ssl.SSLContext:
    """Whom TLS trusts. Reading all authorities takes longer than a call; without TLS nobody asks for them."""
    return True if access.base_url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _limits() -> httpx2.Limits:
    import httpx2

    return httpx2.Limits(max_connections=None, max_keepalive_connections=KEPT_CONNECTIONS, keepalive_expiry=KEPT_S)


async def _beginning(response: httpx2.Response) -> bytes:
    """As much of an error as is worth reading."""
    got = b""
    async for chunk in response.aiter_bytes():
        got += chunk
        if len(got) > MOST_ERROR_BYTES:
            break
    return got[:MOST_ERROR_BYTES]


def failures() -> tuple[type[Exception], ...]:
    """What reading an answer may raise."""
    import anyio
    import httpx2

    closed = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError)
    return (httpx2.HTTPError, httpx2.StreamError, *closed, OSError)


def is_undecodable(error: Exception) -> bool:
    """Whether the answer came, but packed in a way that cannot be undone."""
    import httpx2

    return isinstance(error, httpx2.DecodingError)


def is_connect_timeout(error: BaseException) -> bool:
    """Whether it took too long to be connected."""
    import httpx2

    return isinstance(error, httpx2.ConnectTimeout)


def is_connect_failure(error: BaseException) -> bool:
    """Whether there was no connection at all."""
    import httpx2

    return isinstance(error, httpx2.ConnectError | ssl.SSLError)
