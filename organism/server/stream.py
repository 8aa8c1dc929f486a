"""An HTTP response that is a viewer: Server-Sent Events, the twin of the WebSocket (``GET /events``).

The tail and the viewers know one kind of connection, a ``Socket`` that takes finished frames while it has room. This is
one: what it is given it rewrites as events of SSE and hands to the response. What waits here is bounded, as a socket's
buffer is: above the mark the viewer stops writing, and reads the log at the client's pace.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from organism.model.principal import Principal
from organism.server.call import Receive, Send, until_left
from organism.server.frames import encode
from organism.server.push import Filter, Tail
from organism.server.seats import Seats
from organism.server.viewer import Viewer
from organism.server.wire import frame

HIGH_BYTES: Final = 64 * 1024
HEARTBEAT_SECONDS: Final = 15.0
HEARTBEAT: Final = b":\n\n"
"""A comment: it reaches whoever stands between, and no listener."""
_LONG_HEADS: Final = {126: 4, 127: 10}
"""How long a frame's head is, by the first byte of its length; a short payload's is two bytes."""
_POSITION: Final = re.compile(rb'\{"event":"[a-z_]+","position":(\d+)')


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a stream says first, and where it goes on: see ``Viewer.begin``."""

    connected: Mapping[str, Any]
    position: int
    states_at: int
    announce: bool


class Stream:
    """One client's stream, from the first event to its end: the client leaves, its token ends, or the log closes."""

    def __init__(self, who: Principal, seats: Seats, tail: Tail, wanted: Filter, beginning: Beginning) -> None:
        self.who = who
        self._seats = seats
        self._beginning = beginning
        self._viewer = Viewer(tail, self, self.end)
        self._viewer.filter = wanted
        self._waiting: list[bytes] = []
        self._size = 0
        self._is_over = False
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        seats.take(self)

    async def run(self, receive: Receive, send: Send) -> None:
        """Send until the end, then end the response."""
        leaving = asyncio.ensure_future(self._until_left(receive))
        try:
            self._begin()
            while not self._is_over or self._waiting:
                await self._send_next(send)
        finally:
            leaving.cancel()
            self._viewer.end()
            self._seats.leave(self)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _begin(self) -> None:
        if self._is_over:
            return
        start = self._beginning
        self.write_frames(frame(encode("connected", start.connected)))
        self._viewer.begin(start.position, states_at=start.states_at, announce=start.announce)

    async def _send_next(self, send: Send) -> None:
        """Send what waits, or a heartbeat if nothing comes for a while. A client that takes nothing holds this up."""
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
        """Send what waits still, and no more after it."""
        self._is_over = True
        self._news.set()
        self._room.set()

    def dismiss(self, _code: int) -> None:
        """The token has lost its right to this."""
        self.end()

    # -- what the viewer calls

    @property
    def is_blocked(self) -> bool:
        """Whether there is no room now."""
        return self._size >= HIGH_BYTES

    def write_frames(self, frames: bytes) -> None:
        """Take finished WebSocket frames, to be sent as events."""
        if frames and not self._is_over:
            written = b"".join(map(_event, _payloads(frames)))
            self._waiting.append(written)
            self._size += len(written)
            self._news.set()

    async def drained(self) -> bool:
        """Wait for room; False if the stream is over."""
        while self.is_blocked and not self._is_over:
            self._room.clear()
            await self._room.wait()
        return not self._is_over


def _payloads(frames: bytes) -> Iterator[bytes]:
    """The payloads of finished WebSocket frames, one after the other (RFC 6455, 5.2; see ``wire.frame``)."""
    start = 0
    while start < len(frames):
        said = frames[start + 1]
        head = _LONG_HEADS.get(said, 2)
        length = int.from_bytes(frames[start + 2 : start + head]) if said in _LONG_HEADS else said
        start += head + length
        yield frames[start - length : start]


def _event(payload: bytes) -> bytes:
    """One event: its data is the frame's JSON, which is one line; its id is the position, if it has one."""
    found = _POSITION.match(payload)
    return b"id: %b\ndata: %b\n\n" % (found[1], payload) if found else b"data: %b\n\n" % payload
