"""A run as an HTTP response: JSON lines, Server-Sent Events, or the AI SDK's stream, entry by entry as they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from typing import Final

import orjson

from organism.errors import OrganismError
from organism.model.run import RunEntry
from organism.server.call import Receive, Send, until_left
from organism.server.invoking.request import EVENTS
from organism.server.stream import HEARTBEAT_SECONDS

Write = Callable[[RunEntry], bytes]

LINE: Final = b"%b\n"
EVENT: Final = b"data: %b\n\n"
_SHOWING: Final = frozenset({"message_delta", "thought_delta", "message", "thought", "data", "file", "done"})
_ENOUGH: Final = _SHOWING | {"tool_call", "tool_result", "interaction_request"}
"""Entries that show something of the run: an error before the first of them is answered with its own status."""


def writer_for(kind: str) -> Write:
    """How an entry is written in a stream of this media type."""
    form = EVENT if kind == EVENTS else LINE
    return lambda entry: form % orjson.dumps(entry)


async def first_entries(entries: AsyncIterator[RunEntry]) -> list[RunEntry]:
    """The entries up to the first that shows something. After an error the next attempt may still succeed."""
    first: list[RunEntry] = []
    async for entry in entries:
        first.append(entry)
        if entry["type"] in _ENOUGH:
            break
    return first


class RunStream:
    """A response that goes on until the run is done, the client leaves, or the server stops; the run goes on anyway.

    ``heartbeat`` is sent while nothing else is, so that no proxy takes the connection for dead.
    """

    def __init__(
        self, first: Iterable[RunEntry], rest: AsyncIterator[RunEntry], write: Write, heartbeat: bytes = b""
    ) -> None:
        self._first = first
        self._rest = rest
        self._write = write
        self._heartbeat = heartbeat
        self._news = asyncio.Event()
        self._sending: asyncio.Future[None] | None = None
        self._is_over = False

    async def run(self, receive: Receive, send: Send) -> None:
        """Send until the end, then end the response. A stream without ``done`` was cut."""
        self._sending = asyncio.ensure_future(self._send_all(send))
        leaving = asyncio.ensure_future(until_left(receive))
        beating = asyncio.ensure_future(self._beat(send))
        try:
            if not self._is_over:
                await asyncio.wait({self._sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._sending.cancel()
            leaving.cancel()
            beating.cancel()
            with suppress(asyncio.CancelledError, OrganismError):
                await self._sending
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_all(self, send: Send) -> None:
        for entry in self._first:
            await self._send(send, entry)
        async for entry in self._rest:
            await self._send(send, entry)

    async def _send(self, send: Send, entry: RunEntry) -> None:
        if written := self._write(entry):
            self._news.set()
            await send({"type": "http.response.body", "body": written, "more_body": True})

    async def _beat(self, send: Send) -> None:
        while self._heartbeat:
            self._news.clear()
            try:
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    await self._news.wait()
            except TimeoutError:
                await send({"type": "http.response.body", "body": self._heartbeat, "more_body": True})

    def end(self) -> None:
        """Send no more."""
        self._is_over = True
        if self._sending is not None:
            self._sending.cancel()
