"""uvicorn's HTTP and WebSocket protocols, extended where its settings do not reach.

This is the one file that uses uvicorn's and websockets' internals, so uvicorn is pinned to its minor version. A request
that can be read in two ways, is too long or too slow is refused; uvicorn has no settings for that. WebSocket frames go
straight to the transport, encoded once for all viewers; a peer that takes nothing is cut off (S15); a refused handshake
is answered as every other error is (S31).
"""

from __future__ import annotations

import asyncio
import fcntl
import re
import socket
import sys
import termios
from asyncio.transports import BaseTransport
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from secrets import token_hex
from typing import Any, Final, NoReturn, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame
from websockets.http11 import Request
from websockets.protocol import OPEN

from organism.errors import InvalidRequest, OrganismError
from organism.server.http import problems
from organism.server.http.connections import Timeouts
from organism.server.http.middleware import API, Header

HEAD_BYTES: Final = 64 << 10
"""The most that a request's first line and headers may have together."""
HEADERS: Final = 256
TOO_LONG: Final = f"The head of a request has at most {HEAD_BYTES} bytes and {HEADERS} headers; send fewer of them."
NO_HTTP: Final = "This is no HTTP/1.1 request that can be read in one way only; send it by an HTTP client."
NO_TARGET: Final = "The target of a request is a path as /api/v1/organism, or an http address with one."
NO_CODING: Final = "A body comes as it is or with `Transfer-Encoding: chunked`; no other coding is taken."
_ABSOLUTE: Final = re.compile(rb"https?://([^/?#]+)(/[^?#]*)?(\?[^#]*)?", re.IGNORECASE)
CHECKS: Final = 6
"""How often a peer that reads nothing is looked at within ``stuck_seconds``."""
SEND_BYTES: Final = 128 << 10
"""The kernel's send buffer of a connection (Linux doubles it); by default it would grow to megabytes."""
EXTENSION: Final = "organism.frames"


def whole_answer(error: OrganismError, *more: Header) -> bytes:
    """The whole HTTP answer that says what was wrong, with a request id of its own."""
    request_id = f"req-{token_hex(8)}"
    body = problems.body(error, request_id)
    lines: list[Header] = [
        (b"content-type", b"application/json"),
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


class ServerConfig(uvicorn.Config):
    """uvicorn's settings, and the timeouts that it has no settings for."""

    def __init__(self, app: ASGIApp, timeouts: Timeouts, **settings: Any) -> None:
        super().__init__(
            app,
            http=StrictHttpProtocol,
            ws=FrameProtocol,
            ws_ping_interval=timeouts.ping_seconds,
            ws_ping_timeout=timeouts.ping_seconds,
            **settings,
        )
        self.timeouts = timeouts


class StrictHttpProtocol(HttpToolsProtocol):
    """One HTTP connection. Each request's head and body have a deadline, and its head a size (S15)."""

    def __init__(self, config: ServerConfig, *arguments: Any, **options: Any) -> None:
        super().__init__(config, *arguments, **options)
        self._timeouts = config.timeouts
        self._is_head = True
        self._head_bytes = 0
        self._fault = ""
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        super().connection_made(transport)
        self._expect_within(self._timeouts.head_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_nothing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        super().data_received(data)
        if self._is_head and self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
            self._fault = TOO_LONG
            self.send_400_response(TOO_LONG)

    def on_message_begin(self) -> None:
        """The first byte of a request: count from here."""
        super().on_message_begin()
        self._is_head = True
        self._head_bytes = 0
        self._expect_within(self._timeouts.head_seconds)

    def on_headers_complete(self) -> None:
        """The head is whole. One that came in few large packets is measured here."""
        self._is_head = False
        self._expect_within(self._timeouts.body_seconds)
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
        self._expect_nothing()
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        self._expect_nothing()
        super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's text, which says less
        """Say what was wrong and close: it is unknown where the next request would begin."""
        self._expect_nothing()
        self.transport.write(whole_answer(InvalidRequest(self._fault or NO_HTTP)))
        self.transport.close()

    def _expect_within(self, seconds: float) -> None:
        """Abort in so many seconds, unless ``_expect_nothing`` comes first. The peer may not even read an answer."""
        self._expect_nothing()
        self._deadline = self.loop.call_later(seconds, self.transport.abort)

    def _expect_nothing(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class FrameProtocol(WebSocketsSansIOProtocol):
    """One WebSocket connection; the app finds it among its scope's ``extensions`` as ``EXTENSION``."""

    def __init__(self, config: ServerConfig, *arguments: Any, **options: Any) -> None:
        super().__init__(config, *arguments, **options)
        self._timeouts = config.timeouts
        self.on_unread: Callable[[int], None] | None = None
        """Called with how many bytes of a message that is not whole are held, whenever some came."""

    def connection_made(self, transport: BaseTransport) -> None:
        """Limit the kernel's send buffer: a peer that reads nothing fills it."""
        super().connection_made(transport)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)

    def data_received(self, data: bytes) -> None:
        """Take the handshake, which comes in one piece, or frames."""
        super().data_received(data)
        if not self.handshake_initiated and not self.transport.is_closing():
            self._refuse("its head cannot be read: a line of it is too long, there are too many, or it has a body")
        if self.on_unread is not None:
            self.on_unread(len(self.conn.reader.buffer) + sum(map(len, self.frames)))

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
                self.frames = []
                self.conn.fail(CloseCode.INVALID_DATA, "a text is UTF-8")
                self.handle_parser_exception()
                return
        super().send_receive_event_to_app()

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
            self.close_timer = self.loop.call_later(self._timeouts.close_seconds, self.transport.abort)

    def handle_ping(self) -> None:
        """Answer a ping, unless the peer does not read: its pongs would fill the memory."""
        pong = b"".join(self.conn.data_to_send())
        if not self.is_blocked:
            self.transport.write(pong)

    def handle_cont(self, event: Frame) -> None:
        """Take a part of a message; each by itself would take far more memory than its bytes."""
        message: Any = self.frames[0]
        if not isinstance(message, bytearray):
            message = bytearray(message)
            self.frames = [message]
        message += event.data
        if event.fin:
            self.send_receive_event_to_app()

    def keepalive_timeout(self) -> None:
        """No pong came in time. If the ping still waits behind frames, ``drained`` decides instead."""
        if self.is_blocked and self.is_open:
            self.pong_timer = None
            self.schedule_ping()
            return
        super().keepalive_timeout()
        self.loop.call_later(self._timeouts.close_seconds, self.transport.abort)

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
        """Wait for room; False if the connection is over. One that reads nothing for ``stuck_seconds`` is cut off."""
        least, checks = sys.maxsize, 0
        while self.is_blocked:
            unsent = self._unsent_bytes()
            checks = 0 if unsent < least else checks + 1
            least = min(least, unsent)
            if checks > CHECKS:
                self.transport.abort()
                return False
            with suppress(TimeoutError):
                async with asyncio.timeout(self._timeouts.stuck_seconds / CHECKS):
                    await self.writable.wait()
        return self.is_open

    def _unsent_bytes(self) -> int:
        """What the peer has not taken yet, in this process and in the kernel."""
        waiting = self.transport.get_write_buffer_size()
        if self.transport.is_closing():
            return waiting
        in_kernel = fcntl.ioctl(self.transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
        return waiting + int.from_bytes(in_kernel, sys.byteorder)
