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
from organism.server.invoking.asked import EVENTS
from organism.server.stream import HEARTBEAT_SECONDS

Tell = Callable[[RunEntry], bytes]

LINE: Final = b"%b\n"
EVENT: Final = b"data: %b\n\n"
_SHOWING: Final = frozenset({"message_delta", "thought_delta", "message", "thought", "data", "file", "done"})
_SAYING: Final = _SHOWING | {"tool_call", "tool_result", "interaction_request"}
"""Entries after which something of the run has been seen: a refusal that comes before them is told as one."""


def teller(kind: str) -> Tell:
    """How an entry is written in a stream of this media type."""
    form = EVENT if kind == EVENTS else LINE
    return lambda entry: form % orjson.dumps(entry)


async def begun(entries: AsyncIterator[RunEntry]) -> list[RunEntry]:
    """The entries up to the first that shows something. An error shows nothing yet: a further attempt may go well."""
    first: list[RunEntry] = []
    async for entry in entries:
        first.append(entry)
        if entry["type"] in _SAYING:
            break
    return first


class RunStream:
    """A response that goes on until the run is done, the client leaves, or the server stops; the run goes on anyway.

    ``heartbeat`` is sent where nothing is told for a while, so that nobody in between takes it for dead.
    """

    def __init__(
        self, first: Iterable[RunEntry], rest: AsyncIterator[RunEntry], tell: Tell, heartbeat: bytes = b""
    ) -> None:
        self._first = first
        self._rest = rest
        self._tell = tell
        self._heartbeat = heartbeat
        self._said = asyncio.Event()
        self._telling: asyncio.Future[None] | None = None
        self._is_over = False

    async def run(self, receive: Receive, send: Send) -> None:
        """Send until the end, then end the response. A stream without ``done`` was cut."""
        self._telling = asyncio.ensure_future(self._send_all(send))
        leaving = asyncio.ensure_future(until_left(receive))
        beating = asyncio.ensure_future(self._beat(send))
        try:
            if not self._is_over:
                await asyncio.wait({self._telling, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._telling.cancel()
            leaving.cancel()
            beating.cancel()
            with suppress(asyncio.CancelledError, OrganismError):
                await self._telling
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send_all(self, send: Send) -> None:
        for entry in self._first:
            await self._send(send, entry)
        async for entry in self._rest:
            await self._send(send, entry)

    async def _send(self, send: Send, entry: RunEntry) -> None:
        if told := self._tell(entry):
            self._said.set()
            await send({"type": "http.response.body", "body": told, "more_body": True})

    async def _beat(self, send: Send) -> None:
        while self._heartbeat:
            self._said.clear()
            try:
                async with asyncio.timeout(HEARTBEAT_SECONDS):
                    await self._said.wait()
            except TimeoutError:
                await send({"type": "http.response.body", "body": self._heartbeat, "more_body": True})

    def end(self) -> None:
        """Send no more."""
        self._is_over = True
        if self._telling is not None:
            self._telling.cancel()
