"""Headers: those of every answer, the names (Host) and pages (Origin) that are served, and what ``Accept`` chooses.

Against DNS rebinding the Host must be a served name, and the Origin that opens a socket our own (S15) or one listed by
``--allowed-origin``, which may read answers too. No header names the server or its version (S31).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from organism.errors import NotAcceptable

Header = tuple[bytes, bytes]

JSON: Final = b"application/json"

STRICT: Final[tuple[Header, ...]] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""On every answer."""

API: Final[tuple[Header, ...]] = (
    *STRICT,
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
)
"""On every answer of the API: no page, and not to be cached."""

PAGE: Final[tuple[Header, ...]] = (
    *STRICT,
    (
        b"content-security-policy",
        (
            b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
            b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
    ),
    (b"cache-control", b"no-cache"),
)
"""On the page's files: only its own scripts and styles, nothing inline, no other server."""


CROSS_ORIGIN: Final[Mapping[str, Sequence[str]]] = {
    "allow_methods": ("GET", "POST", "DELETE"),
    "allow_headers": (
        *("authorization", "x-api-key", "content-type", "idempotency-key", "if-match", "if-none-match"),
        *("last-event-id", "spass-caller-depth", "spass-parent-request-id"),
    ),
    "expose_headers": ("etag", "retry-after", "x-request-id"),
}
"""What the page of a listed origin may send and read; never cookies."""
_MAX_RANGES: Final = 50
_WEIGHT: Final = re.compile(r"0(\.[0-9]*)?|1(\.0*)?|\.[0-9]+")


def chosen(accept: str, offers: Sequence[str]) -> str:
    """The offer that is wanted most; among equals the one that is offered first, which is also that of an empty header.

    Raises ``NotAcceptable`` if none of them is wanted.
    """
    if not accept:
        return offers[0]
    weights: dict[str, float] = {}
    for part in accept.lower().split(",")[:_MAX_RANGES]:
        name, *parameters = (piece.strip() for piece in part.split(";"))
        said = next((value[2:] for value in parameters if value.startswith("q=")), "1")
        weights[name] = max(weights.get(name, 0.0), float(said) if _WEIGHT.fullmatch(said) else 0.0)
    best = max(offers, key=lambda offer: _weight(offer, weights))
    if not _weight(best, weights):
        raise NotAcceptable(f"This comes as {' or '.join(offers)}; came {accept[:80]!r}.", param="headers.accept")
    return best


def _weight(offer: str, weights: Mapping[str, float]) -> float:
    """How much an offer is wanted: as the most specific range that fits it says."""
    fitting = (offer, offer.partition("/")[0] + "/*", "*/*")
    return next((weights[name] for name in fitting if name in weights), 0.0)
