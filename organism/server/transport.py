"""uvicorn's WebSocket protocol, open to viewers: finished frames go straight to the transport.

A frame from a server is not masked, so its bytes are the same for everyone: it is encoded once, and a commit's frames
go out in one write. The protocol also says when its buffer is full, and cuts off a peer that takes nothing: uvicorn
itself never frees a client that stops reading (S15).
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import sys
import termios
from asyncio.transports import BaseTransport
from typing import Any, Final, cast

from websockets.frames import Frame
from websockets.protocol import OPEN

from organism.server.handshake import StrictHandshake

STUCK_SECONDS: Final = 6.0
"""So long may a peer take nothing of what waits for it."""
LOOKS: Final = 6
"""How often within that time it is looked at."""
CLOSE_SECONDS: Final = 5.0
"""So long may a peer leave a close unanswered."""
SEND_BYTES: Final = 128 << 10
"""What the kernel may hold of a connection's frames; it doubles the number. By itself it would take megabytes."""
EXTENSION: Final = "organism.frames"


class FrameProtocol(StrictHandshake):
    """One WebSocket connection. The app finds it in its scope, under ``extensions`` and the name ``EXTENSION``."""

    def connection_made(self, transport: BaseTransport) -> None:
        """Bound what the kernel takes: what lies there is out of reach, and a peer that reads nothing fills it."""
        super().connection_made(transport)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)

    async def run_asgi(self) -> None:
        """Hand this protocol to the app with its scope."""
        cast("dict[str, Any]", self.scope["extensions"])[EXTENSION] = self
        await super().run_asgi()

    async def send(self, message: Any) -> None:
        """Send for the app.

        A handshake that it refused by an HTTP answer is complete: uvicorn would log an error. A close that is not
        answered ends in an abort: uvicorn's own end waits until the peer has read everything.
        """
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True
        if self.close_timer is not None:
            self.close_timer.cancel()
            self.close_timer = self.loop.call_later(CLOSE_SECONDS, self.transport.abort)

    def handle_ping(self) -> None:
        """Answer a ping, unless the peer takes no answers: else whoever pings and never reads would fill the memory."""
        pong = b"".join(self.conn.data_to_send())
        if not self.is_blocked:
            self.transport.write(pong)

    def handle_cont(self, event: Frame) -> None:
        """Take a part of a message. Empty ones would be no bytes and still pile up."""
        if event.data or event.fin:
            super().handle_cont(event)

    def keepalive_timeout(self) -> None:
        """No pong came in time. One whose ping still waits behind frames is judged by ``drained``, not here."""
        if self.is_blocked and self.is_open:
            self.pong_timer = None
            self.schedule_ping()
            return
        super().keepalive_timeout()
        self.loop.call_later(CLOSE_SECONDS, self.transport.abort)

    @property
    def is_open(self) -> bool:
        """Whether a frame may still be written."""
        return (
            self.conn.state is OPEN
            and not self.close_sent
            and not self.disconnected
            and not self.transport.is_closing()
        )

    @property
    def is_blocked(self) -> bool:
        """Whether the buffer is above its high-water mark: then nothing more should be written until ``drained``."""
        return not self.writable.is_set()

    def write_frames(self, frames: bytes) -> None:
        """Write finished frames (or none); those of a connection that is over go nowhere."""
        if frames and self.is_open:
            self.transport.write(frames)

    async def drained(self) -> bool:
        """Wait until there is room again; False if the connection is over.

        A client that takes nothing for six seconds is cut off; one that is merely slow is not.
        """
        least, looks = sys.maxsize, 0
        while self.is_blocked:
            unsent = self._unsent_bytes()
            looks = 0 if unsent < least else looks + 1
            least = min(least, unsent)
            if looks > LOOKS:
                self.transport.abort()
                return False
            await self._room(STUCK_SECONDS / LOOKS)
        return self.is_open

    async def _room(self, seconds: float) -> None:
        """Return once there is room, or after so long."""
        try:
            async with asyncio.timeout(seconds):
                await self.writable.wait()
        except TimeoutError:
            return

    def _unsent_bytes(self) -> int:
        """What the peer has not taken yet: in this process, and in the kernel, which frees its room in large steps."""
        waiting = self.transport.get_write_buffer_size()
        if self.transport.is_closing():
            return waiting
        held = fcntl.ioctl(self.transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
        return waiting + int.from_bytes(held, sys.byteorder)
