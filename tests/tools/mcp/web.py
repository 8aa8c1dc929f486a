"""An MCP server over HTTP, in this process, that answers each message by bytes that a test says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.tools.outside import answer, lines_of

Said = bytes | None
VERSION = "2025-06-18"


@dataclass
class Web:
    """``calls`` answers a call of a tool: None hangs up. ``done`` are the calls that came, ``heads`` all heads.

    ``session`` is the one that it knows now; messages of another are answered 404.
    """

    calls: Callable[[dict[str, Any]], Said]
    session: str = ""
    port: int = 0
    done: list[dict[str, Any]] = field(default_factory=list)
    heads: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    listening: asyncio.Server | None = None
    tools: list[dict[str, Any]] = field(default_factory=lambda: [{"name": "do", "inputSchema": {"type": "object"}}])

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}/mcp"

    async def begin(self) -> None:
        """Listen; at the same port as before, if it did."""
        self.listening = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self.listening.sockets[0].getsockname()[1]

    async def end(self) -> None:
        """Listen no more."""
        assert self.listening is not None
        self.listening.close()
        await self.listening.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            headers = lines_of(head)
            self.heads.append((head.split(" ")[0], headers))
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            said = self._said(json.loads(body), headers) if body else answer(b"", "405 Method Not Allowed")
            if said is not None:
                writer.write(said)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    def _said(self, message: dict[str, Any], headers: dict[str, str]) -> Said:
        if message["method"] == "initialize":
            about = {"name": "web", "version": "1"}
            result = {"protocolVersion": VERSION, "capabilities": {"tools": {}}, "serverInfo": about}
            return reply(message, result, mcp_session_id=self.session)
        if self.session and headers.get("mcp-session-id") != self.session:
            return answer(b"gone", "404 Not Found", connection="close")
        if "id" not in message:
            return answer(b"", "202 Accepted", connection="close")
        if message["method"] == "tools/call":
            self.done.append(message)
            return self.calls(message)
        if message["method"] == "tools/list":
            return reply(message, {"tools": self.tools})
        return refused(message)


def reply(message: dict[str, Any], result: Any, **headers: str) -> bytes:
    """The answer to a message."""
    body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
    return answer(body, kind="application/json", connection="close", **headers)


def text(message: dict[str, Any], said: str = "done", **headers: str) -> bytes:
    """The answer of a tool in words."""
    return reply(message, {"content": [{"type": "text", "text": said}]}, **headers)


def refused(message: dict[str, Any]) -> bytes:
    """The answer to a method that there is not."""
    error = {"code": -32601, "message": "no such method"}
    body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode()
    return answer(body, kind="application/json", connection="close")


@asynccontextmanager
async def web(calls: Callable[[dict[str, Any]], Said], session: str = "") -> AsyncIterator[Web]:
    """A server on loopback."""
    server = Web(calls, session)
    await server.begin()
    try:
        yield server
    finally:
        await server.end()
