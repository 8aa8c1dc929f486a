"""The HTTP connections below a vendor's SDK: which headers are sent, and how much of an answer is read."""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Final

import httpx2

MOST_BYTES: Final = 64 * 1024 * 1024
MOST_EVENT_BYTES: Final = 8 * 1024 * 1024
"""Of one event, or of an answer that is no stream."""
MOST_ERROR_BYTES: Final = 64 * 1024
BLANK_LINES: Final = (b"\n\n", b"\r\r", b"\n\r\n")
KEPT_CONNECTIONS: Final = 32
KEPT_S: Final = 60.0
SENT_HEADERS: Final = frozenset(
    ["accept", "anthropic-version", "connection", "content-length", "content-type", "host", "user-agent"]
)
"""Sent besides the key. The SDKs would add details of this machine, and headers from environment variables."""

ERRORS: Final = (httpx2.HTTPError, httpx2.StreamError, OSError)
"""What a connection raises where an SDK does not wrap it; a TLS record that cannot be read is an ``OSError``."""


class Unreadable(httpx2.TransportError):
    """An answer that is not read any further; the text says why."""


def http_client(
    base_url: str, credentials: Mapping[str, str], connect_s: float, socket: Path | None = None
) -> httpx2.AsyncClient:
    """The SDK's client: no environment, no redirects, unlimited connections; it bounds only the time to connect."""
    return httpx2.AsyncClient(
        transport=_Transport(base_url, credentials, socket),
        trust_env=False,
        follow_redirects=False,
        timeout=httpx2.Timeout(None, connect=connect_s),
    )


def quiet(logger: str) -> None:
    """Keep an SDK from logging requests, whatever the root logger's level or the SDK's own variable says."""
    logging.getLogger(logger).setLevel(logging.WARNING)


class _Transport(httpx2.AsyncBaseTransport):
    """Sets the headers of requests and bounds answers."""

    def __init__(self, base_url: str, credentials: Mapping[str, str], socket: Path | None) -> None:
        # Loading the trusted authorities takes longer than a call, and only TLS needs them.
        tls = True if base_url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        limits = httpx2.Limits(
            max_connections=None, max_keepalive_connections=KEPT_CONNECTIONS, keepalive_expiry=KEPT_S
        )
        uds = None if socket is None else str(socket)
        self._connections = httpx2.AsyncHTTPTransport(verify=tls, trust_env=False, limits=limits, uds=uds)
        self._headers = {"accept-encoding": "identity", **credentials}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        for name in set(request.headers) - SENT_HEADERS:
            del request.headers[name]
        request.headers.update(self._headers)
        response = await self._connections.handle_async_request(request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)  # noqa: S101 - narrows the type
        encoding = response.headers.pop("content-encoding", "identity")
        if not response.is_success:
            response.stream = _Beginning(response.stream)
        elif encoding == "identity":
            response.stream = _Bounded(response.stream)
        else:  # a few bytes may unpack to gigabytes
            await response.stream.aclose()
            raise Unreadable(f"in the encoding `{encoding[:20]}`, which was not asked for")
        return response

    async def aclose(self) -> None:
        await self._connections.aclose()


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, body: httpx2.AsyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        total = event = 0
        tail = b""
        async for chunk in self._body:
            window = tail + chunk
            blank = max(window.rfind(line) for line in BLANK_LINES)
            event = event + len(chunk) if blank < 0 else len(window) - blank
            total += len(chunk)
            tail = window[-2:]
            if event > MOST_EVENT_BYTES or total > MOST_BYTES:
                raise Unreadable(
                    f"with more than {(MOST_EVENT_BYTES if total <= MOST_BYTES else MOST_BYTES) >> 20} MiB"
                )
            yield chunk

    async def aclose(self) -> None:
        await self._body.aclose()


class _Beginning(_Bounded):
    """The beginning of an error's body."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MOST_ERROR_BYTES
        async for chunk in self._body:
            yield chunk[:left]
            left -= len(chunk)
            if left <= 0:
                return
