"""WebSocket clients as cheap as can be, so that it is the server that is measured: they count, and decode nothing."""

from __future__ import annotations

import asyncio
import re
import socket
import time
from typing import cast
from urllib.parse import urlsplit

HANDSHAKE = (
    "GET {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Upgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
GREETING = b'"event":"connected"'
PING, PONG = b"\x89\x04", b"\x8a\x84\0\0\0\0"
"""uvicorn's ping has four bytes; what else comes is JSON, where these never stand. A pong goes under a mask of 0."""
NUMBER = re.compile(rb'"n":(\d+)')
NUMBER_BYTES = 16
LITTLE_BYTES = 4096


class Listener(asyncio.Protocol):
    """Counts the frames in which ``mark`` stands. ``arrivals`` is when each message came, by its number (ns)."""

    def __init__(self, mark: bytes, *, keeps_times: bool) -> None:
        self.counted = 0
        self.arrivals: dict[int, int] = {}
        self.is_in = asyncio.Event()
        self._mark = mark
        self._keeps_times = keeps_times
        self._rest = b""
        self._wanted = 0
        self._reached = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter_ns()
        whole = self._rest + data
        if (ping := whole.find(PING)) >= 0:
            self.transport.write(PONG + whole[ping + len(PING) : ping + len(PING) + 4])
        if not self.is_in.is_set() and GREETING in whole:
            self.is_in.set()
        self.counted += whole.count(self._mark)
        if self._keeps_times:
            for number in NUMBER.findall(whole):
                self.arrivals.setdefault(int(number), now)
        self._rest = self._tail(whole)
        if self.counted >= self._wanted:
            self._reached.set()

    def _tail(self, whole: bytes) -> bytes:
        """The end of what came, where a mark or a number may have begun."""
        begun = whole.rfind(b'"n":', max(len(whole) - NUMBER_BYTES, 0)) if self._keeps_times else -1
        return whole[begun if begun >= 0 else max(len(whole) - len(self._mark) + 1, 0) :]

    async def until(self, counted: int) -> None:
        """Wait until it has counted so many."""
        self._wanted = counted
        self._reached.clear()
        if self.counted < counted:
            await self._reached.wait()


async def listen(url: str, headers: dict[str, str], mark: bytes, *, keeps_times: bool = False) -> Listener:
    """A client that listens, and has got its first frame."""
    listener = await _open(url, headers, socket.socket(), Listener(mark, keeps_times=keeps_times))
    await listener.is_in.wait()
    return listener


async def stall(url: str, headers: dict[str, str]) -> Listener:
    """A client that has asked for everything and reads nothing, with little room in its kernel."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, LITTLE_BYTES)
    listener = await _open(url, headers, client, Listener(b"?", keeps_times=False))
    listener.transport.pause_reading()
    return listener


async def _open(url: str, headers: dict[str, str], client: socket.socket, listener: Listener) -> Listener:
    place = urlsplit(url)
    client.settimeout(0)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, (place.hostname, place.port))
    written = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    path = f"{place.path}?{place.query}" if place.query else place.path
    await loop.sock_sendall(client, HANDSHAKE.format(path=path, host=place.netloc, headers=written).encode())
    await loop.create_connection(lambda: listener, sock=client)
    return listener
