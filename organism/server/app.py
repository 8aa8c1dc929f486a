"""The agentserver's front: the whole route table, and the one application that serves it, the socket and the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from organism.bootstrap import Organism
from organism.server import service
from organism.server.api import agents, history, open_items, organism, threads, usage
from organism.server.http.auth import Tokens
from organism.server.http.call import Answer, Process, Route
from organism.server.http.edge import Edge
from organism.server.http.headers import PAGE, Hosts
from organism.server.http.live_tokens import LiveTokens
from organism.server.http.rights import OPEN
from organism.server.surfaces import inject, invoke, tools
from organism.server.ws import live
from organism.server.ws.socket import WebSockets

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


class App(Process):
    """The ASGI application of one organism."""

    def __init__(self, running: Organism, tokens: Tokens, key: bytes, hosts: Hosts) -> None:
        super().__init__(running, tokens, key, service.Documents(ROUTES).text, tools.Mcp().answer)
        self._http = Edge(self, hosts, ROUTES, load_page())
        self._sockets = WebSockets(self, hosts)
        self._looking = LiveTokens(running, tokens, self.connections.review).begin()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await self._sockets(scope, receive, send)


_KINDS: Final[Mapping[str, bytes]] = {
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".svg": b"image/svg+xml",
    ".woff2": b"font/woff2",
}
_PACKAGE: Final = Path(__file__).resolve().parent.parent
PLACES: Final = (_PACKAGE / "web", _PACKAGE.parent / "web" / "dist")
"""Where the built page lies: in an installed package, in a checkout."""


def load_page() -> Mapping[str, Answer]:
    """The page's files and the style of ``/docs``, by their paths. A server without a page serves the API alone."""
    files = {"/docs.css": _file(_PACKAGE / "server" / "documents" / "docs.css")}
    place = next((place for place in PLACES if (place / "index.html").is_file()), None)
    if place is not None:
        paths = (path for path in sorted(place.rglob("*")) if path.suffix in _KINDS)
        files |= {f"/{path.relative_to(place).as_posix()}": _file(path) for path in paths}
        files["/"] = files["/index.html"]
    return files


def _file(path: Path) -> Answer:
    body = path.read_bytes()
    tag = b'"%b"' % sha256(body).hexdigest()[:32].encode()
    return Answer(body, kind=_KINDS[path.suffix], headers=((b"etag", tag), *PAGE))
