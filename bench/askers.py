"""HTTP clients as cheap as can be, so that it is the server that is measured: each asks again once it was answered."""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlsplit

HEAD = "{method} {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n"
JSON = "application/json"
HEAD_OF_BODY = "Content-Type: {kind}\r\nContent-Length: {length}\r\n"
OK, END_OF_HEAD = re.compile(rb"HTTP/1\.1 20[02] "), b"\r\n\r\n"
LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Body:
    """What is posted, and its media type."""

    text: str
    kind: str = JSON


class NotAnswered(Exception):
    """A server answered with something else than 200 or 202 and a length, or hung up."""


class Asker(asyncio.Protocol):
    """One connection, kept alive; one request at a time."""

    def __init__(self) -> None:
        self._got = b""
        self._whole = 0
        self._answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._answer.done():
            self._answer.set_exception(NotAnswered(f"The server hung up: {exc}."))

    async def ask(self, request: bytes) -> bytes:
        """The body of the answer. Raises ``NotAnswered``."""
        self._got, self._whole = b"", 0
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self._answer

    def data_received(self, data: bytes) -> None:
        self._got += data
        if not self._whole and END_OF_HEAD in self._got:
            self._read_head()
        if self._whole and len(self._got) >= self._whole and not self._answer.done():
            self._answer.set_result(self._got.partition(END_OF_HEAD)[2])

    def _read_head(self) -> None:
        head = self._got[: self._got.index(END_OF_HEAD) + len(END_OF_HEAD)]
        length = LENGTH.search(head)
        if OK.match(head) and length:
            self._whole = len(head) + int(length[1])
        else:
            came = f"Expected 200 or 202 and a content-length, got {self._got[:500]!r}."
            self._answer.set_exception(NotAnswered(came))


class Askers:
    """Connections to one server that ask for its pages in turn."""

    def __init__(self, askers: Sequence[Asker], requests: Sequence[bytes]) -> None:
        self._askers = askers
        self._requests = requests
        self._idle = list(askers)

    async def once(self) -> bytes:
        """The first page, asked for on a connection that is idle; there must be one."""
        asker = self._idle.pop()
        body = await asker.ask(self._requests[0])
        self._idle.append(asker)
        return body

    async def bodies(self) -> list[bytes]:
        """Each page once."""
        return [await self._askers[0].ask(request) for request in self._requests]

    async def ask(self, seconds: float, rate: float = 0) -> list[float]:
        """What each answer took, in seconds; ``rate`` requests a second of all together, or 0: as fast as it goes."""
        end = time.perf_counter() + seconds
        taken: list[float] = []

        async def slot(number: int, asker: Asker) -> None:
            requests = itertools.cycle((*self._requests[number:], *self._requests[:number]))
            if rate:  # not all at once
                await asyncio.sleep(number / rate)
            while (begun := time.perf_counter()) < end:
                await asker.ask(next(requests))
                taken.append(time.perf_counter() - begun)
                if rate:
                    await asyncio.sleep(begun + len(self._askers) / rate - time.perf_counter())

        await asyncio.gather(*(slot(number, asker) for number, asker in enumerate(self._askers)))
        return taken


@asynccontextmanager
async def asking(
    url: str, paths: Sequence[str], token: str, connections: int, post: Body | None = None
) -> AsyncIterator[Askers]:
    """So many connections to a server; at the end they are closed. They POST what is given, or else GET."""
    place, loop = urlsplit(url), asyncio.get_running_loop()
    to = str(place.hostname), place.port or 80
    made = [(await loop.create_connection(Asker, *to))[1] for _ in range(connections)]
    try:
        yield Askers(made, [_request(path, place.netloc, token, post) for path in paths])
    finally:
        for asker in made:
            asker.transport.close()


def _request(path: str, host: str, token: str, post: Body | None) -> bytes:
    head = HEAD.format(method="POST" if post else "GET", path=path, host=host, token=token)
    if post is None:
        return f"{head}\r\n".encode()
    more = HEAD_OF_BODY.format(kind=post.kind, length=len(post.text.encode()))
    return f"{head}{more}\r\n{post.text}".encode()
