"""uvicorn's protocols, made to fit. The WebSocket's is open to viewers: finished frames go straight to the transport.

A frame from a server is not masked, so its bytes are the same for everyone: it is encoded once, and a commit's frames
go out in one write. The protocol also says when its buffer is full, and can be cut off: uvicorn itself never frees a
client that stops reading (S15).
"""

from __future__ import annotations

import asyncio
from secrets import token_hex
from typing import Any, Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.protocol import OPEN

from organism.errors import InvalidRequest
from organism.server import problems
from organism.server.headers import API, JSON

STUCK_SECONDS: Final = 10.0
EXTENSION: Final = "organism.frames"


class StrictHttpProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol, which refuses what is no HTTP in the one shape that all errors have."""

    def send_400_response(self, msg: str) -> None:
        """Say what was wrong, and hang up: nobody knows where the next request would begin."""
        body = problems.body(InvalidRequest(msg), f"req-{token_hex(8)}")
        lines = [(b"content-type", JSON), (b"content-length", b"%d" % len(body)), (b"connection", b"close"), *API]
        head = b"".join(b"%b: %b\r\n" % line for line in lines)
        self.transport.write(b"HTTP/1.1 400 Bad Request\r\n" + head + b"\r\n" + body)
        self.transport.close()


class FrameProtocol(WebSocketsSansIOProtocol):
    """One WebSocket connection. The app finds it in its scope, under ``extensions`` and the name ``EXTENSION``."""

    async def run_asgi(self) -> None:
        """Hand this protocol to the app with its scope."""
        cast("dict[str, Any]", self.scope["extensions"])[EXTENSION] = self
        await super().run_asgi()

    async def send(self, message: Any) -> None:
        """Send for the app. A handshake that it refused by an HTTP answer is complete: uvicorn would log an error."""
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True

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

        A client that takes nothing for ten seconds is cut off; one that is merely slow is not.
        """
        while self.is_blocked:
            before = self.transport.get_write_buffer_size()
            try:
                async with asyncio.timeout(STUCK_SECONDS):
                    await self.writable.wait()
            except TimeoutError:
                if self.transport.get_write_buffer_size() >= before:
                    self.transport.abort()
                    return False
        return self.is_open
