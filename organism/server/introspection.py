"""What clients ask of the server itself: probes, error codes, who they are, the documents of the API, and metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Any, Final, Literal, TypedDict

import orjson
from msgspec import Meta
from starlette.responses import Response

from organism.errors import LogUnavailable, Stopping
from organism.model import words
from organism.model.times import iso
from organism.server.documents.asyncapi import document as asyncapi_document
from organism.server.documents.openapi import document as openapi_document
from organism.server.documents.page import page
from organism.server.http import problems
from organism.server.http.call import USER, Call, JsonResponse, Route, Tag, tagged
from organism.server.http.contract import Gives, gives
from organism.server.http.lists import LAST_US
from organism.server.http.rights import ANY_TOKEN, OPEN, Right
from organism.server.json import encoded


class Healthy(TypedDict):
    """The process answers."""

    status: Literal["ok"]


class Ready(TypedDict):
    """It takes work."""

    status: Literal["running", "paused"]


class Me(TypedDict):
    """Who calls, and what the token grants."""

    tenant: Annotated[str, Meta(examples=["default"])]
    principal: Annotated[str, Meta(description="Who holds the token.", examples=["operator"])]
    user: Annotated[
        str | None,
        Meta(description=f"The user for whom this request is, as its `{USER}` names one.", examples=["dan"]),
    ]
    scopes: Annotated[
        list[str],
        Meta(description="As they were granted, narrowed ones too.", examples=[["read", "inject:agent:greeter"]]),
    ]
    models: Annotated[list[words.ModelName] | None, Meta(description="The only models it may use; null: all.")]
    expires_at: Annotated[words.Time | None, Meta(description="When the token ends; null: never.")]


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
    return _with_tag(made[name], kind)


def _with_tag(body: bytes, kind: str = "application/json") -> Response:
    """An answer that is in no log: its ETag is its digest."""
    tag = f'"{sha256(body).hexdigest()[:32]}"'
    return Response(body, headers={"etag": tag}, media_type=kind)


async def me(call: Call) -> Response:
    """Who calls: the tenant and the holder of the token, and what it grants.

    A client that knows its scopes offers no act that would be refused.
    """
    call.allow_query()
    who = call.who
    shown = Me(
        tenant=who.tenant,
        principal=who.name,
        user=call.end_user,
        scopes=sorted(who.grants),
        models=None if who.models is None else sorted(who.models),
        expires_at=None if who.ends is None else iso(min(int(who.ends * 1e6), LAST_US)),
    )
    return _with_tag(call.process.redactor.shown(encoded(shown)))


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
ME: Final = tagged(
    Tag("caller", "The caller: whose token it is, and what it may do."),
    Route("GET /me", me, right=ANY_TOKEN, gives=gives(Me), headers=(USER,), is_tagged=True),
)
NUMBERS: Final = (Gives(str, kind="text/plain"), Gives(str, kind="application/openmetrics-text"))
AT_ROOT: Final = tagged(
    Tag("metrics", "Metrics, for Prometheus to scrape."),
    Route("GET /metrics", metrics, right=Right("read", of_process=True), gives=NUMBERS),
)
