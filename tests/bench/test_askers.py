"""The clients of the REST rows: a figure of theirs counts only whole, good answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import cast

import pytest

from bench.askers import NotAnswered, asking

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"


class Answering(asyncio.Protocol):
    """Answers each request with these pieces, one a turn of the loop; hangs up if there are none."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.is_gone = asyncio.Event()
        self._pieces = pieces

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._answer(self._pieces)

    def _answer(self, pieces: Sequence[bytes]) -> None:
        if not self._pieces:
            self._transport.close()
        elif pieces:
            self._transport.write(pieces[0])
            asyncio.get_running_loop().call_soon(self._answer, pieces[1:])

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_gone.set()


@asynccontextmanager
async def answering(*pieces: bytes) -> AsyncIterator[str]:
    """The address of a server that answers so."""
    connections: list[Answering] = []

    def connected() -> Answering:
        connections.append(Answering(pieces))
        return connections[-1]

    server = await asyncio.get_running_loop().create_server(connected, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for each in connections:
            await each.is_gone.wait()


@pytest.mark.parametrize("cut", [5, len(HEAD) - 2, len(HEAD), len(HEAD) + 3])
async def test_an_answer_that_comes_in_pieces_is_whole(cut: int) -> None:
    whole = HEAD + b"sixsix"
    async with answering(whole[:cut], whole[cut:]) as url, asking(url, ["/a", "/b"], "token", 1) as clients:
        assert await clients.bodies() == [b"sixsix", b"sixsix"]


async def test_each_answer_is_timed() -> None:
    async with answering(HEAD, b"sixsix") as url, asking(url, ["/a", "/b"], "token", 2) as clients:
        taken = await clients.ask(0.02)
    assert len(taken) >= 2
    assert all(seconds > 0 for seconds in taken)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 429 Too Many\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"])
async def test_an_answer_that_is_none_ends_the_measurement(answer: bytes) -> None:
    async with answering(answer) as url, asking(url, ["/a"], "token", 1) as clients:
        with pytest.raises(NotAnswered, match="Expected 200 or 202 and a content-length"):
            await clients.bodies()


async def test_a_server_that_hangs_up_ends_the_measurement() -> None:
    async with answering() as url, asking(url, ["/a"], "token", 1) as clients:
        with pytest.raises(NotAnswered, match="hung up"):
            await clients.bodies()
