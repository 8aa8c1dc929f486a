"""uvicorn's WebSocket protocol up to the handshake's end: whatever fails there is answered as all else is (S31).

uvicorn itself answers in plain text without a strict header, and a handshake that it cannot read not at all.
"""

from __future__ import annotations

from http import HTTPStatus

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

from organism.errors import InvalidRequest, OrganismError
from organism.server.strict import whole_answer


class StrictHandshake(WebSocketsSansIOProtocol):
    """A connection that wants to become a WebSocket."""

    def data_received(self, data: bytes) -> None:
        """Take what came. The head of a handshake comes whole: if it began none, it cannot be read."""
        super().data_received(data)
        if not self.handshake_initiated and not self.transport.is_closing():
            self._refuse("its head cannot be read: a line of it is too long, there are too many, or it has a body")

    def handle_connect(self, event: Request) -> None:
        """Begin the handshake, or refuse it in the shape of every other answer."""
        response = self.conn.accept(event)
        if response.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
            self.handshake_initiated = self.handshake_complete = True
            self._refuse(response.body.decode().partition(": ")[2].strip(".\n"))
            return
        super().handle_connect(event)

    def _refuse(self, reason: str) -> None:
        """Say why this is no handshake (S31), and hang up."""
        error = InvalidRequest(f"This is no WebSocket handshake: {reason}.")
        self.transport.write(whole_answer(error, (b"sec-websocket-version", b"13")))
        self.transport.close()

    def send_500_response(self) -> None:
        """The application failed before it answered."""
        if not self.initial_response and not self.handshake_complete:
            self.transport.write(whole_answer(OrganismError()))
