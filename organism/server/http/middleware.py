"""ASGI middleware around the router: request ids, the access log, security headers, and what no route needs to see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from secrets import token_hex
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from organism.errors import Fault, Forbidden, InvalidField, OrganismError
from organism.model.redact import Redactor
from organism.server.http import problems
from organism.server.http.auth import refuse_credentials
from organism.server.http.server_log import Access

Header = tuple[bytes, bytes]

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

_OF_PAGE: Final[tuple[Header, ...]] = (
    *STRICT,
    (
        b"content-security-policy",
        (
            b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
            b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        ),
    ),
)
PAGE: Final[tuple[Header, ...]] = (*_OF_PAGE, (b"cache-control", b"no-cache"))
"""On the page's files: only its own scripts and styles, nothing inline, no other server."""
HASHED: Final[tuple[Header, ...]] = (*_OF_PAGE, (b"cache-control", b"public, max-age=31536000, immutable"))
"""On those whose name changes with what is in them."""


COSTS: Final = ("spass-cost-eur", "spass-cost-usd", "spass-cost-source", "spass-cost-sub-calls")
RATES: Final = ("ratelimit-limit", "ratelimit-remaining", "ratelimit-reset")
CROSS_ORIGIN: Final[Mapping[str, Sequence[str]]] = {
    "allow_methods": ("GET", "POST", "PUT", "PATCH", "DELETE"),
    "allow_headers": (
        *("authorization", "x-api-key", "content-type", "idempotency-key", "if-match", "if-none-match"),
        *("last-event-id", "spass-caller-depth", "spass-parent-request-id", "spass-user-id", "spass-request-id"),
        *("spass-augment", "spass-wait"),
    ),
    "expose_headers": (
        *("etag", "retry-after", "x-should-retry", "x-request-id", "spass-request-id", "spass-augment-applied"),
        "spass-parameters-unused",
        *COSTS,
        *RATES,
    ),
}
"""What the page of a listed origin may send and read; never cookies."""

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_MAX_QUERY_FIELDS: Final = 100
_SWITCHING_PROTOCOLS: Final = 101
_ONCE: Final = frozenset(
    b"host origin authorization x-api-key content-type if-match if-none-match idempotency-key spass-user-id".split()
)
"""Headers that decide something: a request that sends one of them twice is refused."""


class AccessLog:
    """Gives each request and socket an id, logs its end, and puts the security headers on its answer (S31)."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind, method = ("req", scope["method"]) if scope["type"] == "http" else ("ws", "GET")
        access = scope.setdefault("state", {})["access"] = Access(f"{kind}-{token_hex(8)}", method)

        async def send_with_headers(message: Message) -> None:
            if "headers" in message:  # the start of an answer, or a socket's acceptance
                access.status = message.get("status", _SWITCHING_PROTOCOLS)
                fixed = (HASHED if access.is_immutable else PAGE) if access.is_page else API
                names = (b"x-request-id", b"spass-request-id") if access.is_named else (b"x-request-id",)
                ids = [(name, access.request_id.encode()) for name in names]
                more = [(name.lower().encode(), said.encode()) for name, said in access.headers.items()]
                message["headers"] = [*message["headers"], *ids, *more, *fixed]
            await send(message)

        try:
            await self._app(scope, receive, send_with_headers)
        finally:
            access.end()


class Page:
    """Marks an answer as a page: it may load its own scripts and styles, and nothing else."""

    def __init__(self, app: ASGIApp, *, is_immutable: bool = False) -> None:
        self._app = app
        self._is_immutable = is_immutable

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        access: Access = scope["state"]["access"]
        access.is_page, access.is_immutable = True, self._is_immutable
        await self._app(scope, receive, send)


class Guard:
    """Refuses a foreign Host, a foreign Origin of a socket, a repeated header, and a query that is bad or has a secret.

    Against DNS rebinding the Host must be a served name; loopback ones always are. (Starlette's middleware for that
    answers 400 in plain text.) The Origin that opens a socket must be our own or a listed one (S15). The parsed query
    is ``scope["state"]["query"]``, and each header stands in the scope once.
    """

    def __init__(self, app: ASGIApp, names: Sequence[str], origins: Sequence[str], redactor: Redactor) -> None:
        self._app = app
        self._names = LOOPBACK | {name.lower() for name in names}
        self._origins = frozenset(origin.encode() for origin in origins)
        self._redactor = redactor

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_socket = scope["type"] == "websocket"
        try:
            headers = joined(scope["headers"])
            if len(headers) < len(scope["headers"]):
                scope["headers"] = list(headers.items())
            self._check_host(headers.get(b"host", b""))
            if is_socket:
                self._check_origin(headers)
            scope["state"]["query"] = query_of(scope["query_string"], takes_ticket=is_socket)
        except OrganismError as error:
            request_id = scope["state"]["access"].request_id
            refusal = problems.response(error, request_id, self._redactor, scope["path"])
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _check_host(self, host: bytes) -> None:
        if host_name(host) not in self._names:
            shown = host.decode("latin-1")[:100]
            raise Forbidden(
                f"This server does not answer to the name {shown!r}; if it should, start it with --allowed-host.",
                param="headers.host",
            )

    def _check_origin(self, headers: Mapping[bytes, bytes]) -> None:
        """Programs send no Origin; a browser sends that of its page."""
        origin = headers.get(b"origin")
        if origin is None or origin.lower() in self._origins:
            return
        page = urlsplit(origin.decode("latin-1").lower())
        own = headers.get(b"host", b"").decode("latin-1").lower()
        if page.scheme not in {"http", "https"} or page.netloc != own:
            shown = origin.decode("latin-1")[:100]
            raise Forbidden(f"A page of {shown!r} may not open this server's socket.", param="headers.origin")


def host_name(host: bytes) -> str:
    """The name in a Host header, without its port; the empty text if the header is malformed."""
    try:
        split = urlsplit("//" + host.decode("ascii").lower())
        _ = split.port
    except ValueError:
        return ""
    return "" if split.username or split.path or split.query or split.fragment else split.hostname or ""


def joined(raw: Sequence[Header]) -> dict[bytes, bytes]:
    """Headers by lower-case name, lines of one name joined. Raises ``InvalidField`` for a repeated one of ``_ONCE``."""
    headers = dict(raw)
    if len(headers) < len(raw):
        headers = {}
        for name, value in raw:
            if name in headers and name in _ONCE:
                raise InvalidField("This header stands twice; send it once.", param=f"headers.{name.decode()}")
            headers[name] = headers[name] + b", " + value if name in headers else value
    return headers


def query_of(raw: bytes, *, takes_ticket: bool = False) -> dict[str, str]:
    """The query's parameters. Raises ``InvalidField`` if one stands twice, ``CredentialInUrl`` for a credential."""
    if not raw:
        return {}
    try:
        pairs = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MAX_QUERY_FIELDS
        )
    except ValueError as error:
        raise InvalidField("The query is percent-encoded UTF-8 of at most 100 parameters.", param="query") from error
    query = dict(pairs)
    refuse_credentials(query, takes_ticket=takes_ticket)
    if len(query) < len(pairs):
        names = [name for name, _ in pairs]
        twice = tuple(Fault(f"query.{name}", "stands twice") for name in query if names.count(name) > 1)
        raise InvalidField(f"Send each parameter once: {', '.join(fault.pointer for fault in twice)}.", details=twice)
    return query


def refuse_empty(query: Mapping[str, str]) -> None:
    """Raise ``InvalidField`` for parameters without a value."""
    empty = tuple(Fault(f"query.{name}", "has no value") for name, value in query.items() if not value)
    if empty:
        named = ", ".join(fault.pointer for fault in empty)
        raise InvalidField(f"Give each parameter a value or leave it out: {named}.", details=empty)
