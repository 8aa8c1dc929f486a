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

from websockets.frames import CloseCode, Frame
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
SHORT_HEAD: Final = 2
MASK_BYTES: Final = 4
LONG_LENGTHS: Final = {126: (2, 126), 127: (8, 1 << 16)}
"""By the length in a frame's second byte: how many bytes follow with the real one, and the least that needs them."""


class FrameLengths:
    """Follows the frames that come in by their heads alone: a length must have its shortest form (RFC 6455, 5.2)."""

    def __init__(self) -> None:
        self._head = b""
        self._left = 0

    def are_shortest(self, data: bytes) -> bool:
        """Whether all lengths in the next bytes of the connection are."""
        at = 0
        while at < len(data):
            if self._left:
                taken = min(self._left, len(data) - at)
                self._left -= taken
                at += taken
                continue
            self._head += data[at : at + 1]
            at += 1
            if not self._take_head():
                return False
        return True

    def _take_head(self) -> bool:
        """Note how long the frame is once its head is whole; False if that is said in more bytes than it takes."""
        if len(self._head) < SHORT_HEAD:
            return True
        length = self._head[1] & 0x7F
        more, least = LONG_LENGTHS.get(length, (0, 0))
        if len(self._head) < SHORT_HEAD + more:
            return True
        if more:
            length = int.from_bytes(self._head[SHORT_HEAD:])
        self._head, self._left = b"", length + MASK_BYTES
        return length >= least


class FrameProtocol(StrictHandshake):
    """One WebSocket connection. The app finds it in its scope, under ``extensions`` and the name ``EXTENSION``."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._lengths = FrameLengths()

    def connection_made(self, transport: BaseTransport) -> None:
        """Bound what the kernel takes: what lies there is out of reach, and a peer that reads nothing fills it."""
        super().connection_made(transport)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)

    def data_received(self, data: bytes) -> None:
        """Take what came: the handshake first, whole, then frames."""
        if self.handshake_initiated and not self.close_sent and not self._lengths.are_shortest(data):
            self._fail(CloseCode.PROTOCOL_ERROR, "the length of a frame is not in its shortest form")
            return
        super().data_received(data)

    def send_receive_event_to_app(self) -> None:
        """Hand a message to the app. uvicorn would log a trace for each that is no UTF-8."""
        if self.curr_msg_data_type == "text" and not self.close_sent:
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:
                self._fail(CloseCode.INVALID_DATA, "a text is UTF-8")
                return
        super().send_receive_event_to_app()

    def _fail(self, code: CloseCode, reason: str) -> None:
        """End the connection for what it sent; nothing more of that is read."""
        self.frames = []
        self.conn.fail(code, reason)
        self.handle_parser_exception()

    def handle_parser_exception(self) -> None:
        """Close after what is no frame. Before the handshake's end no close frame can be sent, and uvicorn fails."""
        if self.conn.close_sent is None:
            self.transport.abort()
            return
        super().handle_parser_exception()

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
