"""An MCP server at an address, asked over HTTP within bounds.

The protocol's client reports all failures alike; this transport distinguishes nothing sent, refused, outcome unknown.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx2
import orjson
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CONNECTION_CLOSED, INTERNAL_ERROR, PARSE_ERROR

from organism.tools.web import is_compressed, one_line

MOST_ANSWER_BYTES: Final = 4 * 1024 * 1024
TOO_LONG: Final = f"it has more than {MOST_ANSWER_BYTES} bytes"
LEAVING_SECONDS: Final = 2.0
NOTHING_DONE: Final = -32019
"""The code of our own answer when the server did not get the request, or has forgotten the session."""
SESSION: Final = "mcp-session-id"
_GATEWAYS: Final = frozenset({502, 504})
"""A gateway answers, and does not know what the server did."""
_NOT_FOUND: Final = 404
_UNAVAILABLE: Final = 503
_JSON: Final = "application/json"
_EVENTS: Final = "text/event-stream"
_END_OF_EVENT: Final = re.compile(rb"\r\n\r\n|\n\n|\r\r")


@asynccontextmanager
async def http_streams(url: str, token: str, connect_seconds: float, answer_seconds: float) -> AsyncIterator[Any]:
    """The two streams of its messages. ``token`` may be empty."""
    headers = {"Accept-Encoding": "identity", **({"Authorization": f"Bearer {token}"} if token else {})}
    async with (
        httpx2.AsyncClient(
            headers=headers,
            timeout=httpx2.Timeout(connect_seconds, read=answer_seconds),
            trust_env=False,
            transport=_Transport(trust_env=False),
        ) as http,
        streamable_http_client(url, http_client=http, max_sse_event_size=2 * MOST_ANSWER_BYTES) as streams,
    ):
        yield streams


class _Transport(httpx2.AsyncHTTPTransport):
    """Plain HTTP, but answers are bounded, and failures become errors of the protocol."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method == "DELETE":  # the end of a session: sent, not waited for
            request.extensions["timeout"] = httpx2.Timeout(LEAVING_SECONDS).as_dict()
        try:
            answer = await super().handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            return _refusal(request, _UNAVAILABLE, NOTHING_DONE, one_line(error))
        except httpx2.TransportError as error:
            return _refusal(request, _UNAVAILABLE, CONNECTION_CLOSED, one_line(error))
        if request.method != "POST":
            return answer
        if is_compressed(answer):
            await answer.aclose()
            return _refusal(request, _UNAVAILABLE, PARSE_ERROR, "it is compressed, though it was asked for as it is")
        return await _refused(request, answer) if answer.is_error else _bounded(request, answer)


async def _refused(request: httpx2.Request, answer: httpx2.Response) -> httpx2.Response:
    """An answer with an error status: the server's own error if it speaks the protocol, else one made of its status."""
    status = answer.status_code
    try:
        error = orjson.loads(await _bounded(request, answer).aread())
    except (httpx2.StreamError, orjson.JSONDecodeError):
        error = None
    finally:
        await answer.aclose()
    if isinstance(error, dict) and "jsonrpc" in error:
        return _json(request, status, error)
    if status in _GATEWAYS:
        return _refusal(request, status, CONNECTION_CLOSED, f"a gateway answered {status}")
    if status == _NOT_FOUND and SESSION in request.headers:
        return _refusal(request, status, NOTHING_DONE, "it has forgotten the session")
    return _refusal(request, status, INTERNAL_ERROR, f"it answered {status}")


def _refusal(request: httpx2.Request, status: int, code: int, message: str) -> httpx2.Response:
    return _json(request, status, {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}})


def _json(request: httpx2.Request, status: int, answer: object) -> httpx2.Response:
    return httpx2.Response(status, headers={"content-type": _JSON}, content=orjson.dumps(answer), request=request)


def _bounded(request: httpx2.Request, answer: httpx2.Response) -> httpx2.Response:
    """The answer, with a body that fails where it is too large or breaks off. Events are bounded one by one."""
    assert isinstance(answer.stream, httpx2.AsyncByteStream)  # noqa: S101 - as the transport gives it
    if answer.headers.get("content-type", "").lower().startswith(_EVENTS):
        answer.stream = _BoundedEvents(answer.stream, orjson.loads(request.content).get("id"))
    else:
        answer.stream = _Bounded(answer.stream)
    return answer


class _Bounded(httpx2.AsyncByteStream):
    """A body that fails where it is too large or breaks off."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MOST_ANSWER_BYTES
        try:
            async for chunk in self._stream:
                left -= len(chunk)
                if left < 0:
                    raise httpx2.StreamError(TOO_LONG)
                yield chunk
        except httpx2.TransportError as error:
            raise httpx2.StreamError(f"it breaks off: {one_line(error)}") from error

    async def aclose(self) -> None:
        await self._stream.aclose()


class _BoundedEvents(httpx2.AsyncByteStream):
    """Events, each given whole; one that is too large becomes an error in answer to the request, and is the last."""

    def __init__(self, stream: httpx2.AsyncByteStream, request_id: object) -> None:
        self._stream = stream
        self._request_id = request_id

    async def __aiter__(self) -> AsyncIterator[bytes]:
        event = bytearray()
        async for chunk in self._stream:
            start = max(0, len(event) - 3)
            event += chunk
            end = max((found.end() for found in _END_OF_EVENT.finditer(event, start)), default=0)
            if max(end, len(event) - end) > MOST_ANSWER_BYTES:
                error = {"code": PARSE_ERROR, "message": TOO_LONG}
                yield b"data: %b\n\n" % orjson.dumps({"jsonrpc": "2.0", "id": self._request_id, "error": error})
                return
            if end:
                yield bytes(event[:end])
                del event[:end]

    async def aclose(self) -> None:
        await self._stream.aclose()
