"""Errors on the wire: one shape everywhere, and the table that ``GET /errors`` shows, made of ``organism.errors``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from math import ceil
from typing import Annotated, Any, Final, Literal, NotRequired, TypedDict

import msgspec
import orjson
from msgspec import Meta
from starlette.responses import Response

from organism.errors import (
    AlreadyResolved,
    HandlingFailed,
    InvalidJson,
    MethodNotAllowed,
    NotAcceptable,
    OrganismError,
    Paused,
    RateLimitExceeded,
    Unavailable,
)
from organism.model import words
from organism.model.redact import Redactor
from organism.views.who import Resolved

TABLE_VERSION: Final = 1

_TYPICAL: Final = {
    "missing_authorization": "headers.authorization",
    "invalid_authorization": "headers.authorization",
    "too_many_failures": "headers.authorization",
    "credential_in_url": "query.token",
    "bad_position": "query.since",
    "idempotency_key_reused": "headers.idempotency-key",
    "request_in_progress": "headers.idempotency-key",
    "stale_position": "headers.if-match",
    "unsupported_media_type": "headers.content-type",
    "invalid_payload": "/payload",
    "payload_too_large": "/payload",
    "message_too_large": "/message",
    "missing_field": "/to",
    "invalid_field": "query.limit",
    "unknown_field": "/",
    "thread_killed": "/thread_id",
    "not_acceptable": "headers.accept",
    "model_not_in_allowlist": "/model",
    "session_agent_mismatch": "/session_id",
}
"""The usual place of the fault, for codes that have one."""


MOST_NAME: Final = 200
"""Characters of a name that a client sent are echoed to it, at most."""
MOST_MESSAGE: Final = 2000
MOST_DETAILS: Final = 20


class Fault(TypedDict):
    """One of several things that are wrong."""

    param: Annotated[str, Meta(examples=["/payload/name"])]
    message: Annotated[str, Meta(examples=["is missing"])]


class Refusal(TypedDict):
    """What was wrong."""

    type: words.ErrorType
    code: Annotated[str, Meta(description="Stable; `GET /errors` explains each.", examples=["invalid_payload"])]
    message: Annotated[str, Meta(examples=["/payload/name: is missing."])]
    param: Annotated[
        str | None,
        Meta(description="Where: a JSON pointer into the body, `query.x` or `headers.x`.", examples=["/payload/name"]),
    ]
    details: NotRequired[Annotated[list[Fault], Meta(description="Every fault, where there are several.")]]
    requested: NotRequired[Annotated[str, Meta(description="What was requested and is not available.")]]
    supported: NotRequired[Annotated[list[str], Meta(description="What is available instead.")]]
    resolved: NotRequired[Annotated[Resolved, Meta(description="Who was first, if it is resolved already.")]]
    request_id: Annotated[str, Meta(description="Stands in the server's log, too.", examples=["req-5f2c9a01d7e84b36"])]


class ErrorAnswer(TypedDict):
    """The one shape of errors."""

    error: Refusal


class RpcRefusal(TypedDict):
    """An error of JSON-RPC."""

    code: Annotated[int, Meta(description="-32700, -32600, -32603, or one of the protocol's.", examples=[-32600])]
    message: Annotated[str, Meta(description="What went wrong.", examples=["missing_authorization: No token."])]
    data: NotRequired[Annotated[Any, Meta(description="All of it, as `Refusal`, or as the protocol has it.")]]


class RpcError(TypedDict):
    """A refusal as JSON-RPC has it."""

    jsonrpc: Literal["2.0"]
    id: Annotated[str | int | None, Meta(description="The request's, if that could be read.", examples=[1])]
    error: RpcRefusal


class ErrorCode(TypedDict):
    """What a code means and what to do."""

    code: Annotated[str, Meta(examples=["not_found"])]
    type: words.ErrorType
    http_status: Annotated[int, Meta(examples=[404])]
    title: Annotated[str, Meta(examples=["Not found"])]
    description: Annotated[str, Meta(examples=["There is nothing here by that name."])]
    remediation: Annotated[
        str, Meta(examples=["Check the id or name; lists, such as `organism agents`, show what there is."])
    ]
    typical_param: str | None


class ErrorCodes(TypedDict):
    """Every code there is."""

    version: Annotated[int, Meta(examples=[1])]
    count: words.Count
    entries: list[ErrorCode]


def body(error: OrganismError, request_id: str) -> bytes:
    """The JSON body: what was wrong, and the id to find it by in the server's log; no trace, path or secret."""
    return orjson.dumps({"error": refusal(error, request_id)})


def refusal(error: OrganismError, request_id: str) -> dict[str, Any]:
    """The ``Refusal``."""
    content: dict[str, Any] = {"type": error.type, "code": error.code, **fields(error)}
    if isinstance(error, NotAcceptable) and error.requested:
        content["requested"], content["supported"] = error.requested, error.supported
    content["request_id"] = request_id
    return content


def fields(error: OrganismError) -> dict[str, Any]:
    """What REST and WebSocket say of an error; a client's own names, which may be as long as a request, are cut."""
    content: dict[str, Any] = {"message": brief(error.message), "param": error.param and cut(error.param)}
    if error.details:
        listed = error.details[:MOST_DETAILS]
        content["details"] = [{"param": cut(fault.pointer), "message": brief(fault.message)} for fault in listed]
    if isinstance(error, AlreadyResolved) and error.resolved is not None:
        content["resolved"] = msgspec.to_builtins(error.resolved)
    return content


def brief(message: str) -> str:
    """The message with no word longer than a name may be."""
    return cut(" ".join(map(cut, message.split(" ", MOST_MESSAGE))), MOST_MESSAGE)


def cut(text: str, most: int = MOST_NAME) -> str:
    """The text, which may be as long as a request, at a length to be shown."""
    return text if len(text) <= most else text[: most - 1] + "…"


def headers(error: OrganismError) -> dict[str, str]:
    """The headers of its status: how to authenticate, what is allowed, when to come back."""
    if error.status == HTTPStatus.UNAUTHORIZED:
        return {"www-authenticate": "Bearer"}
    if isinstance(error, MethodNotAllowed):
        return {"allow": error.details[0].message}
    if isinstance(error, RateLimitExceeded):
        return {"retry-after": str(error.retry_after_s)}
    if isinstance(error, Unavailable) and not isinstance(error, Paused):  # nobody knows when that is resumed
        return {"retry-after": "1"}
    return {}


MCP: Final = "/mcp"
"""Where JSON-RPC is spoken."""
INVALID_JSON, INVALID_RPC, INTERNAL = -32700, -32600, -32603
"""Codes of JSON-RPC 2.0."""


def response(error: OrganismError, request_id: str, redactor: Redactor, path: str) -> Response:
    """The answer to a request for the path that says what was wrong, without secrets.

    Clients of OpenAI and Anthropic heed its header ``x-should-retry``.
    """
    shown = redactor.shown(_rpc_body(error, request_id) if path == MCP else body(error, request_id))
    final = {"x-should-retry": "false"} if error.is_final else {}
    return Response(shown, error.status, {**headers(error), **final}, "application/json")


def error_of(data: Mapping[str, Any]) -> OrganismError:
    """The error that a run's ``error`` entry tells."""
    error = kinds().get(str(data.get("code")), HandlingFailed)(str(data.get("message", "")))
    error.is_final = error.is_final or data.get("isFinal") is True
    wait_s = data.get("retryAfterSeconds")
    if isinstance(error, RateLimitExceeded) and isinstance(wait_s, int | float):
        error.retry_after_s = max(1, ceil(wait_s))
    return error


def _rpc_body(error: OrganismError, request_id: str) -> bytes:
    """The same as an error of JSON-RPC, with all of it in ``data``; of which request it is may not be known yet."""
    code = INVALID_JSON if isinstance(error, InvalidJson) else INVALID_RPC
    code = INTERNAL if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR else code
    content = refusal(error, request_id)
    described = {"code": code, "message": f"{error.code}: {content['message']}", "data": content}
    return orjson.dumps({"jsonrpc": "2.0", "id": None, "error": described})


def kinds() -> dict[str, type[OrganismError]]:
    return {kind.code: kind for kind in _tree(OrganismError)}


def table() -> dict[str, Any]:
    """Every code there is, with what it means and what to do: ``{version, count, entries}``, by code."""
    entries = {code: _entry(kind) for code, kind in kinds().items()}
    return {"version": TABLE_VERSION, "count": len(entries), "entries": [entries[code] for code in sorted(entries)]}


def _tree(kind: type[OrganismError]) -> Iterator[type[OrganismError]]:
    """The tree of ``organism.errors``; classes derived elsewhere have no code of their own."""
    yield kind
    for child in kind.__subclasses__():
        if child.__module__ == kind.__module__:
            yield from _tree(child)


def _entry(kind: type[OrganismError]) -> dict[str, Any]:
    return {
        "code": kind.code,
        "type": kind.type,
        "http_status": kind.status,
        "title": re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.__name__).capitalize(),
        "description": " ".join((kind.__doc__ or "").split()),
        "remediation": kind.remediation,
        "typical_param": _TYPICAL.get(kind.code),
    }
