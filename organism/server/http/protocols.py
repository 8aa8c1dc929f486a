"""uvicorn's HTTP and WebSocket protocols, extended where its settings do not reach.

This is the one file that uses uvicorn's and websockets' internals, so uvicorn is pinned to its minor version. Of HTTP,
what cannot be read in one way only, is too long or too slow is refused; uvicorn has no settings for that. WebSocket
frames go straight to the transport, encoded once for all viewers; a peer that takes nothing is cut off (S15); a refused
handshake is answered as every other error is (S31); frames are held to RFC 6455 where websockets is lenient.
"""

from __future__ import annotations

import asyncio
import fcntl
import re
import socket
import sys
import termios
from asyncio.transports import BaseTransport
from contextlib import suppress
from http import HTTPStatus
from secrets import token_hex
from typing import Any, Final, NoReturn, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame
from websockets.http11 import Request
from websockets.protocol import OPEN

from organism.errors import InvalidRequest, OrganismError
from organism.server.http import problems
from organism.server.http.headers import API, JSON, Header

SLOW_SECONDS: Final = 10.0
"""How long a request's head may take, a body pause, and a new connection say nothing."""
BODY_SECONDS: Final = 60.0
"""How long a whole body may take: the largest needs 18 KB a second."""
HEAD_BYTES: Final = 64 << 10
"""The most that a request's first line and headers may have together."""
HEADERS: Final = 256
TOO_LONG: Final = f"The head of a request has at most {HEAD_BYTES} bytes and {HEADERS} headers; send fewer of them."
NO_HTTP: Final = "This is no HTTP/1.1 request that can be read in one way only; send it by an HTTP client."
NO_TARGET: Final = "The target of a request is a path as /api/v1/organism, or an http address with one."
NO_CODING: Final = "A body comes as it is or with `Transfer-Encoding: chunked`; no other coding is taken."
_ABSOLUTE: Final = re.compile(rb"https?://([^/?#]+)(/[^?#]*)?(\?[^#]*)?", re.IGNORECASE)
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


def whole_answer(error: OrganismError, *more: Header) -> bytes:
    """The whole HTTP answer that says what was wrong, with a request id of its own."""
    request_id = f"req-{token_hex(8)}"
    body = problems.body(error, request_id)
    lines: list[Header] = [
        (b"content-type", JSON),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
        (b"x-request-id", request_id.encode()),
        *((name.encode(), value.encode()) for name, value in problems.headers(error).items()),
        *more,
        *API,
    ]
    status = HTTPStatus(error.status)
    head = b"".join(b"%b: %b\r\n" % line for line in lines)
    return b"HTTP/1.1 %d %b\r\n%b\r\n%b" % (status, status.phrase.encode(), head, body)


class StrictHttpProtocol(HttpToolsProtocol):
    """One HTTP connection. A request is owed until its end has come (S15)."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._is_owed = self._is_head = True
        self._head_bytes = 0
        self._fault = ""
        self._deadline: asyncio.TimerHandle | None = None
        self._body_ends = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        super().connection_made(transport)
        self._start_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came. The rest of a head, and the next part of a body, have a deadline."""
        self._head_bytes += len(data)
        super().data_received(data)
        if not self._is_owed or self.transport.is_closing():
            self._stop_clock()
        elif self._is_head and self._head_bytes > HEAD_BYTES:
            self._fault = TOO_LONG
            self.send_400_response(TOO_LONG)
        elif self._deadline is None:
            self._start_clock()
        elif not self._is_head and not self.cycle.response_complete:  # one that is answered gets no more time
            self._stop_clock()
            self._start_clock()

    def on_message_begin(self) -> None:
        """The first byte of a request: count from here."""
        super().on_message_begin()
        self._is_owed = self._is_head = True
        self._head_bytes = 0

    def on_headers_complete(self) -> None:
        """The head is whole. One that came in few large packets is measured here."""
        self._is_head = False
        self._body_ends = self.loop.time() + BODY_SECONDS
        size = len(self.url)
        for name, value in self.headers:
            size += len(name) + len(value)
            if name == b"transfer-encoding" and value.lower() != b"chunked":
                self._stop(NO_CODING)
        if size > HEAD_BYTES or len(self.headers) > HEADERS:
            self._stop(TOO_LONG)
        if not self.url.startswith((b"/", b"*")):
            self._take_absolute()
        super().on_headers_complete()

    def _take_absolute(self) -> None:
        """The target names its host: that one counts, whatever the header says (RFC 9112, 3.2.2)."""
        target = _ABSOLUTE.fullmatch(self.url)
        if target is None:
            self._stop(NO_TARGET)
        host, path, query = target.groups()
        self.headers[:] = [(b"host", host), *(header for header in self.headers if header[0] != b"host")]
        self.url = (path or b"/") + (query or b"")

    def _stop(self, fault: str) -> NoReturn:
        """Stop the parser, which then calls ``send_400_response``."""
        self._fault = fault
        raise ValueError(fault)

    def on_message_complete(self) -> None:
        self._is_owed = False
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        self._is_owed = False
        super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's words, which say less
        """Say what was wrong and close: it is unknown where the next request would begin."""
        self._is_owed = False
        self.transport.write(whole_answer(InvalidRequest(self._fault or NO_HTTP)))
        self.transport.close()

    def _start_clock(self) -> None:
        until = self.loop.time() + SLOW_SECONDS
        self._deadline = self.loop.call_at(until if self._is_head else min(until, self._body_ends), self._hang_up)

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _hang_up(self) -> None:
        """The deadline has passed. The peer gets no answer: it may not even read."""
        self._deadline = None
        self.transport.abort()


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
            length = self._head[1] & 0x7F if len(self._head) >= SHORT_HEAD else 0
            more, least = LONG_LENGTHS.get(length, (0, 0))
            if len(self._head) == SHORT_HEAD + more:
                length = int.from_bytes(self._head[SHORT_HEAD:]) if more else length
                self._head, self._left = b"", length + MASK_BYTES
                if length < least:
                    return False
        return True


class FrameProtocol(WebSocketsSansIOProtocol):
    """One WebSocket connection; the app finds it among its scope's ``extensions`` as ``EXTENSION``."""

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
        """Send for the app. uvicorn logs an error after a refused handshake, and waits for the answer to a close."""
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
        """Wait for room; False if the connection is over. A client that takes nothing for six seconds is cut off."""
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
