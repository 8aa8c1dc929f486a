"""One server of models, asked through the SDK of its vendor: what the providers `openai` and `anthropic` share."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import orjson

from organism.agents.provider import ProviderError
from organism.agents.providers.access import Access, Waits
from organism.agents.providers.failures import Failures, Refused, ServerError
from organism.model.completion import ModelRequest, Part

if TYPE_CHECKING:
    import httpx2

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
END: Final = object()

T = TypeVar("T")


class EventStream(Protocol):
    """The stream of an SDK: it cuts an answer into events and decodes the JSON of each."""

    @property
    def response(self) -> httpx2.Response:
        """The answer; its head has come."""

    async def __anext__(self) -> object:
        """The JSON of the next event."""

    async def close(self) -> None:
        """Close the connection, unless all of the answer was read."""


@dataclass(frozen=True, slots=True)
class Sdk:
    """A client of an SDK: ``post`` sends the JSON of a request, ``errors`` is what it and its streams raise."""

    post: Callable[[bytes], Awaitable[EventStream]]
    close: Callable[[], Awaitable[None]]
    errors: tuple[type[Exception], ...]


class Reader(Protocol):
    """Makes parts of one answer."""

    is_finished: bool
    """The model has said why it stopped; what may follow is the usage."""

    def event(self, event: object) -> Iterable[Part]:
        """The parts that the JSON of an event completes. Raises ``ProviderError``."""

    def whole(self, answer: Mapping[str, Any]) -> Iterable[Part]:
        """The parts of an answer that is no stream. Raises ``ProviderError``."""

    def end(self) -> Iterable[Part]:
        """The parts that come last. Raises ``ProviderError`` if the answer is not complete."""


class Api(Protocol):
    """What differs between two vendors."""

    @property
    def optional(self) -> tuple[str, ...]:
        """Parameters that are left out where a server does not know them."""

    def load(self, access: Access, connect_s: float) -> Sdk:
        """The SDK's client. Imports packages and reads certificates, so it is called in a thread."""

    def body(self, request: ModelRequest, without: frozenset[str]) -> Mapping[str, Any]:
        """The request in the words of the API, without these parameters."""

    def reader(self, failures: Failures, headers: Mapping[str, str]) -> Reader:
        """A reader of one answer."""


class Server:
    """A provider that asks a server: see ``Provider``. Each has its own connections.

    ``now`` tells the time in seconds since 1970, for a `Retry-After` that is a date.
    """

    def __init__(self, access: Access, api: Api, waits: Waits, now: Callable[[], float]) -> None:
        self._access = access
        self._api = api
        self._waits = waits
        self._now = now
        self._opening = asyncio.Lock()
        self._sdk: Sdk | None = None
        self._is_closed = False
        self._without: frozenset[str] = frozenset()

    async def stream(self, request: ModelRequest) -> AsyncIterator[Part]:
        """See ``Provider``. Closing it ends the call's connection."""
        failures = Failures(self._access, request, self._now)
        sdk = await self._opened()
        call = _Call(sdk, failures, request.timeout_s, self._waits)
        events = await self._asked(sdk, request, call)
        try:
            reader = self._api.reader(failures, events.response.headers)
            kind = events.response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind == "text/html":
                raise failures.malformed("with a page for people")
            if kind == "application/json":
                for part in reader.whole(_object(await call.wait(events.response.aread()), failures)):
                    yield part
            else:
                while (event := await _next(events, call, reader)) is not END:
                    for part in reader.event(event):
                        yield part
            for part in reader.end():
                yield part
        finally:
            await events.close()

    async def close(self) -> None:
        """Close all connections."""
        async with self._opening:
            self._is_closed = True
            if self._sdk is not None:
                await self._sdk.close()

    async def _opened(self) -> Sdk:
        """The SDK. Loading it takes a second or two, which neither the event loop nor the call's time waits for."""
        if self._is_closed:
            raise ProviderError("unavailable", f"The provider of {self._access.host} is closed.")
        if self._sdk is not None:
            return self._sdk
        async with self._opening:
            if self._sdk is None:
                self._sdk = await asyncio.to_thread(self._api.load, self._access, self._waits.connect_s)
            return self._sdk

    async def _asked(self, sdk: Sdk, request: ModelRequest, call: _Call) -> EventStream:
        """The answer, unread. A server that does not know a parameter is asked without it, now and from then on."""
        while True:
            body = self._api.body(request, self._without)
            try:
                return await call.wait(sdk.post(request_json(body, call.failures)))
            except Refused as refusal:
                unknown = self._unknown(refusal, body)
                if unknown is None:
                    raise
                self._without |= {unknown}

    def _unknown(self, refusal: Refused, body: Mapping[str, Any]) -> str | None:
        """The parameter that the server does not take, if it is one that can be left out."""
        if refusal.status not in UNKNOWN_STATUSES:
            return None
        sent = (name for name in self._api.optional if name in body)
        return next((name for name in sent if _is_unknown(name, refusal.report)), None)


class _Call:
    """One call: waits for the server, but not for ever, and says what went wrong."""

    def __init__(self, sdk: Sdk, failures: Failures, whole_s: float, waits: Waits) -> None:
        self.failures = failures
        self._errors: tuple[type[Exception], ...] = (*sdk.errors, ValueError, RecursionError)  # of text and JSON
        self._now = asyncio.get_running_loop().time
        self._whole_s = whole_s
        self._waits = waits
        began = self._now()
        self._first = began + waits.first_share * whole_s
        self._last = began + whole_s
        self._has_begun = self._is_ending = False

    async def wait(self, coming: Awaitable[T]) -> T:
        """What comes, if it comes in time. Raises ``ProviderError``."""
        limit, missed, seconds = self._limit()
        try:
            async with asyncio.timeout_at(limit):
                return await coming
        except TimeoutError:
            failure = self.failures.late(missed, seconds)
        except self._errors as error:
            failure = self.failures.of(error, has_begun=self._has_begun, connect_s=self._waits.connect_s)
        raise failure  # here, so that it does not carry an exception that shows the request

    def begin(self) -> None:
        """The first event has come."""
        self._has_begun = True

    def end(self) -> None:
        """The model has finished: what follows must come soon."""
        if not self._is_ending:
            self._is_ending = True
            self._last = min(self._last, self._now() + self._waits.end_s)

    def _limit(self) -> tuple[float, str, float]:
        """Until when the next event is waited for, what the server missed then, and within how many seconds."""
        if self._has_begun:
            what, share = "did not go on", self._waits.next_share
            limit = self._now() + share * self._whole_s
        else:
            what, share = "did not begin to answer", self._waits.first_share
            limit = self._first
        if limit < self._last:
            return limit, what, share * self._whole_s
        return self._last, "did not end its answer", self._whole_s


async def _next(events: EventStream, call: _Call, reader: Reader) -> object:
    """The next event or ``END``. What goes wrong after the model has finished loses nothing of its answer."""
    if reader.is_finished:
        call.end()
    try:
        event = await call.wait(anext(events, END))
    except ProviderError:
        if reader.is_finished:
            return END
        raise
    call.begin()
    return event


def _object(text: bytes, failures: Failures) -> Mapping[str, Any]:
    """The JSON of an answer that is no stream."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        raise failures.malformed("what is no JSON") from None
    if not isinstance(answer, dict):
        raise failures.malformed("with JSON that is no object")
    return answer


def request_json(body: Mapping[str, Any], failures: Failures) -> bytes:
    """The JSON of a request. Raises ``ProviderError`` where there is none."""
    try:
        return orjson.dumps(body, default=_plain)
    except TypeError:
        raise failures.unsendable() from None


def _is_unknown(name: str, report: ServerError) -> bool:
    is_named = report.param == name or re.search(rf"\b{name}\b", report.text) is not None
    words = f"{report.text} {report.code}".casefold()
    return is_named and any(word in words for word in UNKNOWN_WORDS)


def _plain(value: Any) -> Any:
    """What orjson does not know by itself: mappings that are no dicts. Raises ``TypeError``."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError
