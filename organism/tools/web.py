"""Asking the web: one GET over one connection, bounded in time and size, with nothing of the environment in it.

No proxy, cookies, netrc, automatic redirects or compression (a few bytes can inflate to gigabytes). What comes is
decoded, freed of what XML cannot carry, and cut to a length.
"""

from __future__ import annotations

import asyncio
import codecs
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import httpx2

from organism.model.handler import HandlerMetadata, HandlerResponse
from organism.model.tool import ToolError, ToolErrorCode
from organism.tools.urls import Target

AGENT: Final = "organism"
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
SECONDS_MORE: Final = 5.0
"""A handling has this much longer than its answer from outside."""
_ONE: Final = httpx2.Limits(max_connections=1, max_keepalive_connections=0)
_UNFIT: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CHARSET: Final = re.compile(r"(?i)\bcharset\s*=\s*\"?([A-Za-z0-9._:-]{1,40})")
_CHARSETS: Final = frozenset(
    {
        "ascii", "utf-8", "utf-16", "utf-16-le", "utf-16-be", "big5", "gbk", "gb2312", "gb18030", "shift_jis", "euc_jp",
        "euc_kr", "iso2022_jp", "koi8-r", "koi8-u", "mac-roman",
        *(f"iso8859-{part}" for part in (*range(1, 12), 13, 14, 15, 16)),
        *(f"cp125{page}" for page in range(9)),
    }
)  # fmt: skip
"""Those that the web speaks. Python knows others, of which some take long and some are no charsets at all."""
_COSTS: Final = {"&": 5, "<": 4, ">": 4, "\r": 5, '"': 6, "\\": 2, "\n": 2, "\t": 2}
"""What a character comes to in XML or in JSON, whichever is more."""


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


class Got(NamedTuple):
    """An answer. ``body`` is no longer than was wished; ``is_cut`` says that there was more."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_cut: bool

    @property
    def location(self) -> str | None:
        """Where it redirects to, if it does."""
        return self.headers.get("location") if self.status in REDIRECTS else None


async def got(net: Net, target: Target, address: str, accept: str, most_bytes: int) -> Got:
    """Ask once, connecting to ``address``. Raises ``NoAnswer``; the caller bounds the time."""
    address, port = net.way_to(address, target.port)
    shown = f"[{address}]" if ":" in address else address
    headers = {"Host": target.authority, "User-Agent": AGENT, "Accept": accept, "Accept-Encoding": "identity"}
    request = httpx2.Request(
        "GET",
        httpx2.URL(f"{target.scheme}://{shown}:{port}").copy_with(raw_path=target.path.encode("ascii")),
        headers=headers,
        extensions={"sni_hostname": target.host.strip("[]")},
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
        raise NoAnswer("upstream_error", f"{target.authority} did not answer: {in_short(error)}.") from error


def in_short(error: BaseException) -> str:
    """An error in one line."""
    return " ".join(str(error).split())[:300] or type(error).__name__


def is_compressed(response: httpx2.Response) -> bool:
    """Whether it is, though it was asked for as it is."""
    return response.headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}


async def _read(response: httpx2.Response, most_bytes: int) -> Got:
    if is_compressed(response):
        raise NoAnswer("upstream_error", "The answer is compressed, though it was asked for as it is.")
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > most_bytes:
            break
    return Got(response.status_code, dict(response.headers), bytes(body[:most_bytes]), len(body) > most_bytes)


async def asked(
    metadata: HandlerMetadata,
    key: str,
    ask: Callable[[], Awaitable[dict[str, Any]]],
    seconds: float,
    reply: Callable[..., object],
) -> HandlerResponse:
    """Ask once, as a step: ``ask`` gives the fields of the ``reply``; its ``NoAnswer`` becomes a ``ToolError``."""

    async def fields(_key: str) -> dict[str, Any]:
        try:
            async with asyncio.timeout(seconds):
                return {"answer": await ask()}
        except TimeoutError:
            return {"code": "upstream_timeout", "message": f"There was no whole answer within {seconds:g} seconds."}
        except NoAnswer as error:
            return {"code": error.code, "message": error.message}

    found = await metadata.effect(key, fields, kind="pure")
    return HandlerResponse.respond(reply(**found["answer"]) if "answer" in found else ToolError(**found))


# ── text ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def decoded(body: bytes, content_type: str) -> str:
    """The body as text: by its charset if that is a usual one, else as UTF-8; what does not fit becomes U+FFFD."""
    named = _CHARSET.search(content_type)
    return clean(body.decode(_charset(named[1]) if named else "utf-8", "replace")).removeprefix("\ufeff")


def clean(text: str) -> str:
    """The text with U+FFFD for each character that XML cannot carry."""
    return _UNFIT.sub("\ufffd", text)


def _charset(name: str) -> str:
    try:
        known = codecs.lookup(name).name
    except LookupError:
        return "utf-8"
    return known if known in _CHARSETS else "utf-8"


def cut(text: str, most_bytes: int) -> str:
    """The beginning of a text that takes at most so many bytes, as XML and as JSON."""
    left = most_bytes
    for at, character in enumerate(text):
        left -= _COSTS.get(character) or len(character.encode())
        if left < 0:
            return text[:at]
    return text
