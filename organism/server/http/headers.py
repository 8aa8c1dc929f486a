"""Headers: those of every answer, the names (Host) and pages (Origin) that are served, and what ``Accept`` chooses.

Against DNS rebinding the Host must be a served name, and the Origin that opens a socket our own (S15) or one listed by
``--allowed-origin``, which may read answers too. No header names the server or its version (S31).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from organism.errors import Forbidden, NotAcceptable

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


_TAKEN: Final = (
    *(b"authorization", b"x-api-key", b"content-type", b"idempotency-key", b"if-match", b"if-none-match"),
    *(b"last-event-id", b"spass-caller-depth", b"spass-parent-request-id"),
)
_ALLOWED: Final[tuple[Header, ...]] = (
    (b"access-control-allow-methods", b"GET, POST, DELETE"),
    (b"access-control-allow-headers", b", ".join(_TAKEN)),
    (b"access-control-max-age", b"600"),
)
_EXPOSED: Final = (b"access-control-expose-headers", b"etag, retry-after, x-request-id")


LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class Hosts:
    """The names that are served, loopback ones always; the origins whose pages may read answers, never with cookies."""

    def __init__(self, names: Iterable[str], origins: Iterable[str] = ()) -> None:
        self._names = LOOPBACK | {name.lower() for name in names}
        self._origins = frozenset(origin.rstrip("/").lower().encode() for origin in origins)

    def check_host(self, headers: Mapping[bytes, bytes]) -> None:
        """Raise ``Forbidden`` if the request was meant for another name."""
        said = headers.get(b"host", b"")
        if _name(said) not in self._names:
            shown = said.decode("latin-1")[:100]
            raise Forbidden(
                f"This server does not answer to the name {shown!r}; if it should, start it with --allowed-host.",
                param="headers.host",
            )

    def check_origin(self, headers: Mapping[bytes, bytes]) -> None:
        """Raise ``Forbidden`` for a browser's page that this server did not serve. Programs send no Origin."""
        said = headers.get(b"origin")
        if said is None or said.lower() in self._origins:
            return
        origin = urlsplit(said.decode("latin-1").lower())
        own = headers.get(b"host", b"").decode("latin-1").lower()
        if origin.scheme not in {"http", "https"} or origin.netloc != own:
            raise Forbidden(
                f"A page of {said.decode('latin-1')[:100]!r} may not open this server's socket.", param="headers.origin"
            )

    def cross_origin(self, raw: Sequence[Header]) -> tuple[Header, ...]:
        """The headers that let the page of a listed origin read the answer; none for any other."""
        said = [value for name, value in raw if name == b"origin"] if self._origins else []
        if len(said) != 1 or said[0].lower() not in self._origins:
            return ()
        return ((b"access-control-allow-origin", said[0]), (b"vary", b"origin"), _EXPOSED)

    def preflight(self, method: str, headers: Mapping[bytes, bytes]) -> tuple[Header, ...]:
        """The answer to a preflight request of a listed origin; empty if this is none."""
        asks = method == "OPTIONS" and b"access-control-request-method" in headers
        return _ALLOWED if asks and headers.get(b"origin", b"").lower() in self._origins else ()


@lru_cache(64)
def _name(host: bytes) -> str:
    """The name of a Host header, without its port; the empty text if it is none."""
    try:
        split = urlsplit("//" + host.decode("ascii").lower())
        _ = split.port
    except ValueError:
        return ""
    return "" if split.username or split.path or split.query or split.fragment else split.hostname or ""


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
