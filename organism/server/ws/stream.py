"""Server-Sent Events (``GET /events``): an HTTP response that a viewer writes to, its buffer bounded as a socket's."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

from starlette.types import Receive, Send

from organism.model.principal import Principal
from organism.server.http.call import until_left
from organism.server.http.connections import ConnectionRegistry
from organism.server.push.frames import Filter, as_events
from organism.server.push.snapshot import Start
from organism.server.push.viewer import Tail, Viewer

HIGH_BYTES: Final = 64 * 1024
HEARTBEAT_SECONDS: Final = 15.0
HEARTBEAT: Final = b":\n\n"
"""A comment: proxies see it, listeners do not."""


class Stream:
    """One client's stream, from the first event to its end: the client leaves, its token ends, or the log closes."""

    def __init__(
        self, who: Principal, connections: ConnectionRegistry, tail: Tail, wanted: Filter, start: Start
    ) -> None:
        self.who = who
        self._connections = connections
        self._start = start
        self._viewer = Viewer(tail, self, self.end)
        self._viewer.filter = replace(wanted, form=as_events)
        self._waiting: list[bytes] = []
        self._size = 0
        self._is_over = False
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        connections.add(self)

    async def run(self, receive: Receive, send: Send) -> None:
        leaving = asyncio.ensure_future(self._until_left(receive))
        try:
            if not self._is_over:
                self._viewer.say("connected", **self._start.connected)
                self._viewer.begin(self._start)
            while not self._is_over or self._waiting:
                await self._send_next(send)
        finally:
            leaving.cancel()
            self._viewer.end()
            self._connections.remove(self)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_next(self, send: Send) -> None:
        """Send what waits, or a heartbeat if nothing comes for a while."""
        try:
            async with asyncio.timeout(HEARTBEAT_SECONDS):
                await self._news.wait()
        except TimeoutError:
            self._waiting.append(HEARTBEAT)
        body = b"".join(self._waiting)
        self._news.clear()
        self._waiting.clear()
        await send({"type": "http.response.body", "body": body, "more_body": True})
        self._size = sum(map(len, self._waiting))
        self._room.set()

    async def _until_left(self, receive: Receive) -> None:
        await until_left(receive)
        self._waiting.clear()
        self.end()

    def end(self) -> None:
        """Send what waits, and nothing after it."""
        self._is_over = True
        self._news.set()
        self._room.set()

    def dismiss(self, _code: int) -> None:
        """The token has lost its right to this."""
        self.end()

    # -- what the viewer calls

    @property
    def is_blocked(self) -> bool:
        return self._size >= HIGH_BYTES

    def write_frames(self, frames: bytes) -> None:
        if frames and not self._is_over:
            self._waiting.append(frames)
            self._size += len(frames)
            self._news.set()

    async def drained(self) -> bool:
        while self.is_blocked and not self._is_over:
            self._room.clear()
            await self._room.wait()
        return not self._is_over
