"""HTTP answers that go on: Server-Sent Events and the entries of a run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from typing import Final

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from organism.errors import OrganismError
from organism.server.http.call import Call, until_left

SSE: Final = "text/event-stream"
HEARTBEAT: Final = b":\n\n"
"""A comment of Server-Sent Events: proxies see it, listeners do not."""
UNBUFFERED: Final = {"x-accel-buffering": "no"}
"""Asks a proxy not to gather events before it passes them on."""


Parts = AsyncGenerator[bytes, None]


class LiveResponse(Response):
    """Sends parts as they come, until there are no more, the client leaves or its token ends.

    The next part is made once the connection has taken the one before. Parts that end by an ``OrganismError`` are cut
    off there. Where nothing comes for a while, Server-Sent Events get a heartbeat.
    """

    def __init__(
        self, call: Call, parts: AsyncGenerator[bytes, None], first: bytes, headers: Mapping[str, str]
    ) -> None:
        super().__init__(headers={**UNBUFFERED, **headers})
        del self.headers["content-length"]
        self._call = call
        self._first = first
        self._parts = parts
        self._sent_at = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answers = self._call.process.connections.answers
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with aclosing(self._parts), anyio.create_task_group() as group:
            end = group.cancel_scope.cancel
            answers[end] = self._call.who
            try:
                if scope["method"] != "HEAD":
                    await self._send(send, self._first)
                    group.start_soon(self._end_with_client, receive, group)
                    if self.headers["content-type"] == SSE:
                        group.start_soon(self._beat, send)
                    with suppress(OrganismError):
                        async for part in self._parts:
                            await self._send(send, part)
            finally:
                del answers[end]
                end()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send(self, send: Send, part: bytes) -> None:
        if part:
            self._sent_at = asyncio.get_running_loop().time()
            await send({"type": "http.response.body", "body": part, "more_body": True})

    async def _beat(self, send: Send) -> None:
        now, seconds = asyncio.get_running_loop().time, self._call.process.timeouts.heartbeat_seconds
        while True:
            await asyncio.sleep(self._sent_at + seconds - now())
            if now() >= self._sent_at + seconds:
                await self._send(send, HEARTBEAT)

    async def _end_with_client(self, receive: Receive, group: anyio.abc.TaskGroup) -> None:
        await until_left(receive)
        group.cancel_scope.cancel()


async def live_response(
    call: Call, parts: Parts, media_type: str, headers: Mapping[str, str] | None = None
) -> LiveResponse:
    """The answer once its first part has come. What that raises is an error with its own status."""
    first = await anext(parts, b"")
    return LiveResponse(call, parts, first, {"content-type": media_type, **(headers or {})})
