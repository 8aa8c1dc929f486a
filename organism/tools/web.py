"""Asking the web: one GET over one connection, bounded in time and size, with nothing of the environment in it.

No proxy, no cookies, no netrc, no redirects by themselves, no compression (a few bytes can inflate to gigabytes).
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import httpx2

from organism.model.tool import ToolErrorCode

AGENT: Final = "organism"
_ONE: Final = httpx2.Limits(max_connections=1, max_keepalive_connections=0)


class NoAnswer(Exception):
    """There is no answer that could be used. ``code`` and ``message`` are those of a ``ToolError``."""

    def __init__(self, code: ToolErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Net:
    """The network as it is; a test puts another in its place."""

    tls: ssl.SSLContext | None = field(default=None, compare=False)
    """Whom to believe, instead of the system's own authorities."""

    async def addresses(self, host: str, port: int) -> list[str]:
        """Every address of a host, by one look-up. Raises ``OSError`` if there is none."""
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(each[4][0]) for each in found))

    def way_to(self, address: str, port: int) -> tuple[str, int]:
        return address, port


class Place(NamedTuple):
    """Whom to ask for what: ``address`` is connected to, ``host`` is the name that it must prove to have."""

    scheme: str
    address: str
    port: int
    host: str
    authority: str
    path: str


class Got(NamedTuple):
    """An answer. ``body`` is no longer than was wished; ``is_cut`` says that there was more."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_cut: bool


async def got(net: Net, place: Place, accept: str, most_bytes: int) -> Got:
    """Ask once. Raises ``NoAnswer``; the caller bounds the time."""
    address, port = net.way_to(place.address, place.port)
    shown = f"[{address}]" if ":" in address else address
    headers = {"Host": place.authority, "User-Agent": AGENT, "Accept": accept, "Accept-Encoding": "identity"}
    request = httpx2.Request(
        "GET",
        httpx2.URL(f"{place.scheme}://{shown}:{port}").copy_with(raw_path=place.path.encode("ascii")),
        headers=headers,
        extensions={"sni_hostname": place.host.strip("[]")},
    )
    transport = httpx2.AsyncHTTPTransport(verify=net.tls or True, trust_env=False, limits=_ONE)
    try:
        async with transport:
            response = await transport.handle_async_request(request)
            try:
                return await _read(response, most_bytes)
            finally:
                await response.aclose()
    except httpx2.TransportError as error:
        raise NoAnswer("upstream_error", f"{place.authority} did not answer: {_said(error)}.") from error


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__


async def _read(response: httpx2.Response, most_bytes: int) -> Got:
    if response.headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}:
        raise NoAnswer("upstream_error", "The answer is compressed, though it was asked for as it is.")
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > most_bytes:
            break
    return Got(response.status_code, dict(response.headers), bytes(body[:most_bytes]), len(body) > most_bytes)
