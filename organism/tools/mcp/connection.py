"""The connection to one MCP server: made when it is needed, and again once the server's stream has ended.

It lives in a task of its own, since what it opens has to be closed where it was opened.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import anyio
from mcp import Client, InputRequiredRoundsExceededError, MCPError
from mcp.types import Implementation, JSONRPCResponse, Tool
from pydantic import ValidationError

from organism.config.tools import McpServer
from organism.tools.mcp.http import http_streams
from organism.tools.mcp.stdio import LastWords, stdio_streams
from organism.tools.web import NoAnswer, in_short

CONNECT_SECONDS: Final = 20.0
MOST_PAGES: Final = 20
MOST_TOOLS: Final = 500
FAULTS: Final = (MCPError, InputRequiredRoundsExceededError, ValidationError, RuntimeError, anyio.ClosedResourceError)
"""What a client raises when the server, or what it says, is at fault."""
_ABOUT_US: Final = Implementation(name="organism", version="1")


class Connection:
    """One server. ``folder`` is where a command runs, ``environment`` what its variables and tokens are taken from."""

    def __init__(self, name: str, server: McpServer, folder: Path, environment: Mapping[str, str]) -> None:
        self.name = name
        self.server = server
        self._folder = folder
        self._environment = environment
        self._client: Client | None = None
        self._owner: asyncio.Task[None] | None = None
        self._leave = asyncio.Event()
        self._making = asyncio.Lock()
        self.words = LastWords()
        self.heard = 0
        """How many messages have come from it."""

    async def client(self) -> Client:
        """The client of a connection that stands, made now if there is none. Raises ``NoAnswer``: nothing was sent."""
        async with self._making:
            if self._client is None:
                await self._drop()
                await self._make()
            assert self._client is not None  # noqa: S101 - made just now; narrows the type
            return self._client

    async def _make(self) -> None:
        self._leave = asyncio.Event()
        self.words = LastWords()
        stands = asyncio.Event()
        owner = asyncio.create_task(self._own(stands, self.words), name=f"mcp-{self.name}")
        self._owner = owner
        owner.add_done_callback(lambda task: task.cancelled() or task.exception())  # retrieved: ``_why`` tells it
        waiting = asyncio.ensure_future(stands.wait())
        await asyncio.wait({owner, waiting}, timeout=CONNECT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if self._client is None:
            why = self._why(owner)
            await self._drop()
            raise NoAnswer("upstream_error", f"The MCP server {self.name} cannot be reached: {why}.")

    async def _own(self, stands: asyncio.Event, words: LastWords) -> None:
        """Hold the connection until it breaks or is left."""
        leave = self._leave

        def ended() -> None:
            if leave is self._leave:
                self._client = None
            leave.set()

        watched = self._watched(self._transport(words), ended)
        try:
            async with Client(watched, client_info=_ABOUT_US, cache=None) as client:
                if not leave.is_set():
                    self._client = client
                stands.set()
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
        """The transport: what comes is counted, and its end is noticed before anybody else hears of it."""
        async with transport as (read, write):
            send, receive = anyio.create_memory_object_stream[Any](0)

            async def pass_on() -> None:
                async with send:
                    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                        async for message in read:
                            self.heard += 1
                            await send.send(_without_promises(message))
                    ended()

            async with anyio.create_task_group() as group, receive:
                group.start_soon(pass_on)
                yield receive, write
                group.cancel_scope.cancel()

    def _why(self, owner: asyncio.Task[None]) -> str:
        if not owner.done():
            return f"it did not answer within {CONNECT_SECONDS:g} seconds"
        error = None if owner.cancelled() else owner.exception()
        return "; ".join(filter(None, (_told(error) if error is not None else "it ended", self.words.text)))

    async def tools(self) -> list[Tool]:
        """Every tool that the server has and that is wanted. Raises ``NoAnswer``."""
        client = await self.client()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                found = await _listed(client)
        except TimeoutError as error:
            await self.drop()
            raise NoAnswer("upstream_timeout", f"The MCP server {self.name} does not list its tools.") from error
        except FAULTS as error:
            raise NoAnswer(
                "upstream_error", f"The MCP server {self.name} does not list its tools: {_told(error)}."
            ) from error
        wanted = self.server.tools
        return [tool for tool in found[:MOST_TOOLS] if not wanted or tool.name in wanted]

    async def _drop(self) -> None:
        self._leave.set()
        owner, self._owner, self._client = self._owner, None, None
        if owner is None:
            return
        _, late = await asyncio.wait({owner}, timeout=CONNECT_SECONDS)
        for each in late:
            each.cancel()
            with suppress(asyncio.CancelledError):
                await each

    async def drop(self) -> None:
        """Leave the connection; the next who asks for a client makes another."""
        async with self._making:
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


def _without_promises(message: Any) -> Any:
    """The message, without the output schemas of tools: the library would run their patterns in the loop's thread."""
    said = getattr(message, "message", None)
    tools = said.result.get("tools") if isinstance(said, JSONRPCResponse) else None
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict):
            tool.pop("outputSchema", None)
    return message


def _told(error: BaseException) -> str:
    """An error in few words; of a group the first of those in it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return in_short(error)
