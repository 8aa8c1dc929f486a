"""Refusals that no application writes: of what is no request, and of what is no handshake.

They have the shape and the headers of every other answer (S31), and the connection ends behind them.
"""

from __future__ import annotations

from http import HTTPStatus
from secrets import token_hex

from organism.errors import OrganismError
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
