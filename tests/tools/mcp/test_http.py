"""Servers at an address: what is known when one fails in the midst of it, and how much of an answer is taken."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from organism.config.tools import McpServer
from organism.model.handler import EffectUnknown
from organism.model.tool import ToolArguments, ToolError
from organism.tools.mcp.calls import tool_handler
from organism.tools.mcp.connection import Connection
from organism.tools.mcp.http import MOST_ANSWER_BYTES
from organism.tools.web import ToolFailure
from tests.tools.mcp.web import Said, Web, text, web
from tests.tools.outside import Steps, answer

TOKEN = "the-token-of-the-tools"
SOMETHING = b'{"jsonrpc":"2.0","id":1,"result":{}}'


@asynccontextmanager
async def connected(server: Web) -> AsyncIterator[Connection]:
    """A connection that stands."""
    settings = McpServer(url=server.url, token_env="TOKEN", timeout_s=10)
    connection = Connection("far", settings, Path(), {"TOKEN": TOKEN})
    try:
        await connection.client()
        yield connection
    finally:
        await connection.drop()


async def result_of(connection: Connection) -> Any:
    """What a call comes to."""
    return (await tool_handler(connection, "do", "unsafe", None)(ToolArguments("{}"), cast("Any", Steps()))).payload


async def test_a_call_is_answered_and_has_the_token() -> None:
    async with web(text) as server, connected(server) as connection:
        assert (await result_of(connection)).text == "done"
        assert {headers.get("authorization") for _, headers in server.heads} == {f"Bearer {TOKEN}"}


async def test_a_server_that_is_not_there_any_more_has_done_nothing_and_is_asked_again_when_it_is() -> None:
    async with web(text) as server, connected(server) as connection:
        await server.end()
        found = await result_of(connection)
        assert isinstance(found, ToolError)
        assert found.message.startswith("The MCP server far cannot be reached: ")
        await server.begin()
        assert (await result_of(connection)).text == "done"


async def test_a_server_that_has_forgotten_the_session_is_asked_again_and_acts_once() -> None:
    async with web(text, session="one") as server, connected(server) as connection:
        await result_of(connection)
        server.session = "two"
        assert (await result_of(connection)).text == "done"
        assert len(server.done) == 2


async def test_a_server_that_forgets_each_session_is_not_asked_for_ever() -> None:
    def forgetful(message: dict[str, Any]) -> Said:
        return answer(b"gone", "404 Not Found", connection="close")

    async with web(forgetful, session="one") as server, connected(server) as connection:
        refusal = "The MCP server far refused the call: it has forgotten the session"
        assert await result_of(connection) == ToolError("upstream_error", refusal)
        assert len(server.done) == 2


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (None, "Server disconnected"),
        (answer(b"", "502 Bad Gateway"), "a gateway answered 502"),
        (answer(b"later", "504 Gateway Timeout"), "a gateway answered 504"),
        (answer(b": nothing\n\n", kind="text/event-stream", connection="close"), "SSE stream ended"),
    ],
)
async def test_what_may_have_been_done_is_not_known(said: Said, why: str) -> None:
    async with web(lambda _: said) as server, connected(server) as connection:
        with pytest.raises(EffectUnknown, match=f"lost in the midst of the call: {why}"):
            await result_of(connection)
        assert len(server.done) == 1


@pytest.mark.parametrize(
    ("said", "message"),
    [
        (answer(b"no", "401 Unauthorized"), "refused the call: it answered 401"),
        (answer(b'{"error":{}}', "403 Forbidden", kind="application/json"), "refused the call: it answered 403"),
        (answer(b"no", "500 Internal Server Error"), "refused the call: it answered 500"),
        (answer(b"", "302 Found", location="https://evil.example/"), "refused the call: Redirect to"),
        (answer(b"<html>", kind="text/html"), "refused the call: Unexpected content type: text/html"),
    ],
)
async def test_a_refusal_is_reported_with_its_status(said: bytes, message: str) -> None:
    async with web(lambda _: said) as server, connected(server) as connection:
        found = await result_of(connection)
        assert found.code == "upstream_error"
        assert found.message.startswith(f"The MCP server far {message}")
        assert len(server.done) == 1


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (answer(b"[" + b" " * MOST_ANSWER_BYTES, kind="application/json"), "it has more than 4194304 bytes"),
        (answer(b"data: " + b"x" * MOST_ANSWER_BYTES, kind="text/event-stream"), "it has more than 4194304 bytes"),
        (
            answer(b"event: message\r\ndata: " + b"x" * MOST_ANSWER_BYTES + b"\r\n\r\n", kind="text/event-stream"),
            "it has more than 4194304 bytes",
        ),
        (answer(SOMETHING, kind="application/json").replace(b": 36", b": 99"), "it breaks off: "),
        (answer(SOMETHING, kind="application/json", content_encoding="gzip"), "it is compressed"),
        (answer(b"{", kind="application/json"), "Failed to parse JSON response"),
    ],
)
async def test_an_answer_that_cannot_be_read_is_reported_as_one(said: bytes, why: str) -> None:
    async with web(lambda _: said) as server, connected(server) as connection:
        found = await result_of(connection)
        assert found.message.startswith("The MCP server far was asked, and its answer cannot be read: ")
        assert why in found.message
        assert len(server.done) == 1


async def test_a_call_that_fails_leaves_those_beside_it_alone() -> None:
    calls: list[dict[str, Any]] = []

    def every_second(message: dict[str, Any]) -> Said:
        calls.append(message)
        return text(message) if len(calls) % 2 else None

    async with web(every_second) as server, connected(server) as connection:
        found = await asyncio.gather(*(result_of(connection) for _ in range(8)), return_exceptions=True)
        assert sorted(type(each).__name__ for each in found) == ["EffectUnknown"] * 4 + ["ToolOutput"] * 4


async def test_a_redirect_to_another_place_gets_no_token() -> None:
    async with web(text) as other:
        away = answer(b"", "307 Temporary Redirect", location=other.url)
        async with web(lambda _: away) as server, connected(server) as connection:
            assert (await result_of(connection)).code == "upstream_error"
        assert other.heads == []


@pytest.mark.parametrize("status", ["401 Unauthorized", "404 Not Found", "503 Service Unavailable"])
async def test_a_server_that_lets_nobody_in_is_reported_by_its_status(
    status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Web, "_said", lambda *_: answer(b"no", status, connection="close"))
    async with web(text) as server:
        with pytest.raises(ToolFailure, match=r"cannot be reached: it answered (401|404|503)"):
            async with connected(server):
                pass
