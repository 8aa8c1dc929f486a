"""uvicorn's HTTP protocol with limits: what is no HTTP, too long or too slow is refused, and nobody is waited for."""

from __future__ import annotations

import asyncio
from secrets import token_hex
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from organism.errors import InvalidRequest
from organism.server import problems
from organism.server.headers import API, JSON

SLOW_SECONDS: Final = 10.0
"""So long may a request's head take, a body pause, and a new connection say nothing."""
HEAD_BYTES: Final = 64 << 10
"""What a request's first line and its headers may have together."""
TOO_LONG: Final = f"The head of a request has at most {HEAD_BYTES} bytes; send a shorter address or fewer headers."


class StrictHttpProtocol(HttpToolsProtocol):
    """One HTTP connection. uvicorn itself waits for ever for a request's end, and takes a head of any size (S15)."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._is_owed = self._is_head = True
        self._head_bytes = 0
        self._fault = ""
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        """Wait for the first request, but not for ever."""
        super().connection_made(transport)
        self._start_clock()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._stop_clock()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came. If more of the request is owed, it has its time: a head in all, a body for each part."""
        self._head_bytes += len(data)
        super().data_received(data)
        if not self._is_owed or self.transport.is_closing():
            self._stop_clock()
        elif not self._is_head:
            self._stop_clock()
            self._start_clock()
        elif self._head_bytes > HEAD_BYTES:
            self.send_400_response(TOO_LONG)
        elif self._deadline is None:
            self._start_clock()

    def on_message_begin(self) -> None:
        """The first byte of a request; what it shares its packet with is not counted."""
        super().on_message_begin()
        self._is_owed = self._is_head = True
        self._head_bytes = 0

    def on_headers_complete(self) -> None:
        """The head is whole. One that came in few large packets is measured here."""
        self._is_head = False
        if sum(len(name) + len(value) for name, value in self.headers) + len(self.url) > HEAD_BYTES:
            self._fault = TOO_LONG
            raise ValueError(TOO_LONG)  # the parser stops, and what follows is the answer to any fault of its
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The request is whole."""
        self._is_owed = False
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        """The connection is a WebSocket from here on."""
        self._is_owed = False
        super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:
        """Say what was wrong, and hang up: nobody knows where the next request would begin."""
        self._is_owed = False
        body = problems.body(InvalidRequest(self._fault or msg), f"req-{token_hex(8)}")
        lines = [(b"content-type", JSON), (b"content-length", b"%d" % len(body)), (b"connection", b"close"), *API]
        head = b"".join(b"%b: %b\r\n" % line for line in lines)
        self.transport.write(b"HTTP/1.1 400 Bad Request\r\n" + head + b"\r\n" + body)
        self.transport.close()

    def _start_clock(self) -> None:
        self._deadline = self.loop.call_later(SLOW_SECONDS, self._hang_up)

    def _stop_clock(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _hang_up(self) -> None:
        """The peer owes a request, or the rest of one. It is told nothing: it may not even read."""
        self._deadline = None
        self.transport.abort()
