"""Server-Sent Events (``GET /events``): what a viewer reads, as an HTTP response that goes on."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.types import Receive, Send

from organism.model.principal import Principal
from organism.server.http.call import until_left
from organism.server.http.connections import ConnectionRegistry
from organism.server.push.viewer import TICK_SECONDS, Tail, Viewer

HEARTBEAT_SECONDS: Final = 15.0
HEARTBEAT: Final = b":\n\n"
"""A comment: proxies see it, listeners do not."""


class Stream:
    """One client's stream, from the first event to its end: the client leaves, its token ends, or the log closes."""

    def __init__(
        self, who: Principal, connections: ConnectionRegistry, tail: Tail, viewer: Viewer, first: bytes
    ) -> None:
        self.who = who
        self._connections = connections
        self._tail = tail
        self._viewer = viewer
        self._first = first
        connections.add(self)

    async def run(self, receive: Receive, send: Send) -> None:
        leaving = asyncio.ensure_future(self._until_left(receive))
        now, sent_at = asyncio.get_running_loop().time, 0.0
        try:
            with self._tail.watched():
                await send({"type": "http.response.body", "body": self._first, "more_body": True})
                async for events in self._viewer.stream():
                    if events or now() >= sent_at + HEARTBEAT_SECONDS - TICK_SECONDS:
                        sent_at = now()
                        await send({"type": "http.response.body", "body": events or HEARTBEAT, "more_body": True})
        finally:
            leaving.cancel()
            self._connections.remove(self)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _until_left(self, receive: Receive) -> None:
        await until_left(receive)
        self.end()

    def end(self) -> None:
        """Send nothing more."""
        self._viewer.end()

    def dismiss(self, _code: int) -> None:
        """The token has lost its right to this."""
        self.end()
