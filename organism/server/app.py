"""The agentserver's front: the whole route table, and the one application that serves it, the socket and the page."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final

from organism.bootstrap import Organism
from organism.server.auth import Tokens
from organism.server.authenticator import Authenticator
from organism.server.call import Route, Speaker
from organism.server.connections import ConnectionRegistry
from organism.server.edge import Edge
from organism.server.headers import Hosts
from organism.server.live_tokens import LiveTokens
from organism.server.metrics import Metrics
from organism.server.page import load_page
from organism.server.rights import OPEN
from organism.server.routes import (
    agents,
    history,
    inject,
    invoke,
    live,
    open_items,
    organism,
    service,
    threads,
    tools,
    usage,
)
from organism.server.socket import WebSockets
from organism.server.viewer import Tail
from organism.server.wire import Cursors
from organism.tenants import Tenant

BASE: Final = "/api/v1"
V1: Final = "/v1"

RESOURCES: Final = (
    *threads.ROUTES,
    *history.MESSAGES,
    *inject.ROUTES,
    *invoke.ROUTES,
    *agents.ROUTES,
    *organism.ROUTES,
    *open_items.ROUTES,
    *usage.ROUTES,
    *history.LOG,
    *live.ROUTES,
    *service.ROUTES,
)
ROUTES: Final[tuple[Route, ...]] = (
    *(replace(route, mount=BASE) for route in RESOURCES),
    *(route for route in RESOURCES if route.right is OPEN),
    *invoke.ROUTES,
    *(replace(route, mount=V1) for route in tools.FOR_MODELS),
    *tools.AT_ROOT,
    *service.AT_ROOT,
)
"""Every route. Those that need no token, and invoke, are mounted at the root too; metrics and MCP only there."""


class App:
    """The ASGI application of one organism. ``stopping`` is done once the graceful stop begins."""

    def __init__(self, running: Organism, tokens: Tokens, key: bytes, hosts: Hosts) -> None:
        self.organism = running
        self.redactor = running.parts.redactor
        self.cursors = Cursors(key)
        self.documents: Callable[[str], Awaitable[bytes]] = service.Documents(ROUTES).text
        self.mcp: Speaker = tools.Mcp(self)
        self.metrics = Metrics()
        self.stopping: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        authenticator = Authenticator(tokens, self._seconds, self.redactor.learn)
        self.tickets = authenticator.tickets
        self.connections = ConnectionRegistry(tokens, self._seconds)
        self._http = Edge(self, authenticator, hosts, ROUTES, load_page())
        self._sockets = WebSockets(self, authenticator, hosts)
        self._looking = LiveTokens(running, tokens, self.connections.review).begin()

    @property
    def watching(self) -> int:
        """How many clients watch, over a WebSocket or a stream."""
        return self.connections.count

    def _seconds(self) -> float:
        """Monotonic seconds."""
        return self.organism.parts.monotonic_ns() / 1e9

    def tail(self, tenant: Tenant) -> Tail:
        """The tail that all who watch a tenant share."""
        return self._sockets.tail(tenant)

    def request_stop(self) -> None:
        if not self.stopping.done():
            self.stopping.set_result(None)

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await self._sockets(scope, receive, send)
