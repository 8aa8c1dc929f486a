"""OpenAPI 3.1 of the route table. Pure: routes in, document out."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

from msgspec import Meta

from organism import errors
from organism.model.words import AgentName
from organism.rag.documents import ID_PATTERN
from organism.server.documents import events
from organism.server.documents.schemas import TEMPLATE, Schema, Schemas, example
from organism.server.http.call import USER, Route, Tag
from organism.server.http.contract import HEADERS, JSON, XML
from organism.server.http.problems import MCP, ErrorAnswer, RpcError
from organism.server.http.rights import OPEN, Right

Kinds = tuple[type[errors.OrganismError], ...]

ANY: Final[Kinds] = (
    errors.InvalidField,
    errors.UnknownField,
    errors.CredentialInUrl,
    errors.Forbidden,
    errors.BodyTooLarge,
    errors.OrganismError,
)
WITH_TOKEN: Final[Kinds] = (
    errors.MissingAuthorization,
    errors.InvalidAuthorization,
    errors.TooManyFailures,
    errors.RateLimitExceeded,
    errors.LogUnavailable,
    errors.LogDamaged,
    errors.ContentDamaged,
    errors.Stopping,
)
WITH_BODY: Final[Kinds] = (errors.InvalidJson, errors.MissingField, errors.UnsupportedMediaType, errors.Overloaded)
WITH_KEY: Final[Kinds] = (errors.IdempotencyKeyReused, errors.RequestInProgress, errors.CommitUnknown)


def refusals(route: Route) -> Mapping[str, Schema]:
    """The responses that refuse, by status: the one shape, and in ``CODES`` what it may carry there."""
    by_status: dict[int, dict[str, str]] = {}
    kinds = ANY if route.right is OPEN else ANY + WITH_TOKEN
    kinds += () if route.takes is None else WITH_BODY
    kinds += (errors.MissingField,) if route.needs_user or route.requires else ()
    kinds += WITH_KEY if "Idempotency-Key" in route.headers else ()
    kinds += (errors.BadPosition,) if "at" in route.query else ()
    for kind in (*kinds, *route.refuses):
        by_status.setdefault(kind.status, {})[kind.code] = " ".join((kind.__doc__ or "").split())
    return {str(status): _refusal(route, status, by_status[status]) for status in sorted(by_status)}


def _refusal(route: Route, status: int, codes: Mapping[str, str]) -> Schema:
    shape = RpcError if route.address == MCP else ErrorAnswer
    headers: dict[str, Schema] = {
        name: {"$ref": f"#/components/headers/{name}"} for name in ("X-Request-Id", *_ASKS.get(status, ()))
    }
    if errors.Paused.code in codes:
        headers["Retry-After"] = NOT_OF_PAUSED
    return {
        "description": " ".join(f"`{code}`: {meaning}" for code, meaning in sorted(codes.items())),
        "headers": headers,
        "content": {JSON: {"schema": {"$ref": TEMPLATE.format(model=shape.__name__)}}},
        CODES: sorted(codes),
    }


CODES: Final = "x-error-codes"
"""Beside the schema and not in it: generators of clients would make a class of each set of codes."""
_ASKS: Final[Mapping[int, tuple[str, ...]]] = {
    401: ("WWW-Authenticate",),
    429: ("Retry-After",),
    503: ("Retry-After",),
}
"""The headers that come with a status besides (``problems.headers``)."""
NOT_OF_PAUSED: Final[Schema] = {
    "description": "How many seconds to wait; not with `paused`, since nobody knows when it is resumed.",
    "required": False,
    "schema": {"type": "string"},
}


INFO: Final = {
    "title": "Organism",
    "version": "1",
    "summary": "An event-sourced society of agents: inject messages, watch them, control who handles them.",
    "description": (
        "JSON in snake_case, times in UTC as ISO 8601. What is not known is refused, never ignored. What is not yours "
        "and what does not exist look the same: 404. `/ws` is described by `/asyncapi.json`."
    ),
    "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
}
"""No version of the software: it is nobody's business before a token was shown (S31)."""

SECURITY: Final = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "`Authorization: Bearer TOKEN`"},
    "key": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The same token."},
}
PATH: Final[Mapping[str, Any]] = {
    "name": Annotated[AgentName, Meta(description="The listener's name.")],
    "id": Annotated[str, Meta(description="Its id, as lists and frames show it.")],
    "sid": Annotated[str, Meta(description="The session's id.", examples=["ses-01a2b3c4"])],
    "index_id": Annotated[str, Meta(description="The index's id.", pattern=ID_PATTERN, examples=["berlin-info"])],
    "doc_id": Annotated[str, Meta(description="The document's id.")],
}
"""The parameters of paths."""

ANSWERED: Final[Mapping[str, Schema]] = {
    "X-Request-Id": {"description": "The request's id, which stands in the server's log too.", "required": True},
    "ETag": {"description": "A thread's position, of all else the head of the log."},
    "Location": {"description": "The path of what goes on with it, or was made.", "required": True},
    "Retry-After": {"description": "How many seconds to wait.", "required": True},
    "WWW-Authenticate": {"description": "How to authenticate: `Bearer`.", "required": True},
}
"""The headers of answers."""


def document(routes: Sequence[Route]) -> Schema:
    """The whole document. Raises ``LookupError`` for a parameter that is described nowhere."""
    schemas = schemas_of(routes)
    paths: dict[str, dict[str, Schema]] = {}
    for route in routes:
        paths.setdefault(route.address, {})[route.method.lower()] = _operation(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": INFO,
        "servers": [{"url": "/", "description": "This server."}],
        "tags": list(map(_text, dict.fromkeys(map(_tag, routes)))),
        "security": [{name: []} for name in SECURITY],
        "paths": paths,
        "components": {
            "schemas": schemas.components,
            "headers": {name: {**header, "schema": {"type": "string"}} for name, header in ANSWERED.items()},
            "securitySchemes": SECURITY,
        },
    }


def schemas_of(routes: Sequence[Route]) -> Schemas:
    """The schemas of all that these routes take and give."""
    kinds: list[Any] = [*HEADERS.values(), *PATH.values(), ErrorAnswer, RpcError]
    for route in routes:
        kinds += [*(form.shape for form in route.gives), *route.parameters().values(), route.takes]
    return Schemas((kind for kind in kinds if kind is not None), events.components())


def _operation(route: Route, schemas: Schemas) -> Schema:
    tag = _tag(route).name
    name = route.endpoint.__name__.removesuffix(f"_{tag}")
    summary, _, more = inspect.cleandoc(route.endpoint.__doc__ or "").replace("``", "`").partition("\n")
    operation = {
        "operationId": f"{tag}.{name}" if route.mount else name,
        "tags": [tag],
        "summary": summary.rstrip("."),
        "description": "\n\n".join(filter(None, (" ".join(more.split()), _needs(route.right)))),
        "parameters": list(_parameters(route, schemas)),
        "responses": {**_answers(route, schemas), **refusals(route)},
    }
    if route.takes is not None:
        operation["requestBody"] = _body(route, schemas)
    return operation if route.right is not OPEN else {**operation, "security": []}


def _tag(route: Route) -> Tag:
    if route.tag is None:
        raise LookupError(f"{route.operation!r} is in no group: make it with `tagged`.")
    return route.tag


def _text(tag: Tag) -> dict[str, str]:
    text = tag.text.partition("\n\n")[0]
    return {"name": tag.name, "description": " ".join(text.split()).replace("``", "`")}


def _needs(right: Right) -> str:
    if right.scope is None:
        return "Any valid token will do." if right.needs_token else ""
    narrow = "".join(f" or `{right.scope}:{kind}:ID`" for kind in right.objects.values())
    whose = " of the tenant `default`" if right.of_process else ""
    return f"Needs a token{whose} with the scope `{right.scope}`{narrow}."


def _parameters(route: Route, schemas: Schemas) -> Iterator[Schema]:
    in_path = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
    headers = (*route.headers, *(("If-None-Match",) if is_conditional(route) else ()))
    listed = [("path", name, PATH[name]) for name in in_path]
    listed += [("query", name, kind) for name, kind in route.parameters().items()]
    listed += [("header", name, HEADERS[name]) for name in headers]
    for place, name, kind in listed:
        parameter = _parameter(place, name, schemas.of(kind))
        parameter["required"] |= name in route.requires or (name == USER and route.needs_user)
        yield {**parameter, "description": schemas.described(kind)}


def _parameter(place: str, name: str, schema: Schema) -> dict[str, Any]:
    parameter = {
        "name": name,
        "in": place,
        "required": place == "path",
        "schema": {key: value for key, value in schema.items() if key != "description"},
    }
    return parameter | {"style": "form", "explode": False} if schema.get("type") == "array" else parameter


def is_tagged(route: Route) -> bool:
    """Whether its answers carry an ETag."""
    return route.by_head or route.by_body or route.is_tagged


def is_conditional(route: Route) -> bool:
    """Whether it is answered 304 to who has its ETag."""
    return is_tagged(route) and route.method == "GET"


_MOVED: Final = frozenset({308})
_EMPTY: Final[Mapping[int, str]] = {
    202: "Taken; there is nothing to answer.",
    204: "It is gone.",
    308: "It was archived: send the same to the session that goes on with it.",
}
"""What an answer without a body says, by its status."""


def _answers(route: Route, schemas: Schemas) -> Schema:
    headers = ("X-Request-Id", *(("ETag",) if is_tagged(route) else ()))
    shown = {name: {"$ref": f"#/components/headers/{name}"} for name in headers}
    answers: dict[str, Schema] = {}
    for form in route.gives:
        if form.shape is None:
            moved = {"Location": {"$ref": "#/components/headers/Location"}} if form.status in _MOVED else {}
            answers[str(form.status)] = {"description": _EMPTY[form.status], "headers": shown | moved}
            continue
        description = schemas.described(form.shape)
        answer = answers.setdefault(str(form.status), {"description": description, "headers": shown, "content": {}})
        answer["content"][form.kind] = _media(schemas.of(form.shape), schemas)
    if is_conditional(route):
        answers["304"] = {"description": "It is still what you have.", "headers": shown}
    return answers


def _media(schema: Schema, schemas: Schemas) -> Schema:
    return {"schema": schema, "example": example(schema, schemas.components)}


def _takes_nothing(schema: Schema) -> bool:
    """Whether an object of this schema may be empty."""
    return not schema.get("required") and "not" not in schema


def _body(route: Route, schemas: Schemas) -> Schema:
    if route.takes_files:
        file = {"schema": {"type": "string", "format": "binary"}, "example": "What the file says."}
        return {"required": True, "description": "The file.", "content": dict.fromkeys(route.takes_files, file)}
    schema = schemas.of(route.takes)
    content = {JSON: _media(schema, schemas)}
    if route.takes_xml:
        content[XML] = {"schema": {"type": "string"}, "example": "<Greeting><name>Dan</name></Greeting>"}
    choices = [schemas.resolved(choice) for choice in schema.get("anyOf", [schema])]
    description = " Or: ".join(choice["description"] for choice in choices)
    return {
        "required": not any(map(_takes_nothing, choices)),
        "description": description,
        "content": content,
    }
