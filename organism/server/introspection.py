"""What tools ask of the server itself: probes, error codes, the documents of the API, and metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, Literal, TypedDict

import orjson
from starlette.responses import Response

from organism.errors import LogUnavailable, Stopping
from organism.model import words
from organism.server.documents.asyncapi import document as asyncapi_document
from organism.server.documents.openapi import document as openapi_document
from organism.server.documents.page import page
from organism.server.http import problems
from organism.server.http.call import Call, JsonResponse, Route, Tag, tagged
from organism.server.http.contract import Gives, gives
from organism.server.http.rights import OPEN, Right


class Healthy(TypedDict):
    """The process answers."""

    status: Literal["ok"]


class Ready(TypedDict):
    """It takes work."""

    status: Literal["running", "paused"]


def _indented(document: Any) -> bytes:
    return orjson.dumps(document, option=orjson.OPT_INDENT_2)


MAKERS: Final[Mapping[str, Callable[[Sequence[Route]], bytes]]] = {
    "openapi": lambda routes: _indented(openapi_document(routes)),
    "asyncapi": lambda _: _indented(asyncapi_document()),
    "docs": lambda routes: page(openapi_document(routes), asyncapi_document()),
}


async def healthz(_call: Call) -> Response:
    """The process answers."""
    return JsonResponse(Healthy(status="ok"))


async def readyz(call: Call) -> Response:
    """It takes work: neither starting nor stopping, and its log can be written."""
    status = call.process.organism.status
    if status == "starting" or status == "stopping":  # noqa: PLR1714 - narrows the type
        raise Stopping(f"The organism is {status}.")
    if not call.tenant.log.available:
        raise LogUnavailable
    return JsonResponse(Ready(status=status))


async def errors(_call: Call) -> Response:
    """The table of all error codes."""
    return JsonResponse(problems.table())


async def openapi(call: Call) -> Response:
    """This document: the REST API as OpenAPI 3.1."""
    return await _document(call, "openapi")


async def asyncapi(call: Call) -> Response:
    """The socket `/ws`, its frames and commands, as AsyncAPI 3.0."""
    return await _document(call, "asyncapi")


async def docs(call: Call) -> Response:
    """The REST API as a page to read."""
    return await _document(call, "docs", "text/html")


async def _document(call: Call, name: str, kind: str = "application/json") -> Response:
    call.allow_query()
    made: dict[str, bytes] = call.app.state.documents
    if name not in made:  # in a thread, since it takes half a second and the loop has agents to serve
        made[name] = await asyncio.to_thread(MAKERS[name], call.app.state.routes)
    body = made[name]
    tag = f'"{sha256(body).hexdigest()[:32]}"'
    return Response(body, headers={"etag": tag}, media_type=kind)


async def metrics(call: Call) -> Response:
    """The numbers of the whole process, as text; OpenMetrics for who accepts it."""
    call.allow_query()
    process = call.process
    tenants = tuple(process.organism.tenants.values())
    body, kind = await process.metrics.shown(tenants, process.connections.count, call.headers.get("accept", ""))
    return Response(body, media_type=kind)


ROUTES: Final = (
    *tagged(
        Tag("health", "What needs no token: whether it lives, whether it can work, and what each error code means."),
        Route("GET /healthz", healthz, right=OPEN, gives=gives(Healthy)),
        Route("GET /readyz", readyz, right=OPEN, gives=gives(Ready), refuses=(Stopping, LogUnavailable)),
        Route("GET /errors", errors, right=OPEN, gives=gives(problems.ErrorCodes)),
    ),
    *tagged(
        Tag("documents", "The documents: the API described for programs, and for people."),
        Route("GET /openapi.json", openapi, right=OPEN, gives=gives(words.Object), is_tagged=True),
        Route("GET /asyncapi.json", asyncapi, right=OPEN, gives=gives(words.Object), is_tagged=True),
        Route("GET /docs", docs, right=OPEN, gives=(Gives(str, kind="text/html"),), is_tagged=True),
    ),
)
NUMBERS: Final = (Gives(str, kind="text/plain"), Gives(str, kind="application/openmetrics-text"))
AT_ROOT: Final = tagged(
    Tag("metrics", "Metrics, for Prometheus to scrape."),
    Route("GET /metrics", metrics, right=Right("read", of_process=True), gives=NUMBERS),
)
