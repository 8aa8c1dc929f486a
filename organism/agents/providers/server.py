"""What the providers `openai` and `anthropic` share: they ask a server through its vendor's SDK."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeVar

import orjson

from organism.agents.providers import ProviderError
from organism.agents.providers.answer import Answer, dollars
from organism.agents.providers.failures import Access, Failures, Refused, ServerError
from organism.model.completion import ModelRequest, Part

if TYPE_CHECKING:
    import httpx2

UNKNOWN_STATUSES: Final = frozenset({400, 422})
UNKNOWN_WORDS: Final = (
    "support", "unrecognized", "unknown", "unexpected", "not permitted", "deprecated", "extra input",
)  # fmt: skip
END: Final = object()
COST_HEADER: Final = "x-litellm-response-cost"

T = TypeVar("T")


class Sdk(NamedTuple):
    """A client of an SDK, its class of streams of plain JSON, and the base of its errors."""

    client: Any
    stream: type
    error: type[Exception]


@dataclass(frozen=True, slots=True)
class Api:
    """What differs between vendors."""

    name: str
    base_url: str
    path: str
    optional: tuple[str, ...]  # parameters that are left out for servers that do not know them
    headers: Callable[[str], Mapping[str, str]]
    connect: Callable[[Access, str, httpx2.AsyncClient], Sdk]
    body: Callable[[ModelRequest, frozenset[str]], Mapping[str, Any]]
    reader: Callable[[Answer], Callable[[Mapping[str, Any]], Iterator[Part]]]
    content: str  # the key that a whole answer must have
    id_prefix: str = "call"
    version_path: str = ""  # the SDK adds it to the address, which usually ends with it already


@dataclass(frozen=True, slots=True)
class Waits:
    """How long a call waits; for events as shares of its whole time, since a small machine is silent for long.

    ``now`` gives seconds since 1970: a server may say by a date when it wants to be asked again.
    """

    connect_s: float = 10.0
    first_share: float = 0.75
    next_share: float = 0.5
    end_s: float = 3.0
    now: Callable[[], float] = time.time


class Server:
    """One model; see ``Provider``. Nothing is read from the environment.

    ``socket`` is a Unix socket to connect to, in place of the address's host.
    """

    api: ClassVar[Api]

    def __init__(
        self,
        base_url: str | None = None,
        key: str | None = None,
        api_key_env: str | None = None,
        waits: Waits | None = None,
        socket: Path | None = None,
    ) -> None:
        address = (base_url or self.api.base_url).rstrip("/").removesuffix(self.api.version_path)
        self._access = Access(address, key, api_key_env, needs_key=base_url is None)
        self._waits = waits or Waits()
        self._socket = socket
        self._opening = asyncio.Lock()
        self._sdk: Sdk | None = None
        self._is_closed = False
        self._without: frozenset[str] = frozenset()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part, None]:
        """See ``Provider``. Closing it ends the call's connection. What a content filter stops ends for that reason."""
        answer = Answer(Failures(self._access, request, self._waits.now), self.api.id_prefix)
        try:
            async with aclosing(self._read(request, answer)) as parts:
                async for part in parts:
                    yield part
        except ProviderError as error:
            if error.fault != "withheld":
                raise
            answer.withhold()
        for part in answer.end():
            yield part

    async def _read(self, request: ModelRequest, answer: Answer) -> AsyncGenerator[Part, None]:
        """Gather the answer, and give its texts and thoughts as they come."""
        sdk, failures = await self._opened(), answer.failures
        call = _Call(sdk, failures, request.timeout_s, self._waits)
        events = await self._open_stream(sdk, request, call)
        try:
            answer.cost_usd = dollars(events.response.headers.get(COST_HEADER))
            read = self.api.reader(answer)
            kind = events.response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind == "text/html":
                raise failures.malformed("with a page for people")
            if kind == "application/json":
                whole = _object(await call.wait(events.response.aread()), failures)
                for part in read(whole):
                    yield part
                if not isinstance(content := whole.get(self.api.content), list):
                    raise failures.malformed(f"with JSON that has no `{self.api.content}`")
                answer.is_finished |= bool(content)
            else:
                while (event := await call.next(events, answer)) is not END:
                    for part in read(event):
                        yield part
        finally:
            await events.close()

    async def ask(self, path: str, body: Mapping[str, Any], request: ModelRequest) -> Mapping[str, Any]:
        """The JSON object with which the server answers ``body``; ``request`` is that in our words, for its errors."""
        failures = Failures(self._access, request, self._waits.now)
        sdk = await self._opened()
        call = _Call(sdk, failures, request.timeout_s, self._waits)
        posted = sdk.client.post(path, cast_to=object, content=request_json(body), stream=True, stream_cls=sdk.stream)
        answer = await call.wait(posted)
        try:
            return _object(await call.wait(answer.response.aread()), failures)
        finally:
            await answer.close()

    async def close(self) -> None:
        async with self._opening:
            self._is_closed = True
            if self._sdk is not None:
                await self._sdk.client.close()

    async def _opened(self) -> Sdk:
        """The SDK. Loading takes a second or two, so it is done in a thread and does not count as the call's time."""
        if self._is_closed:
            raise ProviderError("unavailable", f"The provider of {self._access.host} is closed.")
        if self._sdk is not None:
            return self._sdk
        async with self._opening:
            if self._sdk is None:
                self._sdk = await asyncio.to_thread(self._load)
            return self._sdk

    def _load(self) -> Sdk:
        key = self._access.credential()
        from organism.agents.providers import transport

        transport.quiet(self.api.name)
        headers = self.api.headers(key) if key else {}
        http = transport.http_client(self._access.base_url, headers, self._waits.connect_s, self._socket)
        return self.api.connect(self._access, key or "none", http)

    async def _open_stream(self, sdk: Sdk, request: ModelRequest, call: _Call) -> Any:
        """The SDK's stream, unread. A server that refuses an optional parameter is asked without it from then on."""
        while True:
            body = self.api.body(request, self._without)
            content = request_json(body)
            posted = sdk.client.post(self.api.path, cast_to=object, content=content, stream=True, stream_cls=sdk.stream)
            try:
                return await call.wait(posted)
            except Refused as refusal:
                unknown = self._unknown(refusal, body)
                if unknown is None:
                    raise
                self._without |= {unknown}

    def _unknown(self, refusal: Refused, body: Mapping[str, Any]) -> str | None:
        """The optional parameter that the server does not know, if that is why it refused."""
        if refusal.status not in UNKNOWN_STATUSES:
            return None
        of_tools = (name for tool in body.get("tools", ()) for name in tool.get("function", tool))
        named = {*body, *of_tools}
        sent = (name for name in self.api.optional if name in named)
        return next((name for name in sent if _is_unknown(name, refusal.report)), None)


class _Call:
    """Waits for the server within the time limits of one call, and turns failures into ``ProviderError``."""

    def __init__(self, sdk: Sdk, failures: Failures, whole_s: float, waits: Waits) -> None:
        from organism.agents.providers import transport

        self.failures = failures
        self._errors = (sdk.error, *transport.ERRORS, ValueError, RecursionError)  # the last two of text and JSON
        self._now = asyncio.get_running_loop().time
        self._whole_s = whole_s
        self._waits = waits
        self._began = self._now()
        self._last = self._began + whole_s
        self._has_begun = self._is_ending = False

    async def wait(self, coming: Awaitable[T]) -> T:
        limit, missed, seconds = self._limit()
        try:
            async with asyncio.timeout_at(limit):
                return await coming
        except TimeoutError:
            failure = self.failures.late(missed, seconds)
        except self._errors as error:
            failure = self.failures.of(error, has_begun=self._has_begun, connect_s=self._waits.connect_s)
        raise failure  # here, so that its context is no exception that shows the request

    async def next(self, events: Any, answer: Answer) -> Any:
        """The next event or ``END``. A failure after the model has finished loses nothing of its answer."""
        if answer.is_finished and not self._is_ending:
            self._is_ending = True
            self._last = min(self._last, self._now() + self._waits.end_s)
        try:
            event = await self.wait(anext(events, END))
        except ProviderError:
            if answer.is_finished:
                return END
            raise
        self._has_begun = True
        if event is not END and not isinstance(event, dict):
            if answer.is_finished:
                return END
            raise self.failures.malformed("with an event that is no JSON object")
        return event

    def _limit(self) -> tuple[float, str, float]:
        """The deadline of the next event, what a server that misses it did not do, and within how many seconds."""
        missed, since, share = "did not begin to answer", self._began, self._waits.first_share
        if self._has_begun:
            missed, since, share = "did not go on", self._now(), self._waits.next_share
        limit, seconds = since + share * self._whole_s, share * self._whole_s
        return (limit, missed, seconds) if limit < self._last else (self._last, "did not end its answer", self._whole_s)


def _object(text: bytes, failures: Failures) -> Mapping[str, Any]:
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        raise failures.malformed("what is no JSON") from None
    if not isinstance(answer, dict):
        raise failures.malformed("with JSON that is no object")
    return answer


def request_json(body: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(body, default=dict)
    except TypeError:
        raise ProviderError(
            "rejected", "The request cannot be written as JSON: it may hold half a character."
        ) from None


def _is_unknown(name: str, report: ServerError) -> bool:
    is_named = report.param == name or re.search(rf"\b{name}\b", report.text) is not None
    words = f"{report.text} {report.code}".casefold()
    return is_named and any(word in words for word in UNKNOWN_WORDS)
