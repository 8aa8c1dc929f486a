"""Sockets that do not behave: who stops reading is cut off and delays nobody; who reads slowly gets everything."""

from __future__ import annotations

import asyncio
import socket
from urllib.parse import urlsplit

import orjson
import pytest

from organism.server import transport
from tests.server.served import TOKEN, Frames, Served

BIG = "x" * 200_000
TIMES = 10
HANDSHAKE = (
    "GET /ws HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


def turn() -> asyncio.Future[None]:
    """Done when the loop has turned once."""
    loop = asyncio.get_running_loop()
    turned = loop.create_future()
    loop.call_soon(turned.set_result, None)
    return turned


async def watching(server: Served, count: int) -> None:
    """Wait until so many clients watch."""
    async with asyncio.timeout(20):
        while server.serving.app.watching != count:
            await turn()


async def stalled(server: Served) -> socket.socket:
    """A client that asks for everything and then reads nothing at all, with little room in its kernel."""
    url = urlsplit(server.url)
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(0)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, (url.hostname, url.port))
    await loop.sock_sendall(client, HANDSHAKE.format(host=url.netloc, token=TOKEN).encode())
    return client


async def test_who_stops_reading_is_cut_off_and_delays_nobody(hello: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "STUCK_SECONDS", 0.5)
    async with hello.socket(max_size=None) as healthy:
        frames = Frames(healthy)
        await frames.until("connected")
        silent = [await stalled(hello) for _ in range(5)]
        await watching(hello, 6)
        for _ in range(20):
            await hello.inject(payload={"name": BIG})
            await frames.until("thread_updated", status="completed")
        await watching(hello, 1)
        assert (await frames.ask("ping"))["event"] == "ok"
    for client in silent:
        client.close()


async def test_who_reads_slowly_gets_everything(hello: Served) -> None:
    async with hello.socket(max_size=None, max_queue=1, close_timeout=0.1) as slow:
        first = orjson.loads(await slow.recv())
        for _ in range(TIMES):
            await hello.inject(payload={"name": BIG})
        frames, positions, completed = Frames(slow), [first["position"]], 0
        while completed < TIMES:
            frame = await frames.next()
            completed += frame["event"] == "thread_updated"
            if frame["event"] in {"message", "thread_created", "thread_updated"}:
                positions.append(frame["position"])
            await turn()
    assert positions == sorted(set(positions))
    assert len(positions) == 1 + TIMES * 6
