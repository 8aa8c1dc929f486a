"""uvicorn's HTTP protocol with limits: what is no HTTP, too long or too slow is refused, and nobody is waited for.

What guards the bytes of HTTP has to stand here, in a class derived from uvicorn's own: uvicorn has no setting for the
size of a head or for the time that a request may take, and an application is called only once a head was parsed.
"""

from __future__ import annotations

import asyncio
import re
from http import HTTPStatus
from secrets import token_hex
from typing import Any, Final, NoReturn

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from organism.errors import InvalidRequest, OrganismError
from organism.server import problems
from organism.server.headers import API, JSON, Header


def whole_answer(error: OrganismError, *more: Header) -> bytes:
    """The whole HTTP answer that says what was wrong, with a request id of its own."""
    request_id = f"req-{token_hex(8)}"
    body = problems.body(error, request_id)
    lines: list[Header] = [
        (b"content-type", JSON),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
        (b"x-request-id", request_id.encode()),
        *problems.headers(error),
        *more,
        *API,
    ]
    status = HTTPStatus(error.status)
    head = b"".join(b"%b: %b\r\n" % line for line in lines)
    return b"HTTP/1.1 %d %b\r\n%b\r\n%b" % (status, status.phrase.encode(), head, body)


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


class StrictHttpProtocol(HttpToolsProtocol):
    """One HTTP connection. uvicorn itself waits for ever for a request's end, and takes a head of any size (S15)."""

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
        """Parse what came. What is missing of the request has a deadline: the whole head, and each part of a body."""
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
        """The first byte of a request; what it shares its packet with is not counted."""
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
