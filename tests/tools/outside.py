"""The outside of a tool, played on loopback: names that lead where a test says, and servers that say what it says."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from organism.tools.web import Net

T = TypeVar("T")
PUBLIC = "93.184.216.34"


@dataclass(frozen=True, slots=True)
class PlayedNet(Net):
    """``names`` maps a host to the answers of one look-up after the other; the last one stays.

    Whatever is connected to leads to the server at ``port``, but for ``silent`` addresses. ``looked_up`` and
    ``connected`` say what was asked for.
    """

    names: dict[str, list[list[str]]] = field(default_factory=dict)
    port: int = 0
    silent: frozenset[str] = frozenset()
    looked_up: list[str] = field(default_factory=list)
    connected: list[tuple[str, int]] = field(default_factory=list)

    async def addresses(self, host: str, port: int) -> list[str]:
        self.looked_up.append(host)
        if host not in self.names:
            raise OSError(f"no such name: {host}:{port}")
        answers = self.names[host]
        return answers.pop(0) if len(answers) > 1 else answers[0]

    def endpoint(self, address: str, port: int) -> tuple[str, int]:
        self.connected.append((address, port))
        return "127.0.0.1", 1 if address in self.silent else self.port


@dataclass(slots=True)
class Server:
    """A real server that answers each request by what ``say`` makes of its head; ``heads`` are those that came."""

    say: Callable[[str], bytes | None]
    port: int = 0
    heads: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read one head, say the answer, close; None says nothing until the client goes."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            self.heads.append(head)
            answer = self.say(head)
            if answer is None:
                await reader.read()
            else:
                writer.write(answer)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()


def answer(body: bytes = b"", status: str = "200 OK", kind: str = "text/plain", **headers: str) -> bytes:
    """A whole HTTP answer."""
    named = {
        "content-length": str(len(body)),
        "content-type": kind,
        **{k.replace("_", "-"): v for k, v in headers.items()},
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items() if value)
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body


@asynccontextmanager
async def served(say: Callable[[str], bytes | None], tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    """A server on loopback."""
    server = Server(say)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=tls)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        await listening.wait_closed()


class Steps:
    """A handler's metadata that runs each effect at once, and keeps what came of it."""

    def __init__(self) -> None:
        self.effects: list[tuple[str, str]] = []

    async def effect(self, key: str, fn: Callable[[str], Awaitable[T]], kind: str = "idempotent") -> T:
        self.effects.append((key, kind))
        return await fn(f"msg-1/{key}")

    async def now(self) -> datetime:
        return datetime(2026, 1, 15, tzinfo=UTC)


def path_of(head: str) -> str:
    """The path that was asked for."""
    return head.split(" ")[1]


def lines_of(head: str) -> dict[str, str]:
    """The headers of a request."""
    pairs: list[Any] = [line.split(": ", 1) for line in head.strip().split("\r\n")[1:]]
    return {name.lower(): value for name, value in pairs}
