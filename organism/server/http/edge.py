"""The server's edge for HTTP: every request comes in here, and every answer leaves here in one shape.

Checked in this order: Host, no credential in the URL, route, token, right, size of the body. Then the endpoint runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from http import HTTPStatus
from re import Pattern
from secrets import token_hex
from typing import Any, Final
from urllib.parse import parse_qsl

import orjson
import structlog
from starlette.routing import compile_path

from organism.errors import (
    BodyTooLarge,
    Fault,
    InvalidField,
    MethodNotAllowed,
    NotFound,
    OrganismError,
    Stopping,
    UnsupportedMediaType,
)
from organism.model.commands import Idempotency
from organism.model.ids import DEFAULT_TENANT
from organism.model.principal import Principal
from organism.model.redact import Redactor
from organism.pump.operate import recorded
from organism.server.http import headers as fixed
from organism.server.http import problems
from organism.server.http.auth import refuse_credentials, token_in
from organism.server.http.call import Answer, Call, Endpoint, Process, Route, until_left
from organism.server.http.connections import Receive, Send
from organism.server.http.headers import Hosts
from organism.server.http.logs import Access
from organism.server.http.rights import OPEN

MAX_BODY_BYTES: Final = 1 << 20
NOBODY: Final = Principal(DEFAULT_TENANT, "nobody", frozenset())
_MAX_QUERY_FIELDS: Final = 100
_DECIDING: Final = frozenset(
    b"host origin authorization x-api-key content-type if-match if-none-match idempotency-key".split()
)
"""A request that sends one of these twice is refused."""
_READING: Final = frozenset({"GET", "HEAD"})
_ANNOUNCING: Final = frozenset({b"content-length", b"transfer-encoding", b"content-encoding"})
"""A request without any of these has no body."""

Scope = dict[str, Any]

_log = structlog.get_logger("organism.server")


class Edge:
    """The ASGI application for HTTP."""

    def __init__(self, process: Process, hosts: Hosts, routes: Sequence[Route], page: Mapping[str, Answer]) -> None:
        self._process = process
        self._authenticator = process.authenticator
        self._hosts = hosts
        self._table = Table(routes)
        self._page = page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        access = Access(f"req-{token_hex(8)}", scope["method"])
        given = await self._given(scope, receive, access)
        try:
            await send(_head(given.also(self._hosts.cross_origin(scope["headers"])), access.request_id))
            if given.stream is None:
                body = b"" if scope["method"] == "HEAD" else given.body
                await send({"type": "http.response.body", "body": body})
            else:
                if scope["method"] == "HEAD":
                    given.stream.end()
                await given.stream.run(receive, send)
        finally:
            if given.stream is not None:
                self._process.connections.answers.pop(given.stream, None)
            access.end(given.status)

    async def _given(self, scope: Scope, receive: Receive, access: Access) -> Answer:
        """The answer, or the problem of what was raised."""
        refused: OrganismError
        try:
            return await self._answer(scope, receive, access)
        except OrganismError as error:
            refused = error
        except asyncio.CancelledError:  # the server ends, and did not wait for this any longer
            refused = Stopping()
        except Exception:  # noqa: BLE001 - the server's edge: it is recorded, and the client gets its id
            _log.exception("request failed", request_id=access.request_id, method=access.method, route=access.route)
            refused = OrganismError()
        return problem(refused, access.request_id, self._process.redactor)

    async def _answer(self, scope: Scope, receive: Receive, access: Access) -> Answer:
        headers = headers_of(scope["headers"])
        self._hosts.check_host(headers)
        if allowed := self._hosts.preflight(scope["method"], headers):
            return Answer(b"", 204, headers=allowed)
        query = query_of(scope["query_string"])
        path = scope["path"]
        if scope["method"] in _READING and (file := self._page.get(path)) is not None:
            return _unless_known(file, headers)
        route, params = self._table.find(scope["method"], path)
        access.route = route.address
        who = NOBODY
        if route.right is not OPEN:
            who = self._authenticator.by_token(token_in(headers), address_of(scope))
            route.right.check_early(who, params)
            access.tenant = who.tenant
        tenant = self._process.organism.tenants[who.tenant]
        head = ((b"etag", b'"%d"' % tenant.log.head),) if route.by_head else ()  # before the rows are read
        body = b""
        if scope["method"] not in _READING or not headers.keys().isdisjoint(_ANNOUNCING):
            body = await _body(receive, headers)
            if who is not NOBODY:  # the token may have ended while the body came
                who = self._authenticator.tokens.current(who)
                route.right.check_early(who, params)
        call = Call(
            self._process,
            route.right,
            tenant,
            who,
            access.request_id,
            route.method,
            path,
            params,
            query,
            headers,
            body,
            partial(until_left, receive),
        )
        refuse_empty(query)
        once = call.idempotency() if route.is_kept else None
        given = await (route.endpoint(call) if once is None else answered_once(call, once, route.endpoint))
        if given.stream is not None:
            self._process.connections.answers[given.stream] = who
        if route.is_kept and route.is_tagged:  # an act that is answered by a thread: the tag is its position
            head = ((b"etag", b'"%d"' % orjson.loads(given.body)["position"]),)
        whole = given.also(head)
        return _unless_known(whole, headers) if route.method == "GET" else whole  # an act was done, whoever knows it


def problem(error: OrganismError, request_id: str, redactor: Redactor) -> Answer:
    """The answer that says what was wrong, without secrets."""
    return Answer(
        redactor.shown(problems.body(error, request_id)), error.status, headers=tuple(problems.headers(error))
    )


def headers_of(raw: Sequence[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Headers by lower-case name, lines of one name joined. Raises ``InvalidField`` if a deciding one stands twice."""
    headers = dict(raw)
    if len(headers) < len(raw):
        headers = {}
        for name, value in raw:
            if name in headers and name in _DECIDING:
                raise InvalidField("This header stands twice; send it once.", param=f"headers.{name.decode()}")
            headers[name] = headers[name] + b", " + value if name in headers else value
    return headers


def address_of(scope: Scope) -> str:
    host: str = (scope.get("client") or ("", 0))[0]
    return host


def query_of(raw: bytes, *, takes_ticket: bool = False) -> dict[str, str]:
    """The query's parameters. Raises ``InvalidField`` if one stands twice, ``CredentialInUrl`` for a credential."""
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


async def _body(receive: Receive, headers: Mapping[bytes, bytes]) -> bytes:
    """The whole body, refused as soon as it is known to be too large or encoded."""
    if (coding := headers.get(b"content-encoding", b"identity").lower()) not in {b"identity", b""}:
        raise UnsupportedMediaType(
            f"A body comes as it is, without a Content-Encoding; came {coding.decode('latin-1')[:40]!r}.",
            param="headers.content-encoding",
        )
    said = headers.get(b"content-length", b"0")
    if said.isdigit() and int(said) > MAX_BODY_BYTES:
        raise BodyTooLarge(f"A body here has at most {MAX_BODY_BYTES} bytes; {int(said)} are announced.")
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        part = message.get("body", b"")
        size += len(part)
        if size > MAX_BODY_BYTES:
            raise BodyTooLarge(f"A body here has at most {MAX_BODY_BYTES} bytes; more came.")
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts) if len(parts) > 1 else part


def _unless_known(given: Answer, headers: Mapping[bytes, bytes]) -> Answer:
    """The answer, or a 304 if the client has it already."""
    if b"if-none-match" not in headers:
        return given
    known = {tag.strip().removeprefix(b"W/") for tag in headers[b"if-none-match"].split(b",")}
    tags = {value for name, value in given.headers if name == b"etag"}
    is_known = bool(tags) and (b"*" in known or not tags.isdisjoint(known))
    return Answer(b"", 304, given.kind, given.headers) if is_known and given.status == HTTPStatus.OK else given


def _head(given: Answer, request_id: str) -> dict[str, Any]:
    length = ((b"content-length", b"%d" % len(given.body)),) if given.stream is None else ()
    own = {name for name, _ in given.headers}
    always = [header for header in fixed.API if header[0] not in own] if own else fixed.API
    kind = ((b"content-type", given.kind),) if given.body or given.stream is not None else ()
    headers = [*kind, *length, (b"x-request-id", request_id.encode()), *given.headers, *always]
    return {"type": "http.response.start", "status": given.status, "headers": headers}


# -- answers that are recorded under an idempotency key


async def answered_once(call: Call, once: Idempotency, endpoint: Endpoint) -> Answer:
    """The endpoint's answer, or the recorded one of this key, byte for byte (G5). What it raises is not recorded.

    The act's own unit records the key, so it is never done twice; the body, an object *as it then stands*, follows as a
    ``call_answered``, and goes to the client once that is on disk. A crash in between leaves a key without a body: no
    client ever saw one, so the repetition's is the first.
    """

    async def act() -> Answer:
        if (first := await _recorded(call, once)) is not None:  # another one began and ended while we looked
            return first
        given = await endpoint(call)
        await call.tenant.keep_answer(once, call.actor, given.status, given.body)
        return given

    return await call.tenant.keys.answer(once, partial(_recorded, call, once), act)


async def _recorded(call: Call, once: Idempotency) -> Answer | None:
    row = await recorded(call.tenant.views, once, call.tenant.clock.now_us())
    content = None if row is None or not row["said_at"] else await call.tenant.log.content(row["said_at"])
    return None if row is None or content is None else Answer(content[0], row["status"])


# -- routes


ByMethod = dict[str, Route]


class Table:
    """The routes, most of them found by a dictionary: a router tries one pattern after the other."""

    def __init__(self, routes: Sequence[Route]) -> None:
        by_path: dict[str, ByMethod] = {}
        for route in routes:
            by_path.setdefault(route.address, {})[route.method] = route
        self._plain = {path: methods for path, methods in by_path.items() if "{" not in path}
        self._patterns: list[tuple[Pattern[str], ByMethod]] = [
            (compile_path(path)[0], methods) for path, methods in by_path.items() if "{" in path
        ]

    def find(self, method: str, path: str) -> tuple[Route, Mapping[str, str]]:
        """The route and the path's parameters. Raises ``NotFound`` or ``MethodNotAllowed``."""
        methods, params = self._methods(path)
        route = methods.get("GET" if method == "HEAD" else method)
        if route is None:
            allowed = ", ".join(sorted(methods))
            # `problems` makes the Allow header of the fault's text.
            raise MethodNotAllowed(f"{path[:200]} takes {allowed}; came {method}.", details=(Fault("method", allowed),))
        return route, params

    def _methods(self, path: str) -> tuple[ByMethod, Mapping[str, str]]:
        if (plain := self._plain.get(path)) is not None:
            return plain, {}
        for pattern, methods in self._patterns:
            if match := pattern.match(path):
                return methods, match.groupdict()
        raise NotFound(f"There is no route {path[:200]!r}.")
