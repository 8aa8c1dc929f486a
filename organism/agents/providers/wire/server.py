"""One server of models: opens a connection to it at the first call, and reads its answers part by part."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Any, Final, Protocol

import orjson

from organism.agents.provider import ProviderError
from organism.agents.providers.wire.access import Access, Waits
from organism.agents.providers.wire.body import Body, Reader
from organism.agents.providers.wire.faults import Faults, Refused
from organism.agents.providers.wire.patience import Patience
from organism.agents.providers.wire.said import Said
from organism.agents.providers.wire.transport import Sender, Unread
from organism.model.completion import ModelRequest, Part

UNKNOWN_STATUSES: Final = frozenset({400, 422})
UNKNOWN_WORDS: Final = (
    "support",
    "unrecognized",
    "unknown",
    "unexpected",
    "not permitted",
    "deprecated",
    "extra input",
)


class Speech(Protocol):
    """How an API is spoken."""

    @property
    def path(self) -> str:
        """Where requests go, below the server's address."""

    @property
    def optional(self) -> tuple[str, ...]:
        """Parameters that are left out where a server does not know them."""

    def load(self, access: Access) -> Sender:
        """What puts requests; it imports packages and reads certificates, so it is called in a thread."""

    def body(self, request: ModelRequest, without: frozenset[str]) -> Mapping[str, Any]:
        """The request in the words of the API."""

    def reader(self, faults: Faults, headers: Mapping[str, str]) -> Reader:
        """A reader of one answer."""


class Server:
    """A provider that puts requests to a server: see ``Provider``.

    ``now`` tells the time in seconds since 1970, for waits that are told as a date.
    """

    def __init__(self, access: Access, speech: Speech, waits: Waits, now: Callable[[], float]) -> None:
        self._access = access
        self._speech = speech
        self._waits = waits
        self._now = now
        self._opening = asyncio.Lock()
        self._sender: Sender | None = None
        self._is_closed = False
        self._endings: set[asyncio.Future[None]] = set()
        self._without: frozenset[str] = frozenset()

    async def stream(self, request: ModelRequest) -> AsyncIterator[Part]:
        """See ``Provider``. Closing it ends the call's connection."""
        faults = Faults(self._access, request, self._now)
        sender = await self._opened()
        patience = Patience(request.timeout_s, self._waits, faults)
        response = await self._asked(sender, request, patience)
        reader = self._speech.reader(faults, response.headers)
        body, chunks = Body(reader, faults), response.aiter_bytes()
        try:
            while (chunk := await patience.next(chunks, is_finished=reader.is_finished)) is not None:
                for part in body.feed(chunk):
                    yield part
                if reader.is_ended:
                    break
            for part in body.end():
                yield part
        finally:
            patience.rest()
            if reader.is_ended:
                self._end_apart(patience, chunks, response)
                await asyncio.sleep(0)  # where all of it has come, the connection is free from here on
            else:
                await chunks.aclose()
                await response.aclose()

    def _end_apart(self, patience: Patience, chunks: AsyncGenerator[bytes], response: Unread) -> None:
        """The answer is whole: that its connection can serve the next call is nothing that the caller waits for."""

        async def end() -> None:
            try:
                await patience.drain(chunks)
            finally:
                await chunks.aclose()
                await response.aclose()

        ending = asyncio.ensure_future(end())
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)

    async def close(self) -> None:
        """Let go of all connections."""
        async with self._opening:
            self._is_closed = True
            for ending in self._endings:
                ending.cancel()
            if self._endings:
                await asyncio.wait(self._endings)
            if self._sender is not None:
                await self._sender.close()

    async def _asked(self, sender: Sender, request: ModelRequest, patience: Patience) -> Unread:
        """The answer, unread. A server that does not know a parameter is asked without it, then and from then on."""
        faults = Faults(self._access, request, self._now)
        while True:
            body = self._speech.body(request, self._without)
            try:
                text = orjson.dumps(body, default=_plain)
            except TypeError:
                raise faults.unsendable() from None
            try:
                return await patience.begin(sender, self._speech.path, text)
            except Refused as refusal:
                unknown = self._unknown(refusal, body)
                if unknown is None:
                    raise faults.refused(refusal) from None
                self._without |= {unknown}

    def _unknown(self, refusal: Refused, body: Mapping[str, Any]) -> str | None:
        """The parameter that the server does not take, if it is one that can be done without."""
        if refusal.status not in UNKNOWN_STATUSES:
            return None
        sent = (name for name in self._speech.optional if name in body)
        return next((name for name in sent if _is_unknown(name, refusal.said)), None)

    async def _opened(self) -> Sender:
        """What puts requests. Making it takes up to a second or two, none of them the call's time or the loop's."""
        if self._is_closed:
            raise ProviderError("unavailable", f"The provider of {self._access.host} is closed.")
        if self._sender is not None:
            return self._sender
        async with self._opening:
            if self._sender is None:
                self._sender = await asyncio.to_thread(self._speech.load, self._access)
            return self._sender


def _is_unknown(name: str, said: Said) -> bool:
    is_named = said.param == name or re.search(rf"\b{name}\b", said.text) is not None
    words = f"{said.text} {said.code}".casefold()
    return is_named and any(word in words for word in UNKNOWN_WORDS)


def _plain(value: Any) -> Any:
    """What the codec of JSON does not know by itself: mappings that are no dicts. Raises ``TypeError``."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError
