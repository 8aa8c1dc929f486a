"""The agentserver's front: the whole route table, and the one application that serves it, the socket and the page."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, Final

from organism.bootstrap import Organism
from organism.server.auth import Tokens
from organism.server.authenticator import Authenticator
from organism.server.call import Documents, Route, Speaker
from organism.server.connections import ConnectionRegistry
from organism.server.documents.shelf import Shelf
from organism.server.edge import Edge
from organism.server.headers import Hosts
from organism.server.live_tokens import LiveTokens
from organism.server.metrics import Metrics
from organism.server.page import load_page
from organism.server.rights import OPEN
from organism.server.routes import (
    agents,
    approvals,
    dead_letters,
    documents,
    events,
    graph,
    health,
    indeterminate,
    inject,
    invoke,
    log,
    mcp,
    messages,
    metrics,
    models,
    organism,
    threads,
    tools,
    usage,
    ws_ticket,
)
from organism.server.socket import WebSockets
from organism.server.viewer import Tail
from organism.server.wire import Cursors
from organism.tenants import Tenant

BASE: Final = "/api/v1"
V1: Final = "/v1"

RESOURCES: Final = (
    *threads.ROUTES,
    *messages.ROUTES,
    *inject.ROUTES,
    *invoke.ROUTES,
    *agents.ROUTES,
    *organism.ROUTES,
    *graph.ROUTES,
    *dead_letters.ROUTES,
    *approvals.ROUTES,
    *indeterminate.ROUTES,
    *usage.ROUTES,
    *log.ROUTES,
    *events.ROUTES,
    *ws_ticket.ROUTES,
    *health.ROUTES,
    *documents.ROUTES,
)

FOR_MODELS: Final = (*models.ROUTES, *tools.ROUTES)
"""Mounted below /v1, where clients of models look for them."""

ROUTES: Final[tuple[Route, ...]] = (
    *(replace(route, mount=BASE) for route in RESOURCES),
    *(route for route in RESOURCES if route.right is OPEN),
    *invoke.ROUTES,
    *(replace(route, mount=V1) for route in FOR_MODELS),
    *mcp.ROUTES,
    *metrics.ROUTES,
)
"""Every route. Those that need no token, and invoke, are mounted at the root too; metrics and MCP only there."""


class App:
    """The ASGI application of one organism. ``stopping`` is done once the graceful stop begins."""

    def __init__(self, running: Organism, tokens: Tokens, key: bytes, hosts: Hosts) -> None:
        self.organism = running
        self.redactor = running.parts.redactor
        self.cursors = Cursors(key)
        self.documents: Documents = Shelf(ROUTES)
        self.mcp: Speaker = mcp.Mcp(self)
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
