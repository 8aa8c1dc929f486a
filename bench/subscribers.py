"""Opens WebSocket subscribers to a server in another process, and tells what each costs that process."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from bench.memory import private_kib

WARM_UP = 100
"""Subscribers that are there before the first look, so that what a server makes once is not counted."""
SUBSCRIBERS = 500
QUICK_SUBSCRIBERS = 150
START_SECONDS = 20.0
LOOK_SECONDS = 0.1
AGREEING_LOOKS = 5


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs: its process, the address of its socket, and what a client has to show."""

    pid: int
    url: str
    headers: dict[str, str]


async def kib_a_subscriber(server: Server, count: int) -> float:
    """Private memory of the server for each of ``count`` subscribers that have got their first frame, in KiB."""
    async with AsyncExitStack() as open_sockets:
        await _open(server, WARM_UP, open_sockets)
        before = await _settled_kib(server.pid)
        await _open(server, count, open_sockets)
        after = await _settled_kib(server.pid)
    return (after - before) / count


async def _open(server: Server, count: int, open_sockets: AsyncExitStack) -> None:
    for _ in range(count):
        socket = await _patiently(server)
        open_sockets.push_async_callback(socket.close)
        await socket.recv()


async def _patiently(server: Server) -> ClientConnection:
    """A socket to the server; it may still be starting. Raises ``TimeoutError`` with what the last try said."""
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            return await connect(server.url, additional_headers=server.headers)
        except (OSError, WebSocketException) as error:
            if time.monotonic() > end:
                raise TimeoutError(f"No WebSocket at {server.url} within {START_SECONDS:g} s: {error}") from error
            await asyncio.sleep(LOOK_SECONDS)


async def _settled_kib(pid: int) -> int:
    """The memory once it has been the same for some looks in a row."""
    looks = [private_kib(pid)]
    while len(looks) < AGREEING_LOOKS or len(set(looks[-AGREEING_LOOKS:])) > 1:
        await asyncio.sleep(LOOK_SECONDS)
        looks.append(private_kib(pid))
    return looks[-1]
