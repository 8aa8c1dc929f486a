"""uvicorn's WebSocket protocol, extended where its settings do not reach.

This is the one file that uses uvicorn's and websockets' internals, so uvicorn is pinned to its minor version.

- Finished frames go straight to the transport: a frame from a server is not masked, so it is encoded once for all
  viewers, and a commit's frames leave in one write.
- A peer that takes nothing is cut off, and pings of one that does not read are not answered: uvicorn never frees
  such a client (S15).
- A refused handshake is answered in the shape of every other error (S31); uvicorn answers in plain text.
- Frames are held to RFC 6455 where websockets is lenient.
"""

from __future__ import annotations

import asyncio
import fcntl
import socket
import sys
import termios
from asyncio.transports import BaseTransport
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame
from websockets.http11 import Request
from websockets.protocol import OPEN

from organism.errors import InvalidRequest, OrganismError
from organism.server.strict import whole_answer

STUCK_SECONDS: Final = 6.0
"""How long a peer may take nothing of what waits for it."""
LOOKS: Final = 6
"""How often within that time it is checked."""
CLOSE_SECONDS: Final = 5.0
"""How long a peer may leave a close unanswered."""
SEND_BYTES: Final = 128 << 10
"""The kernel's send buffer of a connection (Linux doubles it); by default it would grow to megabytes."""
EXTENSION: Final = "organism.frames"
SHORT_HEAD: Final = 2
MASK_BYTES: Final = 4
LONG_LENGTHS: Final = {126: (2, 126), 127: (8, 1 << 16)}
"""By the length in a frame's second byte: how many length bytes follow, and the least length that needs them."""


class FrameLengths:
    """Checks that each incoming frame states its length in the shortest form (RFC 6455, 5.2)."""

    def __init__(self) -> None:
        self._head = b""
        self._left = 0

    def are_shortest(self, data: bytes) -> bool:
        """Whether all lengths in the next bytes of the connection are in their shortest form."""
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
        """Read the frame's length once its head is complete; False if it uses more bytes than needed."""
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


class FrameProtocol(WebSocketsSansIOProtocol):
    """One WebSocket connection. The app finds it in its scope, under ``extensions`` and the name ``EXTENSION``."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._lengths = FrameLengths()

    def connection_made(self, transport: BaseTransport) -> None:
        """Limit the kernel's send buffer: a peer that reads nothing fills it."""
        super().connection_made(transport)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)

    def data_received(self, data: bytes) -> None:
        """Take the handshake, which comes in one piece, or frames."""
        if self.handshake_initiated and not self.close_sent and not self._lengths.are_shortest(data):
            self._fail(CloseCode.PROTOCOL_ERROR, "the length of a frame is not in its shortest form")
            return
        super().data_received(data)
        if not self.handshake_initiated and not self.transport.is_closing():
            self._refuse("its head cannot be read: a line of it is too long, there are too many, or it has a body")

    def handle_connect(self, event: Request) -> None:
        """Begin the handshake or refuse it."""
        response = self.conn.accept(event)
        if response.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
            self.handshake_initiated = self.handshake_complete = True
            self._refuse(response.body.decode().partition(": ")[2].strip(".\n"))
            return
        super().handle_connect(event)

    def _refuse(self, reason: str) -> None:
        error = InvalidRequest(f"This is no WebSocket handshake: {reason}.")
        self.transport.write(whole_answer(error, (b"sec-websocket-version", b"13")))
        self.transport.close()

    def send_500_response(self) -> None:
        """The application failed before it answered."""
        if not self.initial_response and not self.handshake_complete:
            self.transport.write(whole_answer(OrganismError()))

    def send_receive_event_to_app(self) -> None:
        """Hand a message to the app. uvicorn would log a trace for each one that is not UTF-8."""
        if self.curr_msg_data_type == "text" and not self.close_sent:
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:
                self._fail(CloseCode.INVALID_DATA, "a text is UTF-8")
                return
        super().send_receive_event_to_app()

    def _fail(self, code: CloseCode, reason: str) -> None:
        """Close the connection because of what it sent."""
        self.frames = []
        self.conn.fail(code, reason)
        self.handle_parser_exception()

    def handle_parser_exception(self) -> None:
        """Close after bytes that are no frame. Before the handshake's end no close frame can be sent."""
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

        A handshake that the app refused by an HTTP answer is complete: uvicorn would log an error. A close that is
        not answered ends in an abort: uvicorn would wait until the peer has read everything.
        """
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True
        if self.close_timer is not None:
            self.close_timer.cancel()
            self.close_timer = self.loop.call_later(CLOSE_SECONDS, self.transport.abort)

    def handle_ping(self) -> None:
        """Answer a ping, unless the peer does not read: its pongs would fill the memory."""
        pong = b"".join(self.conn.data_to_send())
        if not self.is_blocked:
            self.transport.write(pong)

    def handle_cont(self, event: Frame) -> None:
        """Take a part of a message; empty ones would pile up."""
        if event.data or event.fin:
            super().handle_cont(event)

    def keepalive_timeout(self) -> None:
        """No pong came in time. If the ping still waits behind frames, ``drained`` decides instead."""
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
        """Whether the buffer is above its high-water mark: write nothing more until ``drained``."""
        return not self.writable.is_set()

    def write_frames(self, frames: bytes) -> None:
        """Write finished frames, unless the connection is over."""
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
            with suppress(TimeoutError):
                async with asyncio.timeout(STUCK_SECONDS / LOOKS):
                    await self.writable.wait()
        return self.is_open

    def _unsent_bytes(self) -> int:
        """What the peer has not taken yet, in this process and in the kernel."""
        waiting = self.transport.get_write_buffer_size()
        if self.transport.is_closing():
            return waiting
        held = fcntl.ioctl(self.transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
        return waiting + int.from_bytes(held, sys.byteorder)
