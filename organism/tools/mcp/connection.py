"""The connection to one MCP server: made when it is needed, made anew when it broke.

A connection lives in a task of its own, since what it opens has to be closed where it was opened. Whoever calls asks
for the client first; a broken connection is noticed when the server's stream ends, so that no call goes into it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import anyio
import httpx2
from mcp import Client, InputRequiredRoundsExceededError, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import Implementation, Tool
from pydantic import ValidationError

from organism.config.tool_settings import McpServer
from organism.tools.mcp.last_words import LastWords
from organism.tools.web import NoAnswer

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
        self._words = LastWords()
        self._refusal = ""

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
        ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._owner = asyncio.create_task(self._own(ready), name=f"mcp-{self.name}")
        self._owner.add_done_callback(self._ended)
        first: set[asyncio.Future[Any]] = {self._owner, ready}
        await asyncio.wait(first, timeout=CONNECT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            why = self._why(self._owner)
            ready.cancel()
            await self._drop()
            raise NoAnswer("upstream_error", f"The MCP server {self.name} cannot be reached: {why}.")
        self._client = ready.result()

    async def _own(self, ready: asyncio.Future[Client]) -> None:
        """Hold the connection until it breaks or is left."""
        async with AsyncExitStack() as stack:
            transport = await self._transport(stack)
            client = await stack.enter_async_context(
                Client(_watched(transport, self._leave), client_info=_ABOUT_US, cache=None)
            )
            ready.set_result(client)
            await self._leave.wait()
            self._client = None

    async def _transport(self, stack: AsyncExitStack) -> AbstractAsyncContextManager[Any]:
        server = self.server
        if server.command:
            inherited = {name: self._environment[name] for name in server.inherit if name in self._environment}
            run = StdioServerParameters(
                command=server.command[0],
                args=list(server.command[1:]),
                env={**inherited, **server.env},
                cwd=self._folder,
            )
            self._words = LastWords()
            return stdio_client(run, errlog=stack.enter_context(self._words))
        token = self._environment.get(server.token_env, "") if server.token_env else ""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        timeout = httpx2.Timeout(CONNECT_SECONDS, read=server.timeout_s)
        hooks = {"response": [self._heard]}
        http = httpx2.AsyncClient(headers=headers, timeout=timeout, trust_env=False, event_hooks=hooks)
        return streamable_http_client(server.url, http_client=await stack.enter_async_context(http))

    async def _heard(self, answer: httpx2.Response) -> None:
        self._refusal = f"it answered {answer.status_code}" if answer.is_error else ""

    def _ended(self, owner: asyncio.Task[None]) -> None:
        if owner is self._owner:
            self._client = None
        if not owner.cancelled():
            owner.exception()  # told to whoever waited for it

    def _why(self, owner: asyncio.Task[None]) -> str:
        if not owner.done():
            return f"it did not answer within {CONNECT_SECONDS:g} seconds"
        error = None if owner.cancelled() else owner.exception()
        said = (_told(error) if error is not None else "it ended", self._refusal, self._words.said)
        return "; ".join(filter(None, said))

    async def tools(self) -> list[Tool]:
        """Every tool that the server has and that is wanted. Raises ``NoAnswer``."""
        client = await self.client()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                found = await _listed(client)
        except TimeoutError as error:
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
    """Page after page, as far as they are asked for."""
    found: list[Tool] = []
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


@asynccontextmanager
async def _watched(transport: AbstractAsyncContextManager[Any], ended: asyncio.Event) -> AsyncIterator[Any]:
    """The transport, saying when the server's stream ends."""
    async with transport as (read, write):
        send, receive = anyio.create_memory_object_stream[Any](0)

        async def pass_on() -> None:
            async with send:
                with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                    async for message in read:
                        await send.send(message)
            ended.set()

        async with anyio.create_task_group() as group, receive:
            group.start_soon(pass_on)
            yield receive, write
            group.cancel_scope.cancel()


def _told(error: BaseException) -> str:
    """An error in few words; of a group the first of those in it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return " ".join(str(error).split())[:300] or type(error).__name__
