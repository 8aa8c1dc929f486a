"""Which errors a route may answer with: what every request may meet, and what its own contract names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from organism.errors import (
    BadPosition,
    BodyTooLarge,
    CommitUnknown,
    ContentDamaged,
    CredentialInUrl,
    Forbidden,
    IdempotencyKeyReused,
    InvalidAuthorization,
    InvalidField,
    InvalidJson,
    LogDamaged,
    LogUnavailable,
    MissingAuthorization,
    MissingField,
    OrganismError,
    RequestInProgress,
    Stopping,
    TooManyFailures,
    UnknownField,
    UnsupportedMediaType,
)
from organism.server.call import Route
from organism.server.documents.schemas import Schema
from organism.server.rights import OPEN

Kinds = tuple[type[OrganismError], ...]

ANY: Final[Kinds] = (InvalidField, UnknownField, CredentialInUrl, Forbidden, BodyTooLarge, OrganismError)
WITH_TOKEN: Final[Kinds] = (
    MissingAuthorization,
    InvalidAuthorization,
    TooManyFailures,
    LogUnavailable,
    LogDamaged,
    ContentDamaged,
    Stopping,
)
WITH_BODY: Final[Kinds] = (InvalidJson, MissingField, UnsupportedMediaType)
WITH_KEY: Final[Kinds] = (IdempotencyKeyReused, RequestInProgress, CommitUnknown)


def kinds_of(route: Route) -> Iterator[type[OrganismError]]:
    """The classes of the errors that the route may answer with; some may come twice."""
    contract = route.contract
    yield from ANY
    yield from WITH_TOKEN if route.right is not OPEN else ()
    yield from WITH_BODY if contract.takes is not None else ()
    yield from WITH_KEY if "Idempotency-Key" in contract.headers else ()
    yield from (BadPosition,) if "at" in contract.query else ()
    yield from contract.refuses


def refusals(route: Route) -> Mapping[str, Schema]:
    """The responses that refuse, by status: the one shape, and the codes that it may carry there."""
    by_status: dict[int, dict[str, str]] = {}
    for kind in kinds_of(route):
        by_status.setdefault(kind.status, {})[kind.code] = " ".join((kind.__doc__ or "").split())
    return {str(status): _refusal(status, by_status[status]) for status in sorted(by_status)}


def _refusal(status: int, codes: Mapping[str, str]) -> Schema:
    code = {"properties": {"code": {"enum": sorted(codes)}}}
    schema: dict[str, Any] = {
        "allOf": [{"$ref": "#/components/schemas/Error"}, {"properties": {"error": code}}],
    }
    headers = ("X-Request-Id", *_ASKS.get(status, ()))
    return {
        "description": " ".join(f"`{code}`: {said}" for code, said in sorted(codes.items())),
        "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in headers},
        "content": {"application/json": {"schema": schema}},
    }


_ASKS: Final[Mapping[int, tuple[str, ...]]] = {
    401: ("WWW-Authenticate",),
    429: ("Retry-After",),
    503: ("Retry-After",),
}
"""The headers that come with a status besides (``problems.headers``)."""
