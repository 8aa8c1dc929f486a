"""One connection of the peer: reads requests, plays the answers of the script."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, cast

from tests.agents.peer import chat, messages
from tests.agents.peer.answers import Answer

END_OF_HEAD = b"\r\n\r\n"

Taken = Callable[["Connection", str, str, bytes], Awaitable[None]]


class Connection(asyncio.Protocol):
    """HTTP/1.1 as far as clients of models speak it; kept alive, one request at a time."""

    def __init__(self, taken: Taken, count: Callable[[int], None]) -> None:
        self._taken = taken
        self._count = count
        self._got = b""
        self._task: asyncio.Task[None] | None = None
        self.headers: dict[str, str] = {}
        self.lost = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._count(1)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()
        self._count(-1)

    def data_received(self, data: bytes) -> None:
        self._got += data
        if self._task is None:
            self._next()

    def _next(self) -> None:
        head, end, rest = self._got.partition(END_OF_HEAD)
        first, *lines = head.decode("latin-1").split("\r\n")
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        size = int(self.headers.get("content-length", 0))
        if end and len(rest) >= size:
            self._got = rest[size:]
            method, target, _ = first.split(" ", 2)
            self._task = asyncio.ensure_future(self._taken(self, method, target, rest[:size]))
            self._task.add_done_callback(self._answered)

    def _answered(self, task: asyncio.Task[None]) -> None:
        task.result()
        self._task = None
        if not self.transport.is_closing():
            self._next()

    def say(self, content: Any) -> None:
        """Send JSON to the program that steers the peer."""
        body = json.dumps(content).encode()
        self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)

    async def left(self, seconds: float | None = None) -> bool:
        """Wait so long, or for ever, whether the other side goes; whether it went."""
        try:
            await asyncio.wait_for(self.lost.wait(), seconds)
        except TimeoutError:
            return False
        return True


async def play(answer: Answer, to: Connection, asked: dict[str, Any], path: str) -> str:
    """Send the answer as it says; gives how it ended: ``answered``, ``cut``, or ``gone`` if the other side went."""
    head, chunks = _rendered(answer, asked, path)
    for number, chunk in enumerate([head, *chunks]):
        if answer.cut_after == number:
            to.transport.abort()
            return "cut"
        if answer.hang_after == number:
            await to.left()
        if number > 1 and answer.drip_s:
            await to.left(answer.drip_s)
        if to.lost.is_set():
            return "gone"
        to.transport.write(chunk)
    return "answered"


def _rendered(answer: Answer, asked: dict[str, Any], path: str) -> tuple[bytes, list[bytes]]:
    """The head, and the chunks as they are written."""
    kind, pieces = _content(answer, asked, path)
    if answer.chunk_bytes:
        body, size = b"".join(pieces), answer.chunk_bytes
        pieces = [body[at : at + size] for at in range(0, len(body), size)]
    lines = {"content-type": kind, **{name.lower(): value for name, value in answer.headers.items()}}
    lines["transfer-encoding"] = "chunked"
    pieces = [*(b"%x\r\n" % len(piece) + piece + b"\r\n" for piece in pieces if piece), b"0\r\n\r\n"]
    head = [f"HTTP/1.1 {answer.status} Said", *(f"{name}: {value}" for name, value in lines.items())]
    return "\r\n".join(head).encode("latin-1") + END_OF_HEAD, pieces


def _content(answer: Answer, asked: dict[str, Any], path: str) -> tuple[str, list[bytes]]:
    """The type of the body, and its pieces."""
    api = messages if path.endswith("/messages") else chat
    if answer.body is not None:
        kind = "text/event-stream" if asked.get("stream") else "application/json"
        return kind, list(_events(answer.body)) * answer.repeats
    if answer.error:
        return "application/json", [api.failure(answer)]
    if asked.get("stream"):
        return "text/event-stream", api.events(answer, asked)
    return "application/json", [chat.whole(answer, asked)]


def _events(body: bytes) -> Iterator[bytes]:
    """Where the body is one of events, these; else all of it."""
    *whole, rest = body.split(b"\n\n")
    yield from (event + b"\n\n" for event in whole)
    yield rest
