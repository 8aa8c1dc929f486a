"""Sockets that do not behave: who stops reading is cut off and delays nobody; who reads slowly gets everything."""

from __future__ import annotations

import asyncio
import socket
from urllib.parse import urlsplit

import orjson
import pytest

from organism.server import transport
from organism.server.transport import FrameProtocol
from tests.server.served import TOKEN, Frames, Served

BIG = "x" * 200_000
TIMES = 10
LITTLE = 1 << 18
PING, TEXT_TO_GO_ON, PART_TO_GO_ON = 0x89, 0x01, 0x00
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


def masked(opcode: int, payload: bytes) -> bytes:
    """A frame from a client, under a mask of zeros."""
    return bytes((opcode, 0x80 | len(payload), 0, 0, 0, 0)) + payload


@pytest.fixture
def protocols(monkeypatch: pytest.MonkeyPatch) -> list[FrameProtocol]:
    """The server's side of each connection that is opened."""
    opened: list[FrameProtocol] = []
    run = FrameProtocol.run_asgi

    async def noting(self: FrameProtocol) -> None:
        opened.append(self)
        await run(self)

    monkeypatch.setattr(FrameProtocol, "run_asgi", noting)
    return opened


async def test_pings_of_one_that_never_reads_fill_no_memory(hello: Served, protocols: list[FrameProtocol]) -> None:
    silent = await stalled(hello)
    await watching(hello, 1)
    for _ in range(8):
        await asyncio.get_running_loop().sock_sendall(silent, masked(PING, b"x" * 125) * 8192)
    assert protocols[0].is_blocked
    assert protocols[0].transport.get_write_buffer_size() < LITTLE
    silent.close()


async def test_parts_without_bytes_pile_up_nowhere(hello: Served, protocols: list[FrameProtocol]) -> None:
    client = await stalled(hello)
    await watching(hello, 1)
    begin, empty, ping = masked(TEXT_TO_GO_ON, b'{"cmd":'), masked(PART_TO_GO_ON, b""), masked(PING, b"done")
    await asyncio.get_running_loop().sock_sendall(client, begin + empty * 1000 + ping)
    async with asyncio.timeout(20):
        while not protocols[0].frames:
            await turn()
    assert len(protocols[0].frames) == 1
    client.close()


async def test_one_that_answers_no_ping_is_gone(hello: Served, protocols: list[FrameProtocol]) -> None:
    silent = await stalled(hello)
    await watching(hello, 1)
    protocols[0].ping_timeout = 0.1
    protocols[0].send_keepalive_ping()
    await watching(hello, 0)
    silent.close()


async def test_a_close_that_nobody_answers_ends_in_an_abort(
    hello: Served, protocols: list[FrameProtocol], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport, "CLOSE_SECONDS", 0.1)
    silent = await stalled(hello)
    await watching(hello, 1)
    await protocols[0].send({"type": "websocket.close", "code": 1012})
    async with asyncio.timeout(20):
        while not protocols[0].disconnected:
            await turn()
    silent.close()


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
