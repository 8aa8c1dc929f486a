"""The agentserver's front: the whole route table, and the one application that serves it, the socket and the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, WebSocketRoute
from starlette.routing import Route as HttpRoute

from organism.errors import Fault, MethodNotAllowed, NotFound, OrganismError
from organism.server import introspection
from organism.server.api import (
    activity,
    agents,
    find,
    graph,
    history,
    library,
    open_items,
    organism,
    sessions,
    tenant_config,
    threads,
    usage,
)
from organism.server.http import problems
from organism.server.http.call import REQUEST_ID, Process, Route
from organism.server.http.endpoint import Endpoint
from organism.server.http.middleware import CROSS_ORIGIN, AccessLog, Guard, Page
from organism.server.http.page_files import PageFiles, files_of, is_hashed
from organism.server.http.rights import OPEN
from organism.server.surfaces import chat, completions, embeddings, inject, invoke, tools
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
    *activity.ROUTES,
    *find.ROUTES,
    *graph.ROUTES,
    *open_items.ROUTES,
    *usage.ROUTES,
    *history.LOG,
    *live.ROUTES,
    *introspection.ME,
    *introspection.ROUTES,
)
FOR_CLIENTS: Final = (
    *tools.FOR_MODELS,
    *completions.ROUTES,
    *embeddings.ROUTES,
    *tenant_config.ROUTES,
    *usage.FOR_CLIENTS,
)
"""Mounted below /v1, where clients of models look for them."""
ROUTES: Final[tuple[Route, ...]] = (
    *(replace(route, mount=BASE) for route in RESOURCES),
    *(route for route in RESOURCES if route.right is OPEN),
    *invoke.ROUTES,
    *(replace(route, mount=V1, headers=(*route.headers, REQUEST_ID)) for route in FOR_CLIENTS),
    *sessions.ROUTES,
    *chat.ROUTES,
    *library.ROUTES,
    *tools.AT_ROOT,
    *introspection.AT_ROOT,
)
"""Every route. Those that need no token, and invoke, are mounted at the root too; metrics and MCP only there."""
BUSIEST: Final = frozenset({f"{BASE}/inject", f"{BASE}/threads/{{id}}", f"{BASE}/threads/{{id}}/messages"})
"""What the router tries first: it tries one route after the other."""


def application(process: Process, names: Sequence[str], origins: Sequence[str] = ()) -> Starlette:
    """The ASGI application of one process, which answers to these host names and lets pages of ``origins`` in."""

    async def refused(request: Request, error: Exception) -> Response:
        known = unrouted(request, error) if isinstance(error, HTTPException) else error
        problem = known if isinstance(known, OrganismError) else OrganismError()
        return problems.response(problem, request.state.access.request_id, process.redactor, request.scope["path"])

    origins = [origin.rstrip("/").lower() for origin in origins]
    cors: Any = CORSMiddleware
    ordered = sorted(ROUTES, key=lambda route: route.address not in BUSIEST)
    app = Starlette(
        routes=[
            *(http_route(route, process) for route in ordered),
            *page_routes(),
            WebSocketRoute("/{path:path}", WebSockets(process)),
        ],
        middleware=[
            Middleware(AccessLog),
            *([Middleware(cors, allow_origins=origins, **CROSS_ORIGIN)] if origins else []),
            Middleware(Guard, names, origins, process.redactor),
        ],
        exception_handlers={OrganismError: refused, HTTPException: refused, Exception: refused},
    )
    app.router.redirect_slashes = False  # a resource has one address
    app.state.routes, app.state.documents = ROUTES, {}
    return app


def http_route(route: Route, process: Process) -> HttpRoute:
    is_page = route.gives[0].kind == "text/html"
    endpoint = Endpoint(route, process)
    address = f"{route.address.removesuffix('}')}:path}}" if route.takes_slashes else route.address
    return HttpRoute(address, endpoint, methods=[route.method], middleware=_AS_PAGE if is_page else None)


def unrouted(request: Request, error: HTTPException) -> OrganismError:
    """The error of a path that no route has, or of a method that its route does not take."""
    path = request.scope["path"][:200]
    if error.status_code != HTTPStatus.METHOD_NOT_ALLOWED:
        return NotFound(f"There is no route {path!r}.")
    there = (route for route in request.app.routes if isinstance(route, HttpRoute))
    methods = (each.methods or () for each in there if each.matches(request.scope)[0] is Match.PARTIAL)
    allowed = ", ".join(sorted({method for some in methods for method in some}))
    # `problems` makes the Allow header of the fault's text.
    return MethodNotAllowed(f"{path} takes {allowed}; came {request.method}.", details=(Fault("method", allowed),))


_PACKAGE: Final = Path(__file__).resolve().parent.parent
PLACES: Final = (_PACKAGE / "web", _PACKAGE.parent / "web" / "dist")
"""Where the built page lies: in an installed package, in a checkout."""
DOCUMENTS: Final = _PACKAGE / "server" / "documents" / "static"
"""The style of ``/docs``."""


def page_routes(places: Sequence[Path] = PLACES) -> list[HttpRoute]:
    """A route for each file of the page and of ``/docs``. A server without a page serves the API alone."""
    place = next((place for place in places if (place / "index.html").is_file()), None)
    pages = []
    for folder in (DOCUMENTS, *([] if place is None else [place])):
        files = PageFiles(folder)
        paths = [*([""] if folder is place else []), *files_of(folder)]
        pages += [
            HttpRoute(f"/{path}", files, methods=["GET"], middleware=_AS_HASHED if is_hashed(path) else _AS_PAGE)
            for path in paths
        ]
    return pages


_AS_PAGE: Final = [Middleware(Page)]
_AS_HASHED: Final = [Middleware(Page, is_immutable=True)]
