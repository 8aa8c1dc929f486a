"""One GET over one connection, bounded in size and independent of the environment.

No proxy, cookies, netrc, automatic redirects or compression (a few bytes can inflate to gigabytes). The answer's text
is decoded, freed of what XML cannot carry, and cut to a length.
"""

from __future__ import annotations

import asyncio
import codecs
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from organism.model.handler import EffectKind, HandlerMetadata, HandlerResponse
from organism.model.tool import ToolError, ToolErrorCode
from organism.tools.urls import Target

if TYPE_CHECKING:
    import httpx2

AGENT: Final = "organism"
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
EXTRA_SECONDS: Final = 5.0
"""How much longer than the call to the outside its handling may take."""
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
"""The charsets of the web. Python knows others, some of which are slow and some no charsets at all."""
_COSTS: Final = {"&": 5, "<": 4, ">": 4, "\r": 5, '"': 6, "\\": 2, "\n": 2, "\t": 2}
"""How many bytes a character takes in XML or in JSON, whichever is more."""


class ToolFailure(Exception):
    """A tool could not do what it was asked; ``code`` and ``message`` are those of its ``ToolError``."""

    def __init__(self, code: ToolErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Net:
    """The network; tests replace it."""

    tls: ssl.SSLContext | None = field(default=None, compare=False)
    """The trusted authorities, in place of the system's."""

    async def addresses(self, host: str, port: int) -> list[str]:
        """All addresses of a host, by one lookup. Raises ``OSError`` if there is none."""
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(each[4][0]) for each in found))

    def endpoint(self, address: str, port: int) -> tuple[str, int]:
        return address, port


class WebAnswer(NamedTuple):
    """An answer. ``body`` has at most as many bytes as were wanted; ``is_cut`` says that there were more."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    is_cut: bool

    @property
    def location(self) -> str | None:
        """Where it redirects to, if it does."""
        return self.headers.get("location") if self.status in REDIRECTS else None


async def get(net: Net, target: Target, address: str, accept: str, most_bytes: int) -> WebAnswer:
    """One GET over a connection to ``address``. Raises ``ToolFailure``; the caller bounds the time."""
    await asyncio.to_thread(import_module, "httpx2")  # the first time this takes 0.1 s
    import httpx2

    address, port = net.endpoint(address, target.port)
    host = f"[{address}]" if ":" in address else address
    headers = {"Host": target.authority, "User-Agent": AGENT, "Accept": accept, "Accept-Encoding": "identity"}
    request = httpx2.Request(
        "GET",
        httpx2.URL(f"{target.scheme}://{host}:{port}").copy_with(raw_path=target.path.encode("ascii")),
        headers=headers,
        extensions={"sni_hostname": target.host.strip("[]")},
    )
    one = httpx2.Limits(max_connections=1, max_keepalive_connections=0)
    try:
        async with httpx2.AsyncHTTPTransport(verify=net.tls or True, trust_env=False, limits=one) as transport:
            response = await transport.handle_async_request(request)
            async with aclosing(response):
                return await _read(response, most_bytes)
    except httpx2.TransportError as error:
        raise ToolFailure("upstream_error", f"{target.authority} did not answer: {one_line(error)}.") from error


def one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


def is_compressed(response: httpx2.Response) -> bool:
    """Whether the body is compressed, against the request."""
    return response.headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}


async def _read(response: httpx2.Response, most_bytes: int) -> WebAnswer:
    if is_compressed(response):
        raise ToolFailure("upstream_error", "The answer is compressed, though it was asked for as it is.")
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > most_bytes:
            break
    return WebAnswer(response.status_code, dict(response.headers), bytes(body[:most_bytes]), len(body) > most_bytes)


async def as_step(  # noqa: PLR0913, PLR0917 - a step and what becomes of it
    metadata: HandlerMetadata,
    key: str,
    ask: Callable[[], Awaitable[dict[str, Any]]],
    seconds: float,
    reply: Callable[..., object],
    kind: EffectKind = "pure",
) -> HandlerResponse:
    """Ask once, as a recorded step: ``ask`` gives the fields of the ``reply``; its failure becomes a ``ToolError``."""

    async def fields(_key: str) -> dict[str, Any]:
        try:
            async with asyncio.timeout(seconds):
                return {"answer": await ask()}
        except TimeoutError:
            return {"code": "upstream_timeout", "message": f"There was no whole answer within {seconds:g} seconds."}
        except ToolFailure as error:
            return {"code": error.code, "message": error.message}

    found = await metadata.effect(key, fields, kind)
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


def written_bytes(text: str) -> int:
    """How many bytes a text takes at most, as XML or as JSON."""
    return sum(_COSTS.get(character) or len(character.encode()) for character in text)


def cut(text: str, most_bytes: int) -> str:
    """The beginning of a text that takes at most so many bytes, as XML and as JSON."""
    left = most_bytes
    for at, character in enumerate(text):
        left -= _COSTS.get(character) or len(character.encode())
        if left < 0:
            return text[:at]
    return text
