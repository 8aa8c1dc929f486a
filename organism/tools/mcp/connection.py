"""The connection to one MCP server: made when it is needed, and made again once the server has ended it.

It lives in a task of its own, since what it opens must be closed in the task that opened it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import anyio
import structlog
from mcp import Client, InputRequiredRoundsExceededError, MCPError
from mcp.types import Implementation, JSONRPCResponse, Tool
from mcp_types.methods import parse_server_result
from pydantic import ValidationError

from organism.config.tools import McpServer
from organism.tools.mcp.http import http_streams
from organism.tools.mcp.stdio import LastWords, stdio_streams
from organism.tools.web import ToolFailure, one_line

CONNECT_SECONDS: Final = 20.0
MOST_PAGES: Final = 20
MOST_TOOLS: Final = 500
LIST_VERSION: Final = "2025-11-25"
"""The version of the protocol that says what a tool in a list must have."""
FAULTS: Final = (MCPError, InputRequiredRoundsExceededError, ValidationError, RuntimeError, anyio.ClosedResourceError)
"""What a client raises when the server, or what it sends, is at fault."""
_CLIENT: Final = Implementation(name="organism", version="1")


class Connection:
    """One server. ``folder`` is where a command runs, ``environment`` what its variables and tokens are taken from."""

    def __init__(self, name: str, server: McpServer, folder: Path, environment: Mapping[str, str]) -> None:
        self.name = name
        self.server = server
        self._folder = folder
        self._environment = environment
        self._client: Client | None = None
        self._owner: asyncio.Task[None] | None = None
        self._attempt = anyio.CancelScope()
        self._leave = asyncio.Event()
        self._connecting = asyncio.Lock()
        self.words = LastWords()
        self.received = 0
        """How many messages have come from it."""

    async def client(self) -> Client:
        """The connected client; connects if there is none. Raises ``ToolFailure``: nothing was sent."""
        async with self._connecting:
            if self._client is None:
                await self._drop()
                await self._connect()
            assert self._client is not None  # noqa: S101 - narrows the type
            return self._client

    async def _connect(self) -> None:
        self._leave = asyncio.Event()
        self._attempt = anyio.CancelScope()
        self.words = LastWords()
        connected = asyncio.Event()
        owner = asyncio.create_task(self._own(connected, self.words), name=f"mcp-{self.name}")
        self._owner = owner
        owner.add_done_callback(lambda task: task.cancelled() or task.exception())  # retrieved: ``_why`` reports it
        waiting = asyncio.ensure_future(connected.wait())
        try:
            await asyncio.wait({owner, waiting}, timeout=CONNECT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if self._client is None:
            why = self._why(owner)
            await self._drop()
            raise ToolFailure("upstream_error", f"The MCP server {self.name} cannot be reached: {why}.")

    async def _own(self, connected: asyncio.Event, words: LastWords) -> None:
        """Hold the connection until it breaks or is dropped."""
        leave = self._leave

        def ended() -> None:
            if leave is self._leave:
                self._client = None
            leave.set()

        streams = self._watched(self._transport(words), ended)
        try:
            with self._attempt:  # cancelled by ``_drop``
                async with Client(streams, client_info=_CLIENT, cache=None) as client:
                    if not leave.is_set():
                        self._client = client
                    connected.set()
                    await leave.wait()
        finally:
            ended()

    def _transport(self, words: LastWords) -> AbstractAsyncContextManager[Any]:
        server, environment = self.server, self._environment
        if server.command:
            inherited = {name: environment[name] for name in server.inherit if name in environment}
            return stdio_streams(server.command, self._folder, {**inherited, **server.env}, words)
        token = environment.get(server.token_env, "") if server.token_env else ""
        return http_streams(server.url, token, CONNECT_SECONDS, server.timeout_s)

    @asynccontextmanager
    async def _watched(
        self, transport: AbstractAsyncContextManager[Any], ended: Callable[[], None]
    ) -> AsyncIterator[Any]:
        """The transport, its messages counted; ``ended`` is called before the client notices its end."""
        async with transport as (read, write):
            send, receive = anyio.create_memory_object_stream[Any](0)

            async def pass_on() -> None:
                async with send:
                    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                        async for message in read:
                            self.received += 1
                            await send.send(self._with_usable_tools(message))
                    ended()

            async with anyio.create_task_group() as group, receive:
                group.start_soon(pass_on)
                yield receive, write
                group.cancel_scope.cancel()

    def _with_usable_tools(self, message: Any) -> Any:
        """The message; a list of tools without those that the protocol's client would refuse the whole list for.

        It goes without their output schemas: the client would run their patterns in the loop's thread.
        """
        answer = getattr(message, "message", None)
        tools = answer.result.get("tools") if isinstance(answer, JSONRPCResponse) else None
        if isinstance(answer, JSONRPCResponse) and isinstance(tools, list):
            answer.result["tools"] = [tool for tool in tools if self._is_usable(tool)]
        return message

    def _is_usable(self, tool: Any) -> bool:
        if isinstance(tool, dict):
            tool.pop("outputSchema", None)
        try:
            parse_server_result("tools/list", LIST_VERSION, {"tools": [tool]})
        except ValidationError as error:
            name = tool.get("name") if isinstance(tool, dict) else None
            self.leave_out(name if isinstance(name, str) else "a tool without a name", one_line(error))
            return False
        return True

    def leave_out(self, tool: str, reason: str) -> None:
        """Log why a tool is not offered."""
        structlog.get_logger("organism.tools.mcp").warning(
            "mcp_tool_left_out", server=self.name, tool=tool, reason=reason
        )

    def _why(self, owner: asyncio.Task[None]) -> str:
        if not owner.done():
            return f"it did not answer within {CONNECT_SECONDS:g} seconds"
        error = None if owner.cancelled() else owner.exception()
        return "; ".join(filter(None, (_described(error) if error is not None else "it ended", self.words.text)))

    async def tools(self) -> list[Tool]:
        """All tools of the server that the configuration wants. Raises ``ToolFailure``."""
        client = await self.client()
        failed = f"The MCP server {self.name} does not list its tools"
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                found = await _listed(client)
        except TimeoutError as error:
            await self.drop()
            raise ToolFailure("upstream_timeout", f"{failed}.") from error
        except FAULTS as error:
            raise ToolFailure("upstream_error", f"{failed}: {_described(error)}.") from error
        wanted = self.server.tools
        return [tool for tool in found[:MOST_TOOLS] if not wanted or tool.name in wanted]

    async def _drop(self) -> None:
        self._leave.set()
        if self._client is None:
            self._attempt.cancel()
        owner, self._owner, self._client = self._owner, None, None
        if owner is None:
            return
        _, late = await asyncio.wait({owner}, timeout=CONNECT_SECONDS)
        for each in late:
            each.cancel()
            with suppress(asyncio.CancelledError):
                await each

    async def drop(self) -> None:
        """Close the connection; ``client`` connects again."""
        async with self._connecting:
            await self._drop()


async def _listed(client: Client) -> list[Tool]:
    found: list[Tool] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


def _described(error: BaseException) -> str:
    """An error in few words; of a group the first of its errors."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return one_line(error)
