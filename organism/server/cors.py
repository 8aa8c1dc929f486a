"""Pages of other servers: none may read an answer, unless its origin is listed by ``--allowed-origin`` (S31)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from organism.server.headers import Header

_TAKEN: Final = (
    *(b"authorization", b"x-api-key", b"content-type", b"idempotency-key", b"if-match", b"if-none-match"),
    *(b"last-event-id", b"spass-caller-depth", b"spass-parent-request-id"),
)
_ALLOWED: Final[tuple[Header, ...]] = (
    (b"access-control-allow-methods", b"GET, POST, DELETE"),
    (
        b"access-control-allow-headers",
        b", ".join(_TAKEN),
    ),
    (b"access-control-max-age", b"600"),
)
_EXPOSED: Final = (b"access-control-expose-headers", b"etag, retry-after, x-request-id")


class Origins:
    """The origins that are listed. Credentials are never allowed along: a token stands in a header, not in a cookie."""

    def __init__(self, listed: Iterable[str] = ()) -> None:
        self._listed = frozenset(origin.rstrip("/").lower().encode() for origin in listed)

    def knows(self, origin: bytes) -> bool:
        """Whether a page of this origin is listed."""
        return origin.lower() in self._listed

    def headers(self, raw: Sequence[Header]) -> tuple[Header, ...]:
        """What the answer to a listed page says besides; nothing for any other."""
        said = [value for name, value in raw if name == b"origin"] if self._listed else []
        if len(said) != 1 or not self.knows(said[0]):
            return ()
        return ((b"access-control-allow-origin", said[0]), (b"vary", b"origin"), _EXPOSED)

    def preflight(self, method: str, headers: Mapping[bytes, bytes]) -> tuple[Header, ...]:
        """What a browser is told that asks first whether such a page may; nothing if this is no such question."""
        asks = method == "OPTIONS" and b"access-control-request-method" in headers
        return _ALLOWED if asks and self.knows(headers.get(b"origin", b"")) else ()
