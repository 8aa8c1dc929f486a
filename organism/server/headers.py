"""Response headers, as the raw pairs that ASGI takes. No header names the server or its version (S31)."""

from typing import Final

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
"""On every answer of the API: it is nobody's page and nobody's cache keeps it."""

API_NAMES: Final = frozenset(name for name, _ in API)

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
"""On the page's files: nothing but its own scripts and styles, nothing inline, no address but its own server."""
