"""Asks an API that is no more than a path and a body, with no SDK between.

aiohttp reads HTTP in C: a call costs a fifth of what the pure Python of other clients takes (adr/0038). It reads no
variables, keeps no cookies and follows no redirect: a prompt goes where it was sent to.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, Mapping
from http import HTTPStatus
from io import BytesIO
from typing import Final

import aiohttp
from aiohttp.http_exceptions import ContentEncodingError

from organism.agents.providers.wire.access import Access
from organism.agents.providers.wire.faults import Refused
from organism.agents.providers.wire.transport import KEPT_S, Broken, NotConnected, Sender, authorities, beginning

HEADERS: Final = {
    "accept": "application/json",
    "accept-encoding": "gzip, deflate",
    "content-type": "application/json",
    "user-agent": "organism",
}
LARGE_BYTES: Final = 1 << 20
"""A body of more is sent in pieces."""
LONGEST_HEADER: Final = 64 * 1024


class Plain:
    """The connections to one server. It is made in a thread; its session in the loop, by the first call."""

    def __init__(self, access: Access) -> None:
        key = access.credential()
        self._headers = {**HEADERS, "authorization": f"Bearer {key}"} if key else HEADERS
        self._place = access.base_url.rstrip("/")
        self._tls = _context(access)
        self._session: aiohttp.ClientSession | None = None

    @property
    def sender(self) -> Sender:
        """See ``Sender``."""
        return Sender(self._post, self._close, ())

    async def _post(self, path: str, body: bytes, connect_s: float) -> _Answer:
        session = self._session = self._session or self._opened()
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect_s)
        data = body if len(body) < LARGE_BYTES else BytesIO(body)
        try:
            response = await session.post(
                self._place + path, data=data, headers=self._headers, timeout=timeout, allow_redirects=False
            )
        except aiohttp.ConnectionTimeoutError as error:
            raise NotConnected(error, is_late=True) from None
        except (aiohttp.ClientConnectorError, aiohttp.ClientSSLError) as error:
            raise NotConnected(error.__cause__ or error, is_late=False) from None
        except (aiohttp.ClientError, OSError):
            raise Broken from None
        answer = _Answer(response)
        if HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
            return answer
        try:
            raise Refused(response.status, answer.headers, await beginning(answer))
        finally:
            await answer.aclose()

    def _opened(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT_S, ssl=self._tls)
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            max_line_size=LONGEST_HEADER,
            max_field_size=LONGEST_HEADER,
        )

    async def _close(self) -> None:
        if self._session is not None:
            await self._session.close()


class _Answer:
    """See ``Unread``."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    async def aiter_bytes(self) -> AsyncGenerator[bytes]:
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except (aiohttp.ClientError, OSError) as error:
            raise Broken(is_packed=_is_packed(error)) from None
        except RuntimeError:  # that is how it says that the connection was closed under it
            if self._is_connected():
                raise
            raise Broken from None

    async def aclose(self) -> None:
        self._response.close()

    def _is_connected(self) -> bool:
        connection = self._response.connection
        return connection is not None and connection.protocol is not None and connection.protocol.connected


def _is_packed(error: BaseException) -> bool:
    return isinstance(error, ContentEncodingError) or isinstance(error.__cause__, ContentEncodingError)


def _context(access: Access) -> ssl.SSLContext | bool:
    """The same authorities that every other client here trusts."""
    import httpx2

    verify = authorities(access)
    return httpx2.create_ssl_context(trust_env=False) if verify is True else verify
